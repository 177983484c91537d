//! What follows from the answers of a port. Pure.

use std::collections::BTreeSet;

use super::client::Failure;

/// What was learned of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All that was answered has this kind of key.
    Key(&'static str),
    /// The server has several, and takes the one that a client prefers.
    Ambiguous(BTreeSet<&'static str>),
    /// Nothing, for this reason.
    Nothing(String),
}

/// From the answers of one address, to a client that can verify RSA only and to
/// one that can verify all but RSA. A server that has no certificate for one of
/// them refuses it. If one fails for another reason, there may be a second
/// certificate: that is no answer.
pub(super) fn conclude(
    rsa: Result<&'static str, Failure>,
    other: Result<&'static str, Failure>,
) -> Finding {
    match (rsa, other) {
        (Ok(one), Ok(same)) if one == same => Finding::Key(one),
        (Ok(one), Ok(another)) => Finding::Ambiguous([one, another].into()),
        (Ok(kind), Err(failure)) | (Err(failure), Ok(kind)) if failure.is_refusal() => {
            Finding::Key(kind)
        }
        (Ok(kind), Err(failure)) | (Err(failure), Ok(kind)) => Finding::Nothing(format!(
            "it has a key of type {kind}; whether it has another is unknown: {failure}"
        )),
        (Err(failure), Err(_)) => Finding::Nothing(failure.to_string()),
    }
}

/// From the findings of all addresses of a port: which of them a handshake came
/// to is not known, so that they must agree.
pub(super) fn of_all(findings: Vec<Finding>) -> Finding {
    let mut kinds = BTreeSet::new();
    for finding in findings {
        match finding {
            Finding::Key(kind) => kinds.extend([kind]),
            Finding::Ambiguous(several) => kinds.extend(several),
            Finding::Nothing(reason) => return Finding::Nothing(reason),
        }
    }
    match kinds.first() {
        Some(kind) if kinds.len() == 1 => Finding::Key(kind),
        _ => Finding::Ambiguous(kinds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Finding {
        Finding::Ambiguous(["ecdsa_p256", "rsa_2048"].into())
    }

    #[test]
    fn one_key_is_refused_to_who_cannot_verify_it() {
        let key = Finding::Key("ed25519");
        assert_eq!(conclude(Err(Failure::Closed), Ok("ed25519")), key);
        assert_eq!(conclude(Ok("ed25519"), Err(Failure::Closed)), key);
        assert_eq!(conclude(Ok("ed25519"), Ok("ed25519")), key);
    }

    #[test]
    fn two_keys_are_ambiguous() {
        assert_eq!(conclude(Ok("rsa_2048"), Ok("ecdsa_p256")), both());
    }

    #[test]
    fn half_an_answer_is_none() {
        for half in [
            conclude(Ok("rsa_2048"), Err(Failure::TimedOut)),
            conclude(Err(Failure::TimedOut), Ok("rsa_2048")),
            conclude(Err(Failure::Closed), Err(Failure::Closed)),
        ] {
            assert!(matches!(half, Finding::Nothing(_)), "{half:?}");
        }
    }

    #[test]
    fn addresses_must_agree() {
        let rsa = || Finding::Key("rsa_2048");
        assert_eq!(of_all(vec![rsa(), rsa()]), rsa());
        assert_eq!(of_all(vec![rsa(), Finding::Key("ecdsa_p256")]), both());
        assert_eq!(of_all(vec![both(), rsa()]), both());
        let nothing = Finding::Nothing("silence".to_owned());
        assert_eq!(of_all(vec![rsa(), nothing.clone()]), nothing);
    }
}
