//! Which public-key work handshakes did, and which code may have done it.

use tlsprof_common::{Outcome, Resumption, Role, Step};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::primitive::Primitive;

/// A set of primitives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Codes(u32);

impl Codes {
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn of(those: &[Primitive]) -> Self {
        let (mut bits, mut rest) = (0, those);
        while let [first, others @ ..] = rest {
            bits |= 1 << *first as u32;
            rest = others;
        }
        Self(bits)
    }

    pub(super) const fn has(self, one: Primitive) -> bool {
        self.0 & 1 << one as u32 != 0
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Code for an algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code {
    /// For this algorithm alone.
    pub(crate) own: Codes,
    /// Of several, whatever else the library has.
    pub(crate) shared: Codes,
    /// [`Primitive::BigNumber`] does all of it where the library has no code of its own for it.
    pub(crate) in_general: bool,
    /// [`Primitive::BigNumber`] does a small part of it in any library: conversions, inverses.
    pub(crate) in_part: bool,
}

const GMP: Codes = Codes::of(&[Primitive::Multiprecision]);
const CURVES: Codes = Codes::of(&[Primitive::Multiprecision, Primitive::EllipticCurve]);
/// All code that signs and verifies, each for algorithms of its own.
pub(super) const SIGNING: Codes = Codes::of(&[
    Primitive::RsaDh,
    Primitive::BigNumber,
    Primitive::P256,
    Primitive::P384,
    Primitive::P521,
    Primitive::Curve25519,
    Primitive::Curve448,
    Primitive::MlDsa,
]);
const ANY: Code = Code {
    own: SIGNING.and(Codes::of(&[Primitive::MlKem])),
    shared: CURVES,
    in_general: true,
    in_part: true,
};
const RSA_DH: Code = Code {
    own: Codes::of(&[Primitive::RsaDh]),
    shared: GMP,
    in_general: true,
    in_part: true,
};
const ML_KEM: Code = Code {
    own: Codes::of(&[Primitive::MlKem]),
    shared: Codes::of(&[Primitive::Sha3]),
    in_general: false,
    in_part: false,
};
const ML_DSA: Code = Code {
    own: Codes::of(&[Primitive::MlDsa]),
    ..ML_KEM
};
/// Curves that no library that we know has code of its own for.
const OTHER_CURVE: Code = Code {
    own: Codes::NONE,
    // Of 512 bits: Brainpool.
    shared: CURVES.and(Codes::of(&[Primitive::RsaDh])),
    in_general: true,
    in_part: false,
};

const fn curve(own: Primitive, shared: Codes) -> Code {
    Code {
        own: Codes::of(&[own]),
        shared,
        in_general: true,
        in_part: false,
    }
}

const P256: Code = curve(Primitive::P256, CURVES);
const P384: Code = curve(Primitive::P384, CURVES);
const P521: Code = curve(Primitive::P521, CURVES);
const CURVE25519: Code = curve(Primitive::Curve25519, GMP);
const CURVE448: Code = Code {
    shared: GMP.and(Codes::of(&[Primitive::Sha3])),
    ..curve(Primitive::Curve448, GMP)
};

/// Public-key work of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub step: Step,
    /// What was negotiated for it; empty where that is not known.
    pub label: &'static str,
    /// None where the algorithm does not travel in clear.
    pub(crate) by: Option<Code>,
}

/// Of a peer's certificate.
pub(super) const VERIFICATION: Use = Use {
    step: Step::Verification,
    label: "",
    by: None,
};

/// What a handshake did, as far as it got.
pub(super) fn of(handshake: &Handshake) -> impl Iterator<Item = Use> {
    let known = |step, label| {
        move |code| Use {
            step,
            label,
            by: Some(code),
        }
    };
    let full = matches!(handshake.resumption, Resumption::None | Resumption::Unknown);
    let exchange = exchange(handshake).map(known(Step::KeyExchange, handshake.group));
    let transport = is_rsa_transport(handshake, full).then(|| match handshake.role {
        Role::Server => known(Step::RsaDecryption, "")(RSA_DH),
        Role::Client => known(Step::KeyExchange, "")(RSA_DH),
    });
    let signing = match full {
        true => signature(handshake.signature),
        false => Signature::None,
    };
    let signing = match signing {
        Signature::None => None,
        Signature::Hidden if handshake.role == Role::Client => None,
        Signature::Hidden => Some(None),
        Signature::By(code) => Some(Some(code)),
    };
    let signing = signing.map(|by| Use {
        step: Step::Signing,
        label: handshake.signature,
        by,
    });
    let verifies = match handshake.role {
        Role::Server => handshake.client_authenticates,
        Role::Client => full,
    };
    // The certificates' own signatures may be by other keys.
    let verification = verifies.then_some(VERIFICATION);
    exchange.chain(transport).chain(signing).chain(verification)
}

fn exchange(handshake: &Handshake) -> impl Iterator<Item = Code> + use<> {
    let completed = handshake.outcome == Outcome::Completed;
    let (first, second) = match handshake.group {
        "none" => (None, None),
        "x25519" => (Some(CURVE25519), None),
        "x448" => (Some(CURVE448), None),
        "secp256r1" => (Some(P256), None),
        "secp384r1" => (Some(P384), None),
        "secp521r1" => (Some(P521), None),
        "unknown" | "other" => (completed.then_some(ANY), None),
        group if group.starts_with("ffdhe") || group.starts_with("dhe_") => (Some(RSA_DH), None),
        group if group.contains("MLKEM") || group.contains("Kyber") => {
            let curves = [
                ("X25519", CURVE25519),
                ("SecP256r1", P256),
                ("SecP384r1", P384),
                ("curveSM2", OTHER_CURVE),
            ];
            let with = curves.into_iter().find(|(name, _)| group.starts_with(name));
            (Some(ML_KEM), with.map(|(_, code)| code))
        }
        _ => (Some(OTHER_CURVE), None),
    };
    // A client makes keys for groups that the server then does not choose.
    let offered = (handshake.role == Role::Client && first.is_some())
        .then_some([CURVE25519, P256, ML_KEM])
        .into_iter()
        .flatten();
    first.into_iter().chain(second).chain(offered)
}

fn is_rsa_transport(handshake: &Handshake, full: bool) -> bool {
    full && handshake.group == "none" && handshake.cipher.starts_with("TLS_RSA_WITH_")
}

enum Signature {
    None,
    Hidden,
    By(Code),
}

/// Code for the kind of key with which a side signed.
fn signature(key: &str) -> Signature {
    let ecdsa = |code| Code {
        in_part: true,
        ..code
    };
    Signature::By(match key {
        "none" => return Signature::None,
        "ecdsa_p256" => ecdsa(P256),
        "ecdsa_p384" => ecdsa(P384),
        "ecdsa_p521" => ecdsa(P521),
        "ed25519" => CURVE25519,
        "ed448" => CURVE448,
        key if key.starts_with("rsa_") => RSA_DH,
        key if key.starts_with("mldsa") => ML_DSA,
        key if key.starts_with("ecdsa_") => ecdsa(OTHER_CURVE),
        _ => return Signature::Hidden,
    })
}
