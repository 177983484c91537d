//! From what code computes to the steps that it may have computed it for.

use std::collections::BTreeSet;

use tlsprof_common::Step;
use tlsprof_evidence::primitive::Primitive;

use super::step_set::StepSet;
use super::uses::{Code, Codes, SIGNING, Use};

/// Kinds of keys by code that signs with no other. How long an RSA key is, it does not tell.
const KINDS: [(&str, Primitive); 6] = [
    ("rsa", Primitive::RsaDh),
    ("ecdsa_p256", Primitive::P256),
    ("ecdsa_p384", Primitive::P384),
    ("ecdsa_p521", Primitive::P521),
    ("ed25519", Primitive::Curve25519),
    ("ed448", Primitive::Curve448),
];

const X_CURVES: Codes = Codes::of(&[Primitive::Curve25519, Primitive::Curve448]);

/// What is known of the handshakes and the code of a service.
#[derive(Debug)]
pub(super) struct Assignment {
    /// With code that was guessed for none of them.
    uses: Vec<(Step, Code)>,
    /// What was sampled at all: a library that has code for an algorithm uses it.
    sampled: Codes,
}

impl Assignment {
    /// `sampled`: all code that was hit; `significant`: what was hit more often than by chance.
    pub(super) fn new(uses: &BTreeSet<Use>, sampled: Codes, significant: Codes) -> Self {
        let rsa = uses.iter().filter(|one| one.step == Step::Signing);
        let rsa: BTreeSet<&str> = rsa
            .map(|one| one.label)
            .filter(|key| key.starts_with("rsa_"))
            .collect();
        // A library may have code of its own for one length of key, and not for another.
        let sampled = match rsa.len() {
            0 | 1 => sampled,
            _ => sampled.without(Codes::of(&[Primitive::RsaDh])),
        };
        let known = known(uses);
        let explained = explained(&known, sampled);
        let signed_by_rsa = unexplained_kind(uses, explained, significant)
            .is_some_and(|(_, own)| own == Primitive::RsaDh);
        let hidden = uses.iter().filter(|one| one.by.is_none());
        let hidden = hidden.map(|one| {
            let mut code = hidden_code(one.step, explained, significant);
            if signed_by_rsa {
                code.shared = code.shared.without(Codes::of(&[Primitive::EllipticCurve]));
            }
            (one.step, code)
        });
        Self {
            uses: known.iter().copied().chain(hidden).collect(),
            sampled,
        }
    }

    /// The steps that this may have been computed for. `caller`: the step that its callers show.
    pub(super) fn steps(&self, primitive: Primitive, caller: Option<Step>) -> StepSet {
        caller.map_or_else(|| self.by_code(primitive), StepSet::of)
    }

    fn by_code(&self, primitive: Primitive) -> StepSet {
        let found = match primitive {
            Primitive::KeyDerivation => StepSet::of(Step::KeyDerivation),
            Primitive::BigNumber => self.big_number(),
            Primitive::EllipticCurve => self.elliptic_curve(),
            // Any of it.
            Primitive::PublicKey => self.having(|_| true),
            _ => self.having(|code| code.own.has(primitive) || code.shared.has(primitive)),
        };
        match found.is_empty() {
            true => StepSet::of(Step::Other),
            false => found,
        }
    }

    /// Of algorithms that the library has no code of its own for; else a part of others.
    fn big_number(&self) -> StepSet {
        let general = self.having(|code| {
            code.own.has(Primitive::BigNumber)
                || code.in_general && code.own.both(self.sampled).is_empty()
        });
        match general.is_empty() {
            true => self.having(|code| code.in_part),
            false => general,
        }
    }

    /// No library shares code between X25519 or X448 and other curves; Java shares some between these two.
    fn elliptic_curve(&self) -> StepSet {
        let others = self.having(|code| code.shared.has(Primitive::EllipticCurve));
        match others.is_empty() {
            true => self.having(|code| !code.own.both(X_CURVES).is_empty()),
            false => others,
        }
    }

    fn having(&self, wanted: impl Fn(&Code) -> bool) -> StepSet {
        let those = self.uses.iter().filter(|(_, code)| wanted(code));
        those.fold(StepSet::default(), |set, (step, _)| set.with(*step))
    }
}

/// The kind of key of a signature that does not travel in clear, if code tells it that nothing else explains.
/// Arithmetic on big numbers alone does not: it may be that of a curve.
pub(super) fn hidden_kind(
    uses: &BTreeSet<Use>,
    sampled: Codes,
    significant: Codes,
) -> Option<(&'static str, Primitive)> {
    unexplained_kind(uses, explained(&known(uses), sampled), significant)
}

fn unexplained_kind(
    uses: &BTreeSet<Use>,
    explained: Codes,
    significant: Codes,
) -> Option<(&'static str, Primitive)> {
    let is_hidden = |step| move |one: &Use| one.step == step && one.by.is_none();
    // Its code may be that of a peer's signature.
    if !uses.iter().any(is_hidden(Step::Signing)) || uses.iter().any(is_hidden(Step::Verification))
    {
        return None;
    }
    let unexplained = significant.both(SIGNING).without(explained);
    let kinds = KINDS.into_iter().filter(|(_, own)| {
        let with = match own {
            Primitive::RsaDh => Codes::of(&[*own, Primitive::BigNumber]),
            _ => Codes::of(&[*own]),
        };
        unexplained.has(*own) && unexplained.without(with).is_empty()
    });
    kinds.into_iter().next()
}

fn known(uses: &BTreeSet<Use>) -> Vec<(Step, Code)> {
    let known = uses.iter().filter_map(|one| Some((one.step, one.by?)));
    known.collect()
}

/// Code that may have been for these.
fn explained(known: &[(Step, Code)], sampled: Codes) -> Codes {
    known.iter().fold(Codes::NONE, |sum, (_, code)| {
        let general = match code.in_part || code.own.both(sampled).is_empty() {
            true if code.in_general => Codes::of(&[Primitive::BigNumber]),
            _ => Codes::NONE,
        };
        sum.and(code.own).and(code.shared).and(general)
    })
}

/// Code of a signature that does not travel in clear: what nothing else explains; if there is none,
/// any that may sign.
fn hidden_code(step: Step, explained: Codes, significant: Codes) -> Code {
    let signing = significant.both(SIGNING);
    let unexplained = signing.without(explained);
    let own = match (unexplained.is_empty(), signing.is_empty()) {
        (true, true) => SIGNING,
        (true, false) => signing,
        // Certificates of any kind may be issued by RSA.
        (false, _) if step == Step::Verification => {
            unexplained.and(Codes::of(&[Primitive::RsaDh, Primitive::BigNumber]))
        }
        (false, _) => unexplained,
    };
    Code {
        own,
        shared: Codes::of(&[Primitive::EllipticCurve, Primitive::Multiprecision]),
        in_general: false,
        in_part: true,
    }
}
