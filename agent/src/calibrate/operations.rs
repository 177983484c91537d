//! The operations that are timed.

use tlsprof_advise::{Operation, Protection, Records, Work, X25519MLKEM768};

/// What is timed of handshakes, by the names in the child's output, in the order in which predictions
/// need it. Keys are made for it, which takes
/// too long for larger RSA keys.
const PUBLIC_KEYS: [(&str, Operation); 8] = [
    ("x25519", Operation::KeyExchange("x25519")),
    ("ecdsa_p256", Operation::Signing("ecdsa_p256")),
    ("secp256r1", Operation::KeyExchange("secp256r1")),
    ("rsa_2048", Operation::Signing("rsa_2048")),
    (X25519MLKEM768, Operation::KeyExchange(X25519MLKEM768)),
    ("secp384r1", Operation::KeyExchange("secp384r1")),
    ("secp521r1", Operation::KeyExchange("secp521r1")),
    ("x448", Operation::KeyExchange("x448")),
];

/// What is timed, by the names in the child's output.
pub(super) fn operations(work: Work) -> Vec<(String, Operation)> {
    let encryption = || {
        Protection::ALL.into_iter().flat_map(|protection| {
            Records::ALL.map(|records| {
                let name = format!("{}/{}", protection.label(), records.bytes());
                (name, Operation::Encryption(protection, records))
            })
        })
    };
    match work {
        Work::PublicKeys => PUBLIC_KEYS
            .map(|(name, operation)| (name.to_owned(), operation))
            .into(),
        Work::Encryption => encryption().collect(),
    }
}
