//! What operations cost on this host, and who measured it.
//!
//! Asked for in this order: in other handshakes of the same service; in those of
//! other services of this host; in a calibration of the service's own libcrypto.
//! A range is the mean's 95% confidence interval, and no narrower than what two ways
//! to measure the same difference disagree by.

use std::collections::BTreeMap;

use tlsprof_common::units::time;
use tlsprof_common::{Resumption, Role, Step, labelled};
use tlsprof_ledger::{HandshakeKey, Ledger, Moments, ServiceAccount};

use super::{Protection, Range, sampled};

/// So many measured handshakes make a cost.
const SAMPLES: u64 = 10;
/// The probes themselves are in every measured step, and caches are colder in one
/// run than in another: no difference of costs is known better than this.
const SYSTEMATIC: f64 = 0.03;

/// A public-key operation, by the labels of handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// All of the key exchange of one handshake with this group, on one side.
    KeyExchange(&'static str),
    /// One signature with this kind of key.
    Signing(&'static str),
    /// A million bytes, encrypted in records of such a length.
    Encryption(Protection, Records),
}

labelled! {
    /// Operations that are calibrated together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Work {
        /// Of handshakes.
        PublicKeys = "public-keys",
        /// Of data.
        Encryption = "encryption",
    }
}

/// Lengths of records for which encryption is timed; what is between is interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Records {
    /// The longest that there are.
    Long,
    /// Of small answers.
    Short,
}

impl Records {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Long, Self::Short];

    /// Their length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Long => 16_384,
            Self::Short => 1_024,
        }
    }
}

labelled! {
    /// Where a cost was measured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CostSource {
        /// In other handshakes of the same service.
        ThisService = "this_service",
        /// In handshakes of another service of this host.
        ThisHost = "this_host",
        /// In a calibration of the service's own libcrypto, outside its processes.
        Calibration = "calibration",
        /// In a calibration of this host's OpenSSL: the service has another library.
        OtherLibrary = "other_library",
    }
}

impl CostSource {
    /// The source in words, after "measured in".
    pub const fn words(self) -> &'static str {
        match self {
            Self::ThisService => "other handshakes of this service",
            Self::ThisHost => "handshakes of another service on this host",
            Self::Calibration => "a calibration of the same library on this host",
            Self::OtherLibrary => {
                "a calibration of this host's OpenSSL, as the service's own library cannot be calibrated"
            }
        }
    }
}

/// Seconds of each operation that was calibrated in one library.
pub type Calibration = BTreeMap<Operation, Range>;

/// Calibrations by service, or why there is none.
pub type Calibrations = BTreeMap<String, Result<Calibration, String>>;

/// Among [`Calibrations`], that of this host's own OpenSSL, for services whose library cannot be
/// calibrated.
pub const THIS_HOST: &str = "";
/// Libraries of one time differ by less than this factor in what the same operation costs.
const OTHER_LIBRARY: f64 = 2.0;

/// All costs that are known.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    ledger: &'a Ledger,
    calibrations: &'a Calibrations,
}

impl<'a> Costs<'a> {
    /// The costs in a ledger and in calibrations.
    pub const fn new(ledger: &'a Ledger, calibrations: &'a Calibrations) -> Self {
        Self {
            ledger,
            calibrations,
        }
    }

    /// Seconds that one handshake of a service saves if it does `to` in place of
    /// `from`, and who measured `to`; None where nobody did, or nobody `from`.
    pub(crate) fn saved(
        &self,
        service: &str,
        from: Operation,
        to: Operation,
    ) -> Option<(Range, CostSource)> {
        let account = self.ledger.service(service)?;
        let present = in_steps(account, from);
        let calibrated = self.calibrated(service, from, to);
        let measured = self.measured(service, account, present, from, to);
        match (measured, calibrated, present) {
            (Some(measured), ..) => Some(measured),
            (None, Some(difference), Some(present)) => {
                let there = self.calibration(service)?.get(&to)?;
                let seen = present.minus(*there);
                // What was seen in the service is nearer to it than the bare operation. A
                // calibration on a busy host may take far longer than the operation does there.
                let range = seen.widened_to(difference).bounded(present.high);
                Some((range, CostSource::Calibration))
            }
            (None, Some(difference), None) => {
                let bound = whole(account, from).map_or(f64::INFINITY, |whole| whole.high);
                Some((difference.bounded(bound), CostSource::Calibration))
            }
            // Nobody timed what the service does, but its handshakes tell.
            (None, None, Some(present)) => {
                let (there, source) = self.alone(service, to)?;
                Some((present.minus(there).bounded(present.high), source))
            }
            (None, None, None) => None,
        }
    }

    /// From handshakes of the service, or of other services.
    fn measured(
        &self,
        service: &str,
        account: &ServiceAccount,
        present: Option<Range>,
        from: Operation,
        to: Operation,
    ) -> Option<(Range, CostSource)> {
        let own = present.zip(in_steps(account, to));
        if let Some((from, to)) = own {
            return Some((from.minus(to), CostSource::ThisService));
        }
        if let Some(difference) = in_pairs(account, from, to) {
            return Some((difference, CostSource::ThisService));
        }
        let others = self.ledger.services().filter(|(name, _)| *name != service);
        let (_, there) = others
            // Samples show a lower bound: less of that would be too large a saving.
            .filter_map(|(_, other)| Some((samples(other, to), range(moments(other, to))?)))
            .max_by_key(|(samples, _)| *samples)?;
        Some((present?.minus(there), CostSource::ThisHost))
    }

