//! Whether a service can do hybrid post-quantum key exchange, so that no remedy takes it away.

use tlsprof_common::Outcome;
use tlsprof_ledger::ServiceAccount;

/// The hybrid group that all have in common, and the cheapest.
pub const X25519MLKEM768: &str = "X25519MLKEM768";

/// The first version of OpenSSL with ML-KEM (its CHANGES, 3.5.0).
const WITH_ML_KEM: (u32, u32) = (3, 5);

/// Whether a service has X25519MLKEM768.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hybrid {
    /// Its library has it, or it was negotiated.
    Has,
    /// Its library is too old.
    Lacks,
    /// The library is not known.
    Unknown,
}

impl Hybrid {
    /// All, in the order in which pages show them.
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Has, Self::Lacks, Self::Unknown];

    /// Of a service with that version of OpenSSL.
    pub(super) fn of(openssl: Option<(u32, u32)>, account: &ServiceAccount) -> Self {
        let completed = |outcome| outcome == Outcome::Completed;
        let mut keys = account.handshakes.keys();
        let used = keys.any(|key| completed(key.outcome) && key.group.contains("MLKEM"));
        match openssl {
            _ if used => Self::Has,
            Some(version) if version >= WITH_ML_KEM => Self::Has,
            Some(_) => Self::Lacks,
            None => Self::Unknown,
        }
    }
}
