//! Handshakes that a library times, and that have no clock at their sockets.

use super::*;

const HOLDS: Duration = Duration::from_secs(2);

/// A handshake that a library measures, and whose socket's clock did not run.
fn untimed(id: u64) -> Handshake {
    Handshake {
        named: true,
        calls: 0,
        cpu: Duration::ZERO,
        flights: Some([Duration::ZERO; 2]),
        ..socket(id)
    }
}

#[test]
fn what_was_not_timed_twice_is_not_compared() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(library(Some(7)));
    bench.ends(untimed(7)).waits(HOLDS);
    bench.hears(PROBED, 8, FULL).ends(untimed(8));
    bench.ends(library(Some(8))).waits(HOLDS);
    assert_eq!(bench.handshakes().len(), 2);
    assert!(bench.comparisons().is_empty());
    let mut booked = bench.handshakes().into_iter();
    assert!(booked.all(|one| one.cpu == micros(1000) && !one.offloaded && one.hello.is_some()));
}

#[test]
fn without_the_librarys_word_its_cpu_time_is_a_lower_bound() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 7, FULL).ends(untimed(7)).waits(HOLDS);
    assert!(bench.only().offloaded);
    // Nor does it say how long the last part of others takes.
    for id in 10..40 {
        bench.hears(PROBED, id, FULL).ends(untimed(id)).waits(HOLDS);
    }
    let with_a_request = Handshake {
        finish_and_answer: micros(500),
        ..socket(50)
    };
    bench
        .hears(PROBED, 50, FULL)
        .ends(with_a_request)
        .waits(HOLDS);
    assert_eq!(bench.handshakes().last().unwrap().cpu, micros(1020));
}
