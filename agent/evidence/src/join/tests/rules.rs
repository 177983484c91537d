//! Each rule of the module's page.

use super::*;
use tlsprof_common::LifetimeCpu;

#[test]
fn a_named_connection_is_booked_at_once_and_the_socket_compared() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(library(Some(7)));
    assert_eq!(bench.only().version, "TLS1.3");
    assert_eq!(bench.only().group, "x25519");
    bench.ends(socket(7)).waits(HOLDS);
    assert_eq!(bench.only().source, Source::Library);
    let [comparison] = bench.comparisons()[..] else {
        panic!("one comparison");
    };
    assert_eq!(comparison.library, micros(1000));
    assert_eq!(comparison.socket, micros(1020));
    bench.assert_idle();
}

const HOLDS: Duration = Duration::from_secs(2);

#[test]
fn the_socket_may_see_the_end_first() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(socket(7));
    assert!(bench.handshakes().is_empty());
    bench.ends(library(Some(7)));
    assert_eq!(bench.only().cipher, "TLS_AES_256_GCM_SHA384");
    assert_eq!(bench.only().source, Source::Library);
    assert_eq!(bench.comparisons().len(), 1);
    bench.waits(HOLDS);
    assert_eq!(bench.handshakes().len(), 1);
}

#[test]
fn the_first_handshake_of_a_new_process_waits_for_its_twin() {
    let named = Handshake {
        named: true,
        ..of(BARE, socket(7))
    };
    let mut bench = Bench::new();
    bench.hears(BARE, 7, FULL).ends(named);
    assert!(bench.handshakes().is_empty());
    bench.ends(of(BARE, library(Some(7)))).waits(HOLDS);
    assert_eq!(bench.only().source, Source::Library);
    assert_eq!(bench.comparisons().len(), 1);
}

#[test]
fn once_the_probes_are_out_nothing_waits_for_them() {
    // Under way when they came out: an object of the library has the connection.
    let named = Handshake {
        named: true,
        ..socket(7)
    };
    let mut bench = Bench::new();
    bench.joiner.expect_libraries(false);
    bench.ends(named).ends(socket(8));
    assert_eq!(bench.sources(), [Source::Socket; 2]);
    bench.joiner.expect_libraries(true);
    bench.ends(socket(9));
    assert_eq!(bench.handshakes().len(), 2);
    bench.ends(library(Some(9)));
    assert_eq!(bench.handshakes().len(), 3);
}

#[test]
fn without_probes_the_socket_is_booked_at_once() {
    let mut bench = Bench::new();
    bench
        .hears(BARE, 7, TLS12)
        .ends(of(BARE, socket(7)))
        .closes(7);
    let handshake = bench.only();
    assert_eq!(handshake.source, Source::Socket);
    assert_eq!(handshake.signature, "rsa_2048");
    assert_eq!(handshake.resumption, Resumption::None);
    let Some(Evidence::Closed(connection)) = bench.booked.last() else {
        panic!("a closed connection");
    };
    assert_eq!(connection.cipher, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    assert_eq!(connection.resumption, Resumption::None);
    assert_eq!(connection.may_be_http2, Some(false));
}

#[test]
fn a_second_library_in_a_probed_process_is_told_by_the_socket() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(socket(7)).closes(7);
    assert!(bench.handshakes().is_empty());
    bench.waits(millis(900));
    assert!(bench.handshakes().is_empty());
    bench.waits(millis(200));
    assert_eq!(bench.only().source, Source::Socket);
    assert_eq!(bench.only().version, "TLS1.3");
    bench.assert_idle();
}

#[test]
fn twins_that_know_no_connection_are_paired() {
    for socket_first in [true, false] {
        let mut bench = Bench::new();
        bench.hears(PROBED, 7, FULL);
        if socket_first {
            bench.ends(socket(7)).ends(library(None));
        } else {
            bench.ends(library(None)).ends(socket(7));
        }
        assert!(bench.handshakes().is_empty());
        bench.waits(HOLDS).closes(7);
        assert_eq!(bench.only().source, Source::Library);
        assert_eq!(bench.only().connection, Some(7));
        assert_eq!(bench.only().version, "TLS1.3");
        assert_eq!(bench.comparisons().len(), 1);
        bench.assert_idle();
    }
}

#[test]
fn twins_with_the_nearest_end_are_paired() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).hears(PROBED, 8, TLS12);
    bench.ends(library(None)).ends(socket(7));
    bench.waits(millis(1)).ends(library(None)).ends(socket(8));
    bench.waits(HOLDS);
    let versions: Vec<_> = bench.handshakes().iter().map(|one| one.version).collect();
    assert_eq!(versions, ["TLS1.3", "TLS1.2"]);
    assert_eq!(bench.comparisons().len(), 2);
}

