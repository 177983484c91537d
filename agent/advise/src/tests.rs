//! Each rule at its thresholds: one below, it is silent; there, it fires.
#![allow(clippy::unwrap_used, reason = "tests")]

mod accept_queue;
mod certificates;
mod chain;
mod cipher;
mod connections;
mod costs;
mod handshakes;
mod hybrid;
mod others;
mod refusal;
mod sums;
mod upkeep;

use std::time::Duration;

use super::{
    About, Calibration, Calibrations, Finding, Kind, Prediction, Setting, Thresholds, advise,
};
use tlsprof_common::Waits;
use tlsprof_evidence::hello::{
    CipherSuite, Facts, Group, Offer, SignatureScheme, Version, fixture,
};
use tlsprof_evidence::{Handshake, sample};
use tlsprof_ledger::Ledger;

pub(super) const SERVICE: &str = "nginx.service";

/// Numbers of a group and of a signature algorithm.
pub(super) const X25519: u16 = 29;
pub(super) const RSA_PSS: u16 = 0x0804;

/// So many handshakes or connections are the threshold.
pub(super) const ENOUGH: u64 = 100;

/// A hello with these groups, and signature algorithms by their numbers.
pub(super) fn hello(groups: &[u16], signatures: &[u16]) -> Option<Box<Facts>> {
    let mut facts = Facts::default();
    facts.offer = Some(Offer {
        versions: vec![Version::TLS13, Version::TLS12],
        ciphers: vec![CipherSuite(0x1301)],
        groups: groups.iter().copied().map(Group).collect(),
        signatures: signatures.iter().copied().map(SignatureScheme).collect(),
        ..Offer::default()
    });
    Some(Box::new(facts))
}

/// What the fixture of this name says.
pub(super) fn of_fixture(name: &str) -> Option<Box<Facts>> {
    let mut all = fixture::all().iter();
    let one = all.find(|one| one.name == name)?;
    fixture::fed(one.whole()).into_facts()
}

/// A full handshake of a server with TLS 1.3, whose key exchange and signature take so
/// many microseconds of CPU, and the rest 200.
pub(super) fn handshake(
    group: &'static str,
    signature: &'static str,
    [exchange, signing]: [u64; 2],
) -> Handshake {
    let mut one = sample::handshake();
    let micros = [exchange, signing, 0, 0, 50, 150].map(Duration::from_micros);
    one.group = group;
    one.signature = signature;
    one.cpu = micros.iter().sum();
    one.steps = one.steps.map(|mut steps| {
        steps.cpu = micros;
        steps
    });
    one.waits = Waits::default();
    one
}

/// What the rules find in a ledger, after so many CPU seconds of the service.
pub(super) fn found(ledger: Ledger, cpu: f64, calibration: Calibration) -> Vec<Finding> {
    found_in(ledger, cpu, calibration, (NGINX, SETTING))
}

/// The same of another service, or in another setting.
pub(super) fn found_in(
    mut ledger: Ledger,
    cpu: f64,
    calibration: Calibration,
    (about, setting): (About<'_>, Setting),
) -> Vec<Finding> {
    ledger.add_cpu(SERVICE, Duration::from_secs_f64(cpu), Duration::ZERO);
    let calibrations = Calibrations::from([(SERVICE.to_owned(), Ok(calibration))]);
    let thresholds = Thresholds::default();
    let about = |_: &str| Some(about);
    advise(&ledger, &calibrations, about, setting, thresholds)
}

/// A server that the user named, under load.
pub(super) const NGINX: About<'_> = About {
    executable: "/usr/sbin/nginx",
    named: true,
    listens: true,
    is_target: true,
    openssl: Some((3, 0)),
};

pub(super) const SETTING: Setting = Setting {
    elapsed: Duration::from_secs(30),
    aes_in_hardware: true,
    client_closes: None,
};

/// A kind of finding by its name.
pub(super) fn kind(label: &str) -> &'static Kind {
    Kind::named(label).unwrap()
}

pub(super) fn find(ledger: Ledger, cpu: f64, label: &str) -> Option<Finding> {
    let kind = kind(label);
    let found = found(ledger, cpu, Calibration::new());
    found.into_iter().find(|finding| finding.kind == kind)
}

/// The ledger that `book` makes of so many handshakes or connections.
pub(super) fn ledger(number: u64, book: impl Fn(&mut Ledger)) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.advance(Duration::from_secs(101));
    for _ in 0..number {
        book(&mut ledger);
    }
    ledger
}

/// Fires at so many, not at one less; and where the CPU is such that the saving is worth
/// it, not where it is 2% more.
pub(super) fn check(id: &str, cpu_at_threshold: f64, of: impl Fn(u64) -> Ledger) {
    let below = find(of(ENOUGH - 1), 0.5 * cpu_at_threshold, id);
    assert_eq!(below, None, "one too few");
    assert!(find(of(ENOUGH), 0.5 * cpu_at_threshold, id).is_some());
    assert!(find(of(ENOUGH), 0.99 * cpu_at_threshold, id).is_some());
    let not_worth = find(of(ENOUGH), 1.01 * cpu_at_threshold, id);
    assert_eq!(not_worth, None, "not worth it");
}

pub(super) fn likely_seconds(finding: &Finding) -> f64 {
    finding.prediction.saving().unwrap().cpu.likely
}

pub(super) fn is_unknown(finding: &Finding) -> bool {
    matches!(finding.prediction, Prediction::Unknown(_))
}

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!(found(Ledger::default(), 10.0, Calibration::new()), []);
}
