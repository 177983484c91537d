//! Records of the kernel side in the words of the design. Pure.

use std::time::Duration;

use super::hello::{Direction, Opening, Upgrade};
use super::{Chunk, Evidence, Handshake};
use tlsprof_common::contract::{
    TLSPROF_CLOSER_REMOTE, TLSPROF_CLOSER_TIMEOUT, TLSPROF_DIRECTION_IN,
    TLSPROF_EVENT_CONNECTION_OPENED, TLSPROF_EVENT_EXEC, TLSPROF_EVENT_EXIT, TLSPROF_EVENT_FORK,
    TLSPROF_OUTCOME_COMPLETED, TLSPROF_OUTCOME_FAILED, TLSPROF_ROLE_CLIENT, TLSPROF_SOURCE_SOCKET,
    TLSPROF_TLS_ESTABLISHED, TLSPROF_TLS_HANDSHAKE, TLSPROF_UPGRADE_FTP, TLSPROF_UPGRADE_IMAP,
    TLSPROF_UPGRADE_LDAP, TLSPROF_UPGRADE_MYSQL, TLSPROF_UPGRADE_POP3, TLSPROF_UPGRADE_POSTGRESQL,
    TLSPROF_UPGRADE_SMTP, tlsprof_connection_event, tlsprof_handshake_event, tlsprof_process_event,
};
use tlsprof_common::{
    Carries, Closer, Connection, LifetimeCpu, Outcome, Owner, ProcessEvent, Reason, Remote,
    Resumption, Role, Source, Step, Steps, Waits, Whole,
};
use tlsprof_kernel::record::{HelloEvent, Record};

/// Decodes one record; None for a process event of unknown kind, and for an
/// opening without an owner.
pub fn decode(record: &Record<'_>) -> Option<Evidence> {
    match record {
        Record::Handshake(event) => Some(Evidence::Handshake(Box::new(handshake(event)))),
        Record::Process(event) => process(event).map(Evidence::Process),
        Record::Connection(event) => connection(event),
        Record::Hello(event) => Some(Evidence::Hello(Box::new(chunk(event)))),
    }
}

fn chunk(event: &HelloEvent<'_>) -> Chunk {
    let incoming = u32::from(event.head.direction) == TLSPROF_DIRECTION_IN;
    let by_client = incoming == (role(event.head.role) == Role::Server);
    Chunk {
        process: event.head.header.pid,
        connection: event.head.connection,
        direction: if by_client {
            Direction::FromClient
        } else {
            Direction::FromServer
        },
        opening: Opening {
            proxy_protocol: event.head.proxied != 0,
            upgrade: upgrade(event.head.upgrade),
        },
        offset: event.head.offset,
        bytes: event.bytes.to_vec(),
    }
}

fn upgrade(upgrade: u8) -> Option<Upgrade> {
    match u32::from(upgrade) {
        TLSPROF_UPGRADE_SMTP => Some(Upgrade::Smtp),
        TLSPROF_UPGRADE_FTP => Some(Upgrade::Ftp),
        TLSPROF_UPGRADE_IMAP => Some(Upgrade::Imap),
        TLSPROF_UPGRADE_POP3 => Some(Upgrade::Pop3),
        TLSPROF_UPGRADE_LDAP => Some(Upgrade::Ldap),
        TLSPROF_UPGRADE_POSTGRESQL => Some(Upgrade::Postgresql),
        TLSPROF_UPGRADE_MYSQL => Some(Upgrade::Mysql),
        _ => None,
    }
}

fn role(role: u8) -> Role {
    if u32::from(role) == TLSPROF_ROLE_CLIENT {
        Role::Client
    } else {
        Role::Server
    }
}

fn connection(event: &tlsprof_connection_event) -> Option<Evidence> {
    let owner = (event.header.pid != 0).then(|| Owner {
        process: event.header.pid,
        comm: text(&event.comm),
    });
    let role = role(event.role);
    let remote = (event.remote != 0).then_some(Remote {
        endpoint: event.remote,
        local_ports: event.local_ports,
    });
    if event.header.kind == TLSPROF_EVENT_CONNECTION_OPENED {
        return owner.map(|owner| {
            Evidence::Opened(tlsprof_common::Opening {
                id: event.connection,
                owner,
                role,
                port: event.port,
                remote,
                accept_wait: (event.accept_wait != 0)
                    .then(|| Duration::from_nanos(event.accept_wait)),
            })
        });
    }
    Some(Evidence::Closed(Box::new(Connection {
        id: event.connection,
        owner,
        remote,
        whole: (event.seen_open != 0).then(|| Whole {
            role,
            port: event.port,
            duration: Duration::from_nanos(event.duration),
            turns: Some(event.turns),
        }),
        ended: Duration::from_nanos(event.header.time),
        bytes_received: event.bytes_received,
        bytes_sent: event.bytes_sent,
        carries: match u32::from(event.tls) {
            TLSPROF_TLS_ESTABLISHED => Carries::Tls,
            TLSPROF_TLS_HANDSHAKE => Carries::Handshake,
            _ => Carries::Plain,
        },
        application_received: event.application_received,
        application_sent: event.application_sent,
        cipher: "unknown",
        resumption: Resumption::Unknown,
        segment: event.segment,
        round_trip: (event.round_trip != 0).then(|| Duration::from_nanos(event.round_trip)),
        closed_by: match u32::from(event.closed_by) {
            TLSPROF_CLOSER_REMOTE => Closer::Remote,
            TLSPROF_CLOSER_TIMEOUT => Closer::Timeout,
            _ => Closer::Local,
        },
        reset: event.reset != 0,
        time_wait: event.time_wait != 0,
    })))
}