#[test]
fn a_handshake_that_is_over_before_is_no_twin() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(socket(7));
    bench.waits(millis(500)).ends(library(None)).waits(HOLDS);
    assert_eq!(bench.sources(), [Source::Socket, Source::Library]);
}

#[test]
fn a_handshake_that_names_no_connection_takes_no_twin_of_one_that_does() {
    let mut bench = Bench::new();
    let lasts = |handshake| Handshake {
        named: true,
        duration: millis(600),
        ..handshake
    };
    bench.hears(PROBED, 7, FULL).ends(library(None));
    bench.waits(millis(500)).ends(lasts(socket(7)));
    // The first has waited long enough now.
    bench.waits(millis(600)).ends(lasts(library(Some(7))));
    let handshakes = bench.handshakes();
    let connections: Vec<_> = handshakes.iter().map(|one| one.connection).collect();
    assert_eq!(connections, [None, Some(7)]);
    bench.waits(HOLDS).assert_idle();
    assert_eq!(bench.handshakes().len(), 2);
}

#[test]
fn client_and_server_of_one_process_are_not_paired() {
    let mut bench = Bench::new();
    let client = Handshake {
        role: Role::Client,
        ..library(None)
    };
    bench.hears(PROBED, 7, FULL).ends(socket(7)).ends(client);
    bench.waits(HOLDS);
    assert_eq!(bench.handshakes().len(), 2);
    assert!(bench.comparisons().is_empty());
}

#[test]
fn without_socket_evidence_nothing_waits() {
    let mut bench = Bench::new();
    bench.ends(library(None));
    assert_eq!(bench.handshakes().len(), 1);
    bench.assert_idle();
}

#[test]
fn a_renegotiation_is_a_handshake_of_its_own() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(library(Some(7)));
    bench.ends(socket(7)).waits(Duration::from_secs(60));
    bench.ends(library(Some(7))).closes(7).waits(HOLDS);
    let [first, second] = bench.handshakes()[..] else {
        panic!("two handshakes");
    };
    assert!(first.hello.is_some() && second.hello.is_none());
    assert_eq!(bench.comparisons().len(), 1);
}

#[test]
fn a_renegotiation_that_both_see_is_counted_once() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(library(Some(7)));
    bench.ends(socket(7)).waits(Duration::from_secs(60));
    bench.ends(library(Some(7))).ends(socket(7)).waits(HOLDS);
    assert_eq!(bench.sources(), [Source::Library, Source::Library]);
    assert_eq!(bench.comparisons().len(), 2);
}

#[test]
fn an_object_freed_after_its_connection_is_not_counted_again() {
    for id in [Some(7), None] {
        let mut bench = Bench::new();
        let given_up = |handshake| Handshake {
            outcome: Outcome::Abandoned,
            ..handshake
        };
        bench.hears_first(PROBED, 7, FULL, 1);
        bench.ends(given_up(socket(7))).closes(7);
        bench.waits(Duration::from_secs(30));
        assert_eq!(bench.only().source, Source::Socket);
        let late = Handshake {
            duration: Duration::from_secs(30),
            ..given_up(library(id))
        };
        bench.ends(late).waits(HOLDS);
        assert_eq!(bench.handshakes().len(), 1, "{id:?}");
    }
}

#[test]
fn the_last_handshakes_of_a_process_that_ended_are_twins_too() {
    let mut bench = Bench::new();
    bench.hears_first(PROBED, 7, FULL, 1);
    let exit = ProcessEvent::Exit {
        process: PROBED,
        cpu: LifetimeCpu::default(),
    };
    bench.take(Evidence::Process(exit));
    let abandoned = |handshake| Handshake {
        outcome: Outcome::Abandoned,
        ..handshake
    };
    // The process is known no more when its sockets are closed.
    let ends = Evidence::Handshake(Box::new(abandoned(socket(7))));
    bench.now += micros(1);
    let ready = bench.joiner.take(ends, bench.now, |_| false);
    bench.booked.extend(ready);
    bench.closes(7).ends(abandoned(library(Some(7))));
    assert_eq!(bench.only().source, Source::Library);
    bench.waits(Duration::from_secs(5)).assert_idle();
    assert_eq!(bench.joiner.processes.len(), 0);
}

#[test]
fn what_did_not_complete_is_not_compared() {
    let mut bench = Bench::new();
    let failed = Handshake {
        outcome: Outcome::Failed,
        ..library(Some(7))
    };
    bench.hears(PROBED, 7, REFUSED).ends(failed);
    let abandoned = Handshake {
        outcome: Outcome::Abandoned,
        ..socket(7)
    };
    bench.ends(abandoned).closes(7).waits(HOLDS);
    assert_eq!(bench.only().outcome, Outcome::Failed);
    assert!(bench.comparisons().is_empty());
}

