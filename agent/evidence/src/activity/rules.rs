//! From what a sample shows to what it counts for.

use super::kernel_functions::Meaning;
use super::types::{Activity, Basis, Mode, Packets, Tls, Upkeep, UserCode, Verdict};
use crate::fingerprint::Kind;

/// What the kernel was doing, by the functions on its stack. The same for each
/// sample with that stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelWork(Verdict);

impl KernelWork {
    /// From what the functions of a stack mean, innermost first; None for one that
    /// is not in the list.
    ///
    /// What lies outside the innermost softirq or interrupt is another's work: on
    /// one machine the peer's whole receive path runs as a softirq inside send.
    /// Within, the innermost function that decides wins, and if none does, the
    /// innermost that gives a hint. If there is none, the packets that pass decide.
    pub fn of(stack: impl IntoIterator<Item = Option<Meaning>>) -> Self {
        let (mut decided, mut hint, mut packets) = (None, None, None);
        let (mut traced, mut mode, mut upkeep) = (false, Mode::System, None);
        for meaning in stack.into_iter().flatten() {
            match meaning {
                Meaning::Decides(activity) => decided = decided.or(Some(activity)),
                Meaning::Hints(activity) => hint = hint.or(Some(activity)),
                Meaning::Keeps(what) => {
                    hint = hint.or(Some(Activity::Application));
                    upkeep = upkeep.max(Some(what));
                }
                Meaning::Passes(those) => packets = packets.or(Some(those)),
                Meaning::Traces => traced = true,
                Meaning::Interrupts => {
                    mode = Mode::Softirq;
                    break;
                }
            }
        }
        let found = decided.or(hint);
        let packets = packets.filter(|_| found.is_none());
        let found = found.or(packets.map(|packets| match packets {
            Packets::Any => Activity::SocketIo,
            Packets::NotTcp => Activity::Application,
        }));
        Self(Verdict {
            activity: found.unwrap_or(Activity::Application),
            mode,
            basis: if found.is_some() || traced {
                Basis::KernelFunction
            } else {
                Basis::Unclassified
            },
            traced,
            upkeep,
            packets,
        })
    }
}

/// What a sample shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The thread was at work on a TLS handshake.
    pub handshake: bool,
    /// TLS in its service.
    pub tls: Tls,
    /// Where it was.
    pub place: Place,
}

/// Where a thread was when the clock struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the program.
    User(UserCode),
    /// In the kernel: see [`kernel_symbols::KernelFunctions::work`].
    Kernel(KernelWork),
}

/// What a sample counts for.
///
/// A handshake takes all that its thread does, user and system. What interrupts the
/// thread meanwhile is not part of it.
pub const fn classify(observed: &Observed) -> Verdict {
    let verdict = match observed.place {
        Place::User(code) => {
            let (activity, basis) = of_user(code, observed.tls);
            Verdict {
                activity,
                mode: Mode::User,
                basis,
                traced: false,
                upkeep: match code {
                    UserCode::Loader => Some(Upkeep::Loader),
                    _ => None,
                },
                packets: None,
            }
        }
        Place::Kernel(KernelWork(verdict)) => verdict,
    };
    if !observed.handshake || matches!(verdict.mode, Mode::Softirq) {
        return Verdict {
            upkeep: match verdict.activity {
                Activity::Application => verdict.upkeep,
                _ => None,
            },
            ..verdict
        };
    }
    Verdict {
        activity: Activity::Handshake,
        basis: Basis::Phase,
        upkeep: match verdict.upkeep {
            Some(Upkeep::Memory) => Some(Upkeep::HandshakeMemory),
            _ => None,
        },
        ..verdict
    }
}

/// Only what proves record protection is encryption.
const fn of_user(code: UserCode, tls: Tls) -> (Activity, Basis) {
    let activity = match (code, tls) {
        (UserCode::Unknown, _) => return (Activity::Application, Basis::Unclassified),
        (UserCode::TlsLibrary, Tls::Unknown | Tls::Seen { .. })
        | (UserCode::Fingerprint(Kind::Aes | Kind::ChaCha), Tls::Seen { .. })
        | (
            UserCode::Fingerprint(Kind::Sha),
            Tls::Seen {
                hashed_mac: true, ..
            },
        ) => Activity::Encryption,
        (UserCode::TlsLibrary, Tls::Absent) | (UserCode::Fingerprint(_) | UserCode::Loader, _) => {
            Activity::Application
        }
    };
    (activity, Basis::Code)
}
