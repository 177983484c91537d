//! From what a sample shows to what it counts for.

use super::kernel_functions::Meaning;
use super::{Activity, Basis, Mode, Observed, Place, Tls, Upkeep, UserCode, Verdict};
use crate::evidence::fingerprint::Kind;

/// What the kernel was doing, by the functions on its stack. The same for each
/// sample with that stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelWork {
    activity: Activity,
    mode: Mode,
    basis: Basis,
    traced: bool,
    upkeep: Option<Upkeep>,
}

impl KernelWork {
    /// From what the functions of a stack mean, innermost first; None for one that
    /// is not in the list.
    ///
    /// What lies outside the innermost softirq or interrupt is another's work: on
    /// one machine the peer's whole receive path runs as a softirq inside send.
    /// Within, the innermost function that decides wins, and if none does, the
    /// innermost that gives a hint.
    pub fn of(stack: impl IntoIterator<Item = Option<Meaning>>) -> Self {
        let (mut decided, mut hint) = (None, None);
        let (mut traced, mut mode, mut upkeep) = (false, Mode::System, None);
        for meaning in stack.into_iter().flatten() {
            match meaning {
                Meaning::Decides(activity) => decided = decided.or(Some(activity)),
                Meaning::Hints(activity) => hint = hint.or(Some(activity)),
                Meaning::Keeps(what) => {
                    hint = hint.or(Some(Activity::Application));
                    upkeep = upkeep.max(Some(what));
                }
                Meaning::Traces => traced = true,
                Meaning::Interrupts => {
                    mode = Mode::Softirq;
                    break;
                }
            }
        }
        let told = decided.or(hint);
        Self {
            activity: told.unwrap_or(Activity::Application),
            mode,
            basis: if told.is_some() || traced {
                Basis::KernelFunction
            } else {
                Basis::Unclassified
            },
            traced,
            upkeep,
        }
    }
}

/// What a sample counts for.
///
/// A handshake takes all that its thread does, user and system. What interrupts the
/// thread meanwhile is not part of it.
pub const fn classify(observed: &Observed) -> Verdict {
    let (activity, mode, basis, traced, upkeep) = match observed.place {
        Place::User(code) => {
            let (activity, basis) = of_user(code, observed.tls);
            let upkeep = match code {
                UserCode::Loader => Some(Upkeep::Loader),
                _ => None,
            };
            (activity, Mode::User, basis, false, upkeep)
        }
        Place::Kernel(work) => (
            work.activity,
            work.mode,
            work.basis,
            work.traced,
            work.upkeep,
        ),
    };
    let in_handshake = observed.handshake && !matches!(mode, Mode::Softirq);
    Verdict {
        activity: if in_handshake {
            Activity::Handshake
        } else {
            activity
        },
        basis: if in_handshake { Basis::Phase } else { basis },
        mode,
        traced,
        upkeep: match (upkeep, activity) {
            (Some(Upkeep::Memory), _) if in_handshake => Some(Upkeep::HandshakeMemory),
            (_, Activity::Application) if !in_handshake => upkeep,
            _ => None,
        },
    }
}

/// Only what proves record protection is encryption.
const fn of_user(code: UserCode, tls: Tls) -> (Activity, Basis) {
    let activity = match (code, tls) {
        (UserCode::Unknown, _) => return (Activity::Application, Basis::Unclassified),
        (UserCode::TlsLibrary, Tls::Unknown | Tls::Seen { .. })
        | (UserCode::Fingerprint(Kind::Aes | Kind::ChaCha), Tls::Seen { .. })
        | (UserCode::Fingerprint(Kind::Sha), Tls::Seen { hashed_mac: true }) => {
            Activity::Encryption
        }
        (UserCode::TlsLibrary, Tls::Absent) | (UserCode::Fingerprint(_) | UserCode::Loader, _) => {
            Activity::Application
        }
    };
    (activity, Basis::Code)
}