#[test]
fn offloaded_work_is_not_compared() {
    let mut bench = Bench::new();
    let offloaded = Handshake {
        offloaded: true,
        unseen: Duration::from_secs(1),
        ..socket(7)
    };
    bench.hears(PROBED, 7, FULL).ends(library(Some(7)));
    bench.ends(offloaded).waits(HOLDS);
    assert_eq!(bench.handshakes().len(), 1);
    assert!(bench.comparisons().is_empty());
}

/// A handshake that another thread answered, after so many µs in which nobody was seen at work.
fn handed_over(id: u64, unseen: u64) -> Handshake {
    Handshake {
        offloaded: true,
        unseen: micros(unseen),
        cpu: micros(1000),
        ..of(BARE, socket(id))
    }
}

#[test]
fn two_threads_did_all_the_work_where_no_time_was_between() {
    let mut bench = Bench::new();
    let mut offloaded = |id, unseen| {
        bench.hears(BARE, id, FULL).ends(handed_over(id, unseen));
        bench.handshakes().last().unwrap().offloaded
    };
    assert!(offloaded(0, 251));
    assert!(!offloaded(1, 250));
    // That one speaks for its process, as long as it is not one of many.
    for id in 2..8 {
        assert!(!offloaded(id, 50_000), "{id}");
    }
    assert!(offloaded(8, 50_000));
    assert!(!offloaded(9, 0));
}

#[test]
fn two_threads_did_all_the_work_where_it_took_what_one_thread_takes() {
    let handed_over = |id, cpu| Handshake {
        cpu: micros(cpu),
        ..handed_over(id, 50_000)
    };
    let ends = |alone: u64, cpu| {
        let mut bench = Bench::new();
        for id in 0..alone {
            bench.hears(BARE, id, FULL).ends(of(BARE, socket(id)));
        }
        bench.hears(BARE, 99, FULL).ends(handed_over(99, cpu));
        bench.handshakes().last().unwrap().offloaded
    };
    assert_eq!(socket(0).cpu, micros(1020));
    assert!(!ends(20, 816));
    assert!(ends(20, 815));
    assert!(ends(19, 1020), "too few to know");
}

/// A handshake whose end came with a request.
fn with_request(finish_and_answer: u64) -> Handshake {
    Handshake {
        flights: Some([micros(900), Duration::ZERO]),
        cpu: micros(900),
        finish_and_answer: micros(finish_and_answer),
        ..of(BARE, socket(99))
    }
}

#[test]
fn the_end_that_comes_with_a_request_is_estimated_from_those_without() {
    let mut bench = Bench::new();
    for id in 0..19 {
        bench.hears(BARE, id, FULL).ends(of(BARE, socket(id)));
    }
    bench.hears(BARE, 99, FULL).ends(with_request(5000));
    assert_eq!(bench.handshakes().last().unwrap().cpu, micros(900));

    bench.hears(BARE, 20, FULL).ends(of(BARE, socket(20)));
    for (id, finish_and_answer, cpu) in [(100, 5000, 1020), (101, 30, 930)] {
        bench.hears(BARE, id, FULL);
        let ends = Handshake {
            connection: Some(id),
            ..with_request(finish_and_answer)
        };
        bench.ends(ends);
        let last = bench.handshakes().pop().unwrap();
        assert_eq!(last.cpu, micros(cpu));
        assert_eq!(last.flights.unwrap().iter().sum::<Duration>(), last.cpu);
    }
    // A resumed one is another kind.
    bench.hears(BARE, 102, RESUMED);
    let ends = Handshake {
        connection: Some(102),
        ..with_request(5000)
    };
    bench.ends(ends);
    assert_eq!(bench.handshakes().last().unwrap().cpu, micros(900));
}

#[test]
fn what_completed_on_the_wire_was_not_abandoned() {
    let unseen = |id| Handshake {
        outcome: Outcome::Abandoned,
        ..library(Some(id))
    };
    let mut bench = Bench::new();
    bench.hears(PROBED, 1, FULL).ends(socket(1)).ends(unseen(1));
    bench.hears_first(PROBED, 2, FULL, 1);
    bench.ends(unseen(2)).ends(socket(2)).closes(2);
    bench.waits(HOLDS);
    let booked: Vec<_> = bench.handshakes();
    assert_eq!(booked.len(), 2);
    for handshake in booked {
        assert_eq!(handshake.outcome, Outcome::Completed);
        assert_eq!(handshake.source, Source::Socket);
    }
    bench.assert_idle();
}
