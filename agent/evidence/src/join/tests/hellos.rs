//! What hellos bring to a handshake, and what they cost.

use super::*;
use crate::hello::{Attempt, Facts, Offered};

fn facts(bench: &Bench) -> &Facts {
    bench.handshakes().pop().unwrap().hello.as_ref().unwrap()
}

#[test]
fn an_alert_in_clear_makes_a_socket_handshake_failed() {
    let mut bench = Bench::new();
    let abandoned = Handshake {
        outcome: Outcome::Abandoned,
        ..of(BARE, socket(7))
    };
    bench.hears(BARE, 7, REFUSED).ends(abandoned);
    assert_eq!(bench.only().outcome, Outcome::Failed);
}

#[test]
fn an_alert_that_comes_after_the_library_gave_up_is_kept() {
    let mut bench = Bench::new();
    let failed = Handshake {
        outcome: Outcome::Failed,
        ..library(Some(7))
    };
    bench.hears_first(PROBED, 7, REFUSED, 1).ends(failed);
    assert!(bench.handshakes().is_empty());
    let (direction, alert) = fixture::read(REFUSED).chunks.pop().unwrap();
    bench.take(chunk(PROBED, 7, direction, 0, alert));
    assert_eq!(facts(&bench).alerts.len(), 1);
    bench.waits(Duration::from_secs(2)).assert_idle();
    assert_eq!(bench.handshakes().len(), 1);
}

#[test]
fn a_failed_handshake_does_not_wait_beyond_its_connection() {
    let mut bench = Bench::new();
    let failed = Handshake {
        outcome: Outcome::Failed,
        ..library(Some(7))
    };
    bench.hears_first(PROBED, 7, REFUSED, 1).ends(failed);
    bench.closes(7);
    assert!(matches!(bench.booked[0], Evidence::Handshake(_)));
    assert!(matches!(bench.booked[1], Evidence::Closed(_)));
}

/// What comes after a handshake that completed is of no use.
#[test]
fn the_rest_of_a_hello_is_ignored_after_the_handshake() {
    let mut bench = Bench::new();
    bench
        .hears_first(PROBED, 7, TLS12, 3)
        .ends(library(Some(7)));
    assert_eq!(bench.only().signature, "rsa_2048");
    let rest = fixture::read(TLS12).chunks.remove(3);
    bench.take(chunk(PROBED, 7, rest.0, 999, rest.1));
    assert_eq!(bench.lost(Loss::HelloGap), 0);
    assert_eq!(bench.joiner.dialogues.len(), 0);
    assert_eq!(bench.joiner.charged, 0);
}

#[test]
fn a_gap_ends_an_exchange_and_is_counted_once() {
    let mut bench = Bench::new();
    let chunks = fixture::read(TLS12).chunks;
    bench.take(chunk(BARE, 7, chunks[0].0, 0, chunks[0].1.clone()));
    for offset in [100, 2000] {
        bench.take(chunk(BARE, 7, chunks[1].0, offset, chunks[1].1.clone()));
    }
    bench.ends(of(BARE, socket(7)));
    assert_eq!(bench.lost(Loss::HelloGap), 1);
    assert_eq!(bench.only().version, "unknown");
    assert!(facts(&bench).offer.is_some());
}

#[test]
fn bytes_that_were_peeked_at_count_once() {
    let mut bench = Bench::new();
    let chunks = fixture::read(FULL).chunks;
    let hello = chunks[0].1.clone();
    for length in [5, 40, hello.len()] {
        bench.take(chunk(BARE, 7, chunks[0].0, 0, hello[..length].to_vec()));
    }
    bench.take(chunk(BARE, 7, chunks[1].0, 0, chunks[1].1.clone()));
    bench.ends(of(BARE, socket(7)));
    assert_eq!(bench.only().version, "TLS1.3");
}

#[test]
fn tls_under_way_says_nothing_and_is_no_loss() {
    let mut bench = Bench::new();
    let record = vec![23, 3, 3, 0, 2, 1, 2];
    bench.take(chunk(BARE, 7, Direction::FromClient, 0, record));
    bench.ends(of(BARE, socket(7)));
    assert!(bench.joiner.losses.is_empty());
    assert!(bench.only().hello.is_none());
}