    /// An operation in the service's library, or else in this host's.
    fn alone(&self, service: &str, operation: Operation) -> Option<(Range, CostSource)> {
        if let Some(calibration) = self.calibration(service) {
            return Some((*calibration.get(&operation)?, CostSource::Calibration));
        }
        let there = *self.calibration(THIS_HOST)?.get(&operation)?;
        let there = Range {
            low: there.low / OTHER_LIBRARY,
            high: there.high * OTHER_LIBRARY,
            ..there
        };
        Some((there, CostSource::OtherLibrary))
    }

    fn calibration(&self, service: &str) -> Option<&'a Calibration> {
        self.calibrations.get(service)?.as_ref().ok()
    }

    /// Seconds of a million bytes in the calibration of a service's library, in records of
    /// that length; None where it was not calibrated, or cannot do it.
    pub(crate) fn encryption(&self, service: &str, by: Protection, bytes: f64) -> Option<Range> {
        let known = self.calibration(service)?;
        let [long, short] =
            Records::ALL.map(|records| Some(*known.get(&Operation::Encryption(by, records))?));
        let (long, short) = (long?, short?);
        // What a record costs beside its bytes is divided among these.
        let [all, few] = Records::ALL.map(|records| 1.0 / records.bytes() as f64);
        let weight = (1.0 / bytes.clamp(1.0 / few, 1.0 / all) - all) / (few - all);
        Some(long.times(1.0 - weight).plus(short.times(weight)))
    }

    /// The services of the ledger but that one.
    pub fn others(&self, than: &str) -> impl Iterator<Item = &'a ServiceAccount> {
        let services = self.ledger.services();
        let others = services.filter(move |(name, _)| *name != than);
        others.map(|(_, account)| account)
    }

    /// Why no calibration says what an operation costs, as the end of a sentence.
    pub(crate) fn no_calibration(&self, service: &str) -> String {
        match self.calibrations.get(service) {
            None => "the library was not calibrated".to_owned(),
            Some(Ok(_)) => {
                "the library's calibration ran out of time or does not support it".to_owned()
            }
            Some(Err(reason)) => format!("the library was not calibrated: {reason}"),
        }
    }

    fn calibrated(&self, service: &str, from: Operation, to: Operation) -> Option<Range> {
        let known = self.calibration(service)?;
        Some(known.get(&from)?.minus(*known.get(&to)?))
    }
}

/// Seconds of an operation in the handshakes of a service in which it was measured as
/// a step, by probes or else by samples.
pub(crate) fn in_steps(account: &ServiceAccount, operation: Operation) -> Option<Range> {
    range(moments(account, operation)).or_else(|| sampled::cost(account, operation))
}

/// The same for a sentence; where it is from samples, that says so: they show a lower bound.
pub(crate) fn in_words(account: &ServiceAccount, operation: Operation) -> Option<String> {
    if let Some(measured) = range(moments(account, operation)) {
        return Some(format!("{} of CPU per handshake", time(measured.likely)));
    }
    let sampled = sampled::cost(account, operation)?;
    Some(format!(
        "at least {} of CPU per handshake (from samples)",
        time(sampled.likely)
    ))
}

fn samples(account: &ServiceAccount, operation: Operation) -> u64 {
    moments(account, operation).count()
}

fn moments(account: &ServiceAccount, operation: Operation) -> Moments {
    let roles = account.roles.values();
    let costs = roles.map(|role| match operation {
        Operation::KeyExchange(group) => role
            .steps
            .cost(Step::KeyExchange, |class| class.group == group),
        Operation::Signing(key) => role
            .steps
            .cost(Step::Signing, |class| class.signature == key),
        // No step of a handshake.
        Operation::Encryption(..) => Moments::default(),
    });
    costs.fold(Moments::default(), Moments::plus)
}

/// Seconds of whole handshakes with an operation: more than the operation itself.
fn whole(account: &ServiceAccount, operation: Operation) -> Option<Range> {
    let has = |key: &HandshakeKey| {
        key.role == Role::Server
            && match operation {
                Operation::KeyExchange(group) => key.group == group,
                Operation::Signing(signature) => key.signature == signature,
                Operation::Encryption(..) => false,
            }
    };
    let those = account.handshakes.iter().filter(|(key, _)| has(key));
    range(those.fold(Moments::default(), |sum, (_, one)| sum.plus(one.costs)))
}

/// Seconds between whole handshakes of a service that differ in nothing but the
/// operation: where steps cannot be seen.
fn in_pairs(account: &ServiceAccount, from: Operation, to: Operation) -> Option<Range> {
    let full = |(key, _): &(&HandshakeKey, _)| {
        key.role == Role::Server && key.resumption == Resumption::None
    };
    let mut best: Option<(u64, Range)> = None;
    for (key, sum) in account.handshakes.iter().filter(full) {
        let alike = match (from, to) {
            (Operation::KeyExchange(from), Operation::KeyExchange(to)) if key.group == from => {
                HandshakeKey { group: to, ..*key }
            }
            (Operation::Signing(from), Operation::Signing(to)) if key.signature == from => {
                HandshakeKey {
                    signature: to,
                    ..*key
                }
            }
            _ => continue,
        };
        let Some(other) = account.handshakes.get(&alike) else {
            continue;
        };
        let (Some(here), Some(there)) = (range(sum.costs), range(other.costs)) else {
            continue;
        };
        let weight = sum.costs.count().min(other.costs.count());
        if best.is_none_or(|(known, _)| weight > known) {
            best = Some((weight, here.minus(there)));
        }
    }
    best.map(|(_, range)| range)
}

/// A mean with its confidence interval; None where too few make it.
pub(crate) fn range(moments: Moments) -> Option<Range> {
    if moments.count() < SAMPLES {
        return None;
    }
    let margin = moments.margin()?;
    let mean = moments.mean();
    Some(Range::around(mean, margin + SYSTEMATIC * mean))
}