fn process(event: &tlsprof_process_event) -> Option<ProcessEvent> {
    let process = event.header.pid;
    match event.header.kind {
        TLSPROF_EVENT_FORK => Some(ProcessEvent::Fork {
            parent: event.parent_pid,
            child: process,
            comm: text(&event.comm),
        }),
        TLSPROF_EVENT_EXEC => Some(ProcessEvent::Exec {
            process,
            path: text(&event.path),
            comm: text(&event.comm),
        }),
        TLSPROF_EVENT_EXIT => Some(ProcessEvent::Exit {
            process,
            cpu: LifetimeCpu {
                total: Duration::from_nanos(event.cpu),
                user_ticks: Duration::from_nanos(event.user),
                system_ticks: Duration::from_nanos(event.system),
            },
        }),
        _ => None,
    }
}

fn handshake(event: &tlsprof_handshake_event) -> Handshake {
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
        error_reason: (event.error_reason != 0).then_some(Reason {
            library: event.library.into(),
            number: event.error_reason,
        }),
        hello: None,
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

/// The kind of key from the length of its signature, in bytes: RSA signatures
/// are as long as the modulus; ECDSA ones (DER) are two integers of the curve's
/// size and 6 to 9 bytes, less leading zeros.
fn signature(bytes: u32) -> &'static str {
    match bytes {
        0 => "none",
        128 => "rsa_1024",
        256 => "rsa_2048",
        384 => "rsa_3072",
        512 => "rsa_4096",
        1024 => "rsa_8192",
        64 => "ed25519",
        114 => "ed448",
        60..=72 => "ecdsa_p256",
        92..=104 => "ecdsa_p384",
        126..=139 => "ecdsa_p521",
        _ => "other",
    }
}

