//! Handshakes, from the events of both sources.

use std::time::Duration;

use super::fields::{role, text};
use crate::Handshake;
use crate::hello::{ecdsa_key, rsa_key};
use tlsprof_common::contract::{
    TLSPROF_OUTCOME_COMPLETED, TLSPROF_OUTCOME_FAILED, TLSPROF_SOURCE_SOCKET,
    tlsprof_handshake_event,
};
use tlsprof_common::{Outcome, Reason, Resumption, Role, Source, Step, Steps, Waits};

pub(super) fn handshake(event: &tlsprof_handshake_event) -> Handshake {
    let role = role(event.role);
    let outcome = match u32::from(event.outcome) {
        TLSPROF_OUTCOME_COMPLETED => Outcome::Completed,
        TLSPROF_OUTCOME_FAILED => Outcome::Failed,
        _ => Outcome::Abandoned,
    };
    let socket = u32::from(event.source) == TLSPROF_SOURCE_SOCKET;
    let work = Work::of(event);
    Handshake {
        process: event.header.pid,
        process_start: event.process_start,
        comm: text(&event.comm),
        role,
        source: if socket {
            Source::Socket
        } else {
            Source::Library
        },
        connection: (event.connection != 0).then_some(event.connection),
        named: event.named != 0,
        outcome,
        resumption: work.map_or(Resumption::Unknown, |work| work.resumption(outcome)),
        version: "unknown",
        cipher: "unknown",
        group: work.map_or("unknown", |work| work.group(event, role)),
        signature: work.map_or("unknown", |_| signature(event.signature_bytes)),
        began: Duration::from_nanos(event.header.time.saturating_sub(event.duration)),
        cpu: Duration::from_nanos(event.cpu),
        duration: Duration::from_nanos(event.duration),
        steps: work.map(|_| steps(event)),
        flights: socket.then(|| event.flight.map(Duration::from_nanos)),
        finish_and_answer: Duration::from_nanos(event.finish_and_answer),
        offloaded: event.handed_over != 0,
        unseen: Duration::from_micros(event.unseen_us.into()),
        waits: waits(event),
        calls: event.calls,
        probe_hits: event.probe_hits,
        client_authenticates: event.client_authenticates != 0,
        error_reason: (event.error_reason != 0).then_some(Reason {
            library: event.library.into(),
            number: event.error_reason,
        }),
        hello: None,
        estimate: None,
    }
}

/// Which public-key work a handshake did. Known only when the step probes were
/// attached throughout.
#[derive(Clone, Copy)]
struct Work {
    authenticated: bool,
    exchanged_keys: bool,
}

impl Work {
    fn of(event: &tlsprof_handshake_event) -> Option<Self> {
        let did = |step: Step| {
            event
                .step_calls
                .get(step as usize)
                .is_some_and(|calls| *calls > 0)
        };
        (event.steps_observed != 0).then(|| Self {
            authenticated: did(Step::Signing)
                || did(Step::Verification)
                || did(Step::RsaDecryption),
            exchanged_keys: did(Step::KeyExchange),
        })
    }

    /// A full handshake signs, verifies or decrypts; a resumed one does not. Of
    /// these, TLS 1.3 agrees on a new key (psk_dhe_ke, the only mode of
    /// OpenSSL's default), TLS 1.2 does not. A handshake that did not complete
    /// may have ended before any of this.
    fn resumption(self, outcome: Outcome) -> Resumption {
        match (self.authenticated, outcome, self.exchanged_keys) {
            (true, _, _) => Resumption::None,
            (false, Outcome::Completed, true) => Resumption::Psk,
            (false, Outcome::Completed, false) => Resumption::Abbreviated,
            (false, Outcome::Failed | Outcome::Abandoned, _) => Resumption::Unknown,
        }
    }

