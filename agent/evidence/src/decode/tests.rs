//! Records of the kernel side, and what they become.
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a failed index is a failed test; the contract's numbers are small"
)]

use super::handshake::{self as decoded, signature, waits};
use super::*;
use tlsprof_common::contract::{
    TLSPROF_EVENT_CONNECTION_CLOSED, TLSPROF_EVENT_HANDSHAKE, TLSPROF_OUTCOME_ABANDONED,
    TLSPROF_OUTCOME_COMPLETED, TLSPROF_ROLE_CLIENT, TLSPROF_ROLE_SERVER, tlsprof_event_header,
    tlsprof_handshake_event,
};
use tlsprof_common::{Step, WaitReason};

fn connection_event(kind: u32, pid: u32) -> tlsprof_connection_event {
    tlsprof_connection_event {
        header: tlsprof_event_header { kind, pid, time: 9 },
        role: TLSPROF_ROLE_CLIENT as u8,
        closed_by: TLSPROF_CLOSER_REMOTE as u8,
        duration: 5000,
        turns: 3,
        followed: 1,
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
fn turns_of_a_connection_that_was_not_followed_are_not_known() {
    let mut event = connection_event(TLSPROF_EVENT_CONNECTION_CLOSED, 7);
    event.followed = 0;
    let Some(Evidence::Closed(closed)) = connection(&event) else {
        unreachable!("a closed connection");
    };
    assert_eq!(closed.whole.unwrap().turns, None);
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
fn an_end_may_tell_its_opening() {
    let mut event = connection_event(TLSPROF_EVENT_CONNECTION_CLOSED, 7);
    (event.header.time, event.port) = (6000, 443);
    assert!(untold_opening(&Record::Connection(event)).is_none());
    event.untold = 1;
    let told = untold_opening(&Record::Connection(event));
    let Some((Evidence::Opened(opening), at)) = told else {
        unreachable!("an opening");
    };
    assert_eq!((at, opening.owner.process, opening.port), (1000, 7, 443));
    assert!(!opening.followed);
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
    let steps = decoded::steps(&event);
    assert_eq!(
        steps.cpu.iter().sum::<Duration>(),
        Duration::from_nanos(event.cpu)
    );
    assert_eq!(steps.cpu[Step::Other as usize], Duration::from_nanos(200));
    event.step = [900, 300, 0, 0, 0];
    assert_eq!(
        decoded::steps(&event).cpu.iter().sum::<Duration>(),
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