/// The kernel side reports what is in a step; the rest is [`Step::Other`].
fn steps(event: &tlsprof_handshake_event) -> Steps {
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

fn waits(event: &tlsprof_handshake_event) -> Waits {
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

/// A C string in a fixed array; bytes that are not UTF-8 are replaced.
fn text(array: &[std::ffi::c_char]) -> String {
    let (text, _) = array.split_at(array.iter().take_while(|byte| **byte != 0).count());
    let bytes = text.iter().map(|byte| {
        let [byte] = byte.to_ne_bytes(); // i8 or u8, by the machine
        byte
    });
    String::from_utf8(bytes.collect())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a failed index is a failed test; the contract's numbers are small"
)]
mod tests {
    use super::*;
    use tlsprof_common::WaitReason;
    use tlsprof_common::contract::{
        TLSPROF_EVENT_CONNECTION_CLOSED, TLSPROF_EVENT_HANDSHAKE, TLSPROF_OUTCOME_ABANDONED,
        TLSPROF_ROLE_SERVER, tlsprof_event_header,
    };

    fn connection_event(kind: u32, pid: u32) -> tlsprof_connection_event {
        tlsprof_connection_event {
            header: tlsprof_event_header { kind, pid, time: 9 },
            role: TLSPROF_ROLE_CLIENT as u8,
            closed_by: TLSPROF_CLOSER_REMOTE as u8,
            duration: 5000,
            turns: 3,
            seen_open: 1,
            ..Default::default()
        }
    }

    #[test]
    fn a_protocol_is_named_by_its_number() {
        let names: Vec<&str> = (TLSPROF_UPGRADE_SMTP..=TLSPROF_UPGRADE_MYSQL)
            .map(|number| upgrade(number as u8).unwrap().label())
            .collect();
        let expected = ["smtp", "ftp", "imap", "pop3", "ldap", "postgresql", "mysql"];
        assert_eq!(names, expected);
        assert_eq!(upgrade(0), None);
    }

    #[test]
    fn a_closed_connection_keeps_its_facts() {
        let event = connection_event(TLSPROF_EVENT_CONNECTION_CLOSED, 7);
        let Some(Evidence::Closed(closed)) = connection(&event) else {
            unreachable!("a closed connection");
        };
        let whole = closed.whole.unwrap();
        assert_eq!((whole.role, whole.turns), (Role::Client, Some(3)));
        assert_eq!(whole.duration, Duration::from_micros(5));
        assert_eq!(closed.closed_by, Closer::Remote);
        assert_eq!(closed.owner.unwrap().process, 7);
    }

    #[test]
    fn of_a_connection_from_before_nothing_is_guessed() {
        let mut event = connection_event(TLSPROF_EVENT_CONNECTION_CLOSED, 0);
        event.seen_open = 0;
        let Some(Evidence::Closed(closed)) = connection(&event) else {
            unreachable!("a closed connection");
        };
        assert_eq!((closed.whole, closed.owner), (None, None));
    }

    #[test]
    fn an_opening_has_an_owner() {
        let event = |pid| connection_event(TLSPROF_EVENT_CONNECTION_OPENED, pid);
        assert!(matches!(connection(&event(7)), Some(Evidence::Opened(_))));
        assert!(connection(&event(0)).is_none());
    }

    fn event() -> tlsprof_handshake_event {
        tlsprof_handshake_event {
            header: tlsprof_event_header {
                kind: TLSPROF_EVENT_HANDSHAKE,
                pid: 7,
                time: 0,
            },
            role: TLSPROF_ROLE_SERVER as u8,
            outcome: TLSPROF_OUTCOME_COMPLETED as u8,
            steps_observed: 1,
            key_derivation_observed: 1,
            cpu: 1000,
            in_call: 1500,
            duration: 9000,
            ..Default::default()
        }
    }

    fn name(event: &mut tlsprof_handshake_event, group: &str) {
        for (to, from) in event.group.iter_mut().zip(group.bytes()) {
            *to = from.cast_signed();
        }
        event.groups_named = 1;
    }

    #[test]
    fn a_full_handshake_signs() {
        let mut event = event();
        event.step_calls[Step::KeyExchange as usize] = 3;
        event.step_calls[Step::Signing as usize] = 2;
        event.signature_bytes = 256;
        name(&mut event, "secp384r1");
        let handshake = handshake(&event);
        assert_eq!(handshake.resumption, Resumption::None);
        assert_eq!(handshake.group, "secp384r1");
        assert_eq!(handshake.signature, "rsa_2048");
    }

    #[test]
    fn a_resumed_handshake_does_not_sign() {
        let mut event = event();
        assert_eq!(handshake(&event).resumption, Resumption::Abbreviated);
        assert_eq!(handshake(&event).group, "none");
        event.step_calls[Step::KeyExchange as usize] = 3;
        name(&mut event, "X25519");
        assert_eq!(handshake(&event).resumption, Resumption::Psk);
        assert_eq!(handshake(&event).group, "x25519");
        assert_eq!(handshake(&event).signature, "none");
    }

    #[test]
    fn a_kem_is_known_by_its_ciphertext() {
        let mut event = event();
        event.step_calls[Step::KeyExchange as usize] = 2;
        event.groups_named = 1; // with an empty name, as libssl 3.5 does
        assert_eq!(handshake(&event).group, "unknown");
        event.encapsulated_bytes = 1120;
        assert_eq!(handshake(&event).group, "X25519MLKEM768");
    }

    #[test]
    fn an_unfinished_handshake_without_signature_may_be_either() {
        let mut event = event();
        event.outcome = TLSPROF_OUTCOME_ABANDONED as u8;
        assert_eq!(handshake(&event).resumption, Resumption::Unknown);
    }

    #[test]
    fn without_step_probes_nothing_is_guessed() {
        let mut event = event();
        event.steps_observed = 0;
        let handshake = handshake(&event);
        assert_eq!(handshake.resumption, Resumption::Unknown);
        assert_eq!(
            (handshake.group, handshake.signature),
            ("unknown", "unknown")
        );
        assert!(handshake.steps.is_none());
    }

    #[test]
    fn a_client_with_two_key_shares_does_not_know_which_was_taken() {
        let mut event = event();
        event.role = TLSPROF_ROLE_CLIENT as u8;
        event.step_calls[Step::KeyExchange as usize] = 3;
        name(&mut event, "X25519");
        assert_eq!(handshake(&event).group, "x25519");
        event.groups_named = 2;
        assert_eq!(handshake(&event).group, "unknown");
    }

    #[test]
    fn steps_add_up_to_the_cpu_time() {
        let mut event = event();
        event.step = [400, 300, 0, 0, 100];
        let steps = steps(&event);
        assert_eq!(
            steps.cpu.iter().sum::<Duration>(),
            Duration::from_nanos(event.cpu)
        );
        assert_eq!(steps.cpu[Step::Other as usize], Duration::from_nanos(200));
        event.step = [900, 300, 0, 0, 0];
        assert_eq!(
            super::steps(&event).cpu.iter().sum::<Duration>(),
            Duration::from_nanos(event.cpu)
        );
    }

    #[test]
    fn time_between_calls_is_what_calls_leave_of_the_duration() {
        assert_eq!(
            waits(&event())[WaitReason::BetweenCalls as usize],
            Duration::from_nanos(7500)
        );
    }

    #[test]
    fn signature_lengths_name_the_key() {
        for (bytes, name) in [
            (256, "rsa_2048"),
            (70, "ecdsa_p256"),
            (64, "ed25519"),
            (103, "ecdsa_p384"),
            (0, "none"),
            (999, "other"),
        ] {
            assert_eq!(signature(bytes), name, "{bytes} bytes");
        }
    }

    #[test]
    fn names_that_are_not_utf8_are_kept_readable() {
        assert_eq!(text(&[0x68, -1, 0, 0x41]), "h\u{fffd}");
    }
}