    fn group(self, event: &tlsprof_handshake_event, role: Role) -> &'static str {
        if !self.exchanged_keys {
            return "none";
        }
        if event.encapsulated_bytes > 0 {
            return kem_group(event.encapsulated_bytes);
        }
        // A client names each group for which it offers a key share; the one
        // that the server chose is not among the facts.
        let name = text(&event.group);
        if name.is_empty() || (role == Role::Client && event.groups_named > 1) {
            return "unknown";
        }
        group(&name)
    }
}

/// OpenSSL's name of a group as the TLS registry spells it
/// (IANA, TLS Supported Groups).
fn group(name: &str) -> &'static str {
    const NAMES: &[(&str, &str)] = &[
        ("prime256v1", "secp256r1"),
        ("P-256", "secp256r1"),
        ("secp384r1", "secp384r1"),
        ("P-384", "secp384r1"),
        ("secp521r1", "secp521r1"),
        ("P-521", "secp521r1"),
        ("X25519", "x25519"),
        ("X448", "x448"),
        ("ffdhe2048", "ffdhe2048"),
        ("ffdhe3072", "ffdhe3072"),
        ("ffdhe4096", "ffdhe4096"),
        ("ffdhe6144", "ffdhe6144"),
        ("ffdhe8192", "ffdhe8192"),
        ("X25519MLKEM768", "X25519MLKEM768"),
        ("SecP256r1MLKEM768", "SecP256r1MLKEM768"),
        ("SecP384r1MLKEM1024", "SecP384r1MLKEM1024"),
        ("MLKEM512", "MLKEM512"),
        ("MLKEM768", "MLKEM768"),
        ("MLKEM1024", "MLKEM1024"),
        ("brainpoolP256r1", "brainpoolP256r1"),
        ("brainpoolP384r1", "brainpoolP384r1"),
        ("brainpoolP512r1", "brainpoolP512r1"),
    ];
    NAMES
        .iter()
        .find(|(openssl, _)| openssl.eq_ignore_ascii_case(name))
        .map_or("other", |(_, registry)| registry)
}

/// The group from the length of the key share that answers a KEM's, in bytes:
/// the ciphertext of ML-KEM (FIPS 203, table 3) and, in a hybrid group, the other
/// public key (draft-ietf-tls-ecdhe-mlkem, 4.3).
fn kem_group(bytes: u32) -> &'static str {
    match bytes {
        768 => "MLKEM512",
        1088 => "MLKEM768",
        1568 => "MLKEM1024",
        1120 => "X25519MLKEM768",
        1153 => "SecP256r1MLKEM768",
        1665 => "SecP384r1MLKEM1024",
        _ => "other",
    }
}

/// The kind of key from the length of its signature alone, in bytes. Where two kinds
/// have signatures of that length, the one that always has it.
pub(super) fn signature(bytes: u32) -> &'static str {
    match bytes {
        0 => "none",
        64 => "ed25519",
        114 => "ed448",
        _ => {
            let length = bytes as usize;
            rsa_key(length).or(ecdsa_key(length)).unwrap_or("other")
        }
    }
}

/// The kernel side reports what is in a step; the rest is [`Step::Other`].
pub(super) fn steps(event: &tlsprof_handshake_event) -> Steps {
    let mut steps = Steps {
        key_derivation_observed: event.key_derivation_observed != 0,
        ..Steps::default()
    };
    let mut rest = event.cpu;
    for (account, nanoseconds) in steps.cpu.iter_mut().zip(event.step) {
        let nanoseconds = nanoseconds.min(rest);
        *account = Duration::from_nanos(nanoseconds);
        rest -= nanoseconds;
    }
    if let Some(other) = steps.cpu.get_mut(Step::Other as usize) {
        *other = Duration::from_nanos(rest);
    }
    steps
}

pub(super) fn waits(event: &tlsprof_handshake_event) -> Waits {
    let mut waits = Waits::default();
    for (account, nanoseconds) in waits.iter_mut().zip(event.wait) {
        *account = Duration::from_nanos(nanoseconds);
    }
    let between = event.duration.saturating_sub(event.in_call);
    if let Some(last) = waits.last_mut() {
        *last = Duration::from_nanos(between);
    }
    waits
}