/// The session id of a hello of TLS 1.2, after record, message, version and random.
const SESSION: std::ops::Range<usize> = 44..76;

#[test]
fn a_refused_session_is_told_from_one_made_up() {
    let name = "openssl30-tls12-session-id-refused";
    let mut bench = Bench::new();
    bench.hears(BARE, 1, name).ends(of(BARE, socket(1)));
    assert_eq!(facts(&bench).attempt(), Attempt::Unknown);

    let chunks = fixture::read(name).chunks;
    let issued = chunks[1].1[SESSION].to_vec();
    let mut hello = chunks[0].1.clone();
    hello[SESSION].copy_from_slice(&issued);
    bench.take(chunk(BARE, 2, chunks[0].0, 0, hello));
    let mut answer = chunks[1].1.clone();
    answer[SESSION].fill(7);
    bench.take(chunk(BARE, 2, chunks[1].0, 0, answer));
    bench.ends(of(BARE, socket(2)));
    assert_eq!(facts(&bench).attempt(), Attempt::Refused);
    assert_eq!(facts(&bench).offered(), Offered::SessionId);
    // Nothing of an id is handed on.
    assert_eq!(facts(&bench).issued_session(), None);
    assert!(!format!("{:?}", facts(&bench)).contains(&format!("{issued:?}")));
}

#[test]
fn a_connection_that_is_forgotten_before_its_end_is_counted() {
    let mut bench = Bench::with(Limits {
        settled: 1,
        ..Limits::default()
    });
    bench.hears(BARE, 7, FULL).ends(of(BARE, socket(7)));
    // A second handshake on it takes no further room.
    bench.ends(of(BARE, socket(7)));
    assert_eq!(bench.lost(Loss::HelloTableFull), 0);
    bench.hears(BARE, 8, FULL).ends(of(BARE, socket(8)));
    assert_eq!(bench.lost(Loss::HelloTableFull), 1);
    let ciphers = [7, 8].map(|id| match bench.closes(id).booked.last() {
        Some(Evidence::Closed(connection)) => connection.cipher,
        other => panic!("{other:?}"),
    });
    assert_eq!(ciphers, [closed(7).cipher, "TLS_AES_256_GCM_SHA384"]);
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let limits = Limits {
        dialogues: 100,
        dialogue_bytes: 64 * 1024,
        settled: 50,
        processes: 10,
        held: 20,
    };
    let mut bench = Bench::with(limits);
    for id in 0..5000_u64 {
        let pid = Pid::try_from(id % 40).unwrap();
        let mut hello = vec![22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3];
        hello.resize(3000, 1);
        bench.take(chunk(pid, id, Direction::FromClient, 0, hello));
        match id % 5 {
            0 => bench.ends(of(pid, socket(id))),
            1 => bench.ends(of(pid, library(None))),
            2 => bench.ends(of(pid, library(Some(id)))),
            3 => bench.ends(of(PROBED, socket(id))),
            _ => &mut bench,
        };
        let joiner = &bench.joiner;
        assert!(joiner.charged <= limits.dialogue_bytes);
        assert!(joiner.dialogues.len() <= limits.dialogues);
        assert!(joiner.settled.len() <= limits.settled);
        assert!(joiner.processes.len() <= limits.processes);
        assert!(joiner.held.len() <= limits.held);
        assert!(joiner.sockets.len() + joiner.unfinished.len() <= limits.held);
    }
    assert!(bench.lost(Loss::HelloTableFull) > 0);
    assert!(bench.lost(Loss::HandshakeQueueFull) > 0);
    let ready = bench.joiner.flush();
    bench.booked.extend(ready);
    bench.assert_idle();
    // Room was short, but no handshake was lost.
    let given_up = bench.handshakes().len() + bench.comparisons().len();
    assert!((3900..=4000).contains(&given_up), "{given_up}");
}
