#![allow(clippy::indexing_slicing, reason = "tests")]

mod ranges;
mod turns;
mod waiting;

use std::mem;
use std::ops::Range;
use std::time::Duration;

use tlsprof_common::Outcome;

use super::cohort::LEAST_BEFORE;
use super::*;
use tlsprof_evidence::Estimate;
use tlsprof_evidence::sample::{connection, handshake, opening};

/// Cohorts, and the CPU times in microseconds of what they had booked.
#[derive(Default)]
struct Bench {
    cohorts: Cohorts,
    booked: Vec<u128>,
    estimates: Vec<Estimate>,
    now: Duration,
    /// When the last window began.
    began: Duration,
}

impl Bench {
    fn note(&mut self, evidence: &Evidence) {
        let Evidence::Handshake(handshake) = evidence else {
            unreachable!("nothing else is estimated");
        };
        self.booked.push(handshake.cpu.as_micros());
        self.estimates.extend(handshake.estimate);
    }
}

impl Bench {
    fn new(modes: &[Mode]) -> Self {
        let mut bench = Self::default();
        for mode in modes {
            bench.go_over(*mode, &[]);
        }
        bench
    }

    /// Socket calls are seen all the time, and there may be windows later.
    fn before_windows() -> Self {
        Self {
            cohorts: Cohorts::new(true),
            ..Self::default()
        }
    }

    fn open(&mut self, ids: Range<u64>, followed: bool) {
        let mut cohorts = mem::take(&mut self.cohorts);
        for id in ids {
            let one = Opening {
                id,
                followed,
                ..opening(Role::Server)
            };
            cohorts.opened("nginx", &one, &mut |evidence| self.note(evidence));
        }
        self.cohorts = cohorts;
    }

    /// Handshakes of these connections, that took so many microseconds.
    fn shake(&mut self, ids: Range<u64>, cpu: u64) {
        for id in ids {
            let one = Handshake {
                cpu: Duration::from_micros(cpu),
                connection: Some(id),
                ..handshake()
            };
            self.cohorts.handshake("nginx", &one);
        }
    }

    fn fail(&mut self, ids: Range<u64>) {
        for id in ids {
            let failed = Handshake {
                outcome: Outcome::Failed,
                cpu: Duration::from_micros(7),
                connection: Some(id),
                ..handshake()
            };
            self.cohorts.handshake("nginx", &failed);
        }
    }

    fn go_over(&mut self, mode: Mode, cut: &[ConnectionId]) {
        let mut cohorts = mem::take(&mut self.cohorts);
        cohorts.go_over(mode, self.now, cut, &mut |service, evidence| {
            assert_eq!(service, "nginx");
            self.note(evidence);
        });
        self.cohorts = cohorts;
    }

    fn pay(&mut self, seconds: u64) {
        let mut cohorts = mem::take(&mut self.cohorts);
        let now = self.now + Duration::from_secs(seconds);
        cohorts.pay(now, &mut |_, evidence| self.note(evidence));
        self.cohorts = cohorts;
    }

    fn window(&mut self, ids: Range<u64>, cpu: u64) {
        self.go_over(Mode::Window, &[]);
        self.open(ids.clone(), true);
        self.shake(ids, cpu);
        self.go_over(Mode::Between, &[]);
    }
}

#[test]
fn all_the_time_nothing_is_booked_twice() {
    let mut bench = Bench::default();
    bench.open(0..10, true);
    bench.shake(0..10, 100);
    assert!(bench.booked.is_empty());
}

#[test]
fn connections_that_were_not_followed_have_the_handshakes_of_the_last_cohort() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window(0..10, 100);
    bench.open(10..15, false);
    assert_eq!(bench.booked, [100; 5]);
    bench.window(15..25, 300);
    bench.open(25..27, false);
    assert_eq!(bench.booked, [100, 100, 100, 100, 100, 300, 300]);
}

#[test]
fn all_of_a_cohort_take_turns() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..3, true);
    for (id, cpu) in [(0, 100), (1, 200), (2, 300)] {
        bench.shake(id..id + 1, cpu);
    }
    bench.go_over(Mode::Between, &[]);
    bench.open(3..7, false);
    assert_eq!(bench.booked, [100, 200, 300, 100]);
}

#[test]
fn connections_before_any_window_wait_for_one() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.open(0..5, false);
    assert!(bench.booked.is_empty());
    bench.window(5..7, 100);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn what_was_seen_before_any_window_stands_for_the_first_connections() {
    let mut bench = Bench::before_windows();
    bench.open(0..40, true);
    bench.shake(0..20, 100);
    assert!(bench.booked.is_empty());
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Between, &[]);
    bench.open(40..50, false);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn handshakes_of_connections_from_before_do_not_count() {
    let mut bench = Bench::before_windows();
    bench.open(0..1000, true);
    bench.open(1000..1040, true);
    // The first thousand end theirs late.
    bench.shake(0..1020, 100);
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Between, &[]);
    bench.open(1040..1050, false);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn a_window_without_connections_says_nothing() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window(0..2, 100);
    bench.window(2..2, 100);
    bench.open(2..4, false);
    assert_eq!(bench.booked, [100; 2]);
}

#[test]
fn connections_without_tls_have_no_handshakes() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..20, true);
    bench.shake(0..5, 100);
    bench.go_over(Mode::Between, &[]);
    bench.open(20..60, false);
    assert_eq!(bench.booked, [100; 10]);
}

#[test]
fn what_was_cut_off_is_in_no_cohort() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..10, true);
    bench.shake(0..8, 100);
    bench.go_over(Mode::Between, &[8, 9]);
    bench.open(10..18, false);
    assert_eq!(bench.booked, [100; 8]);
}

#[test]
fn few_failures_are_not_booked_again() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..10, true);
    bench.shake(0..9, 100);
    bench.fail(9..10);
    bench.go_over(Mode::Between, &[]);
    bench.open(10..20, false);
    assert_eq!(bench.booked, [100; 9]);
}

#[test]
fn failures_of_several_windows_add_up_until_they_are_enough() {
    let mut bench = Bench::new(&[Mode::Between]);
    // One in ten fails, one in a window.
    let mut booked = [0; 30];
    for (window, failures) in booked.iter_mut().enumerate() {
        bench.go_over(Mode::Window, &[]);
        bench.open(0..10, true);
        bench.shake(0..9, 100);
        bench.fail(9..10);
        bench.go_over(Mode::Between, &[]);
        bench.open(10..50, false);
        *failures = bench.booked.iter().filter(|cpu| **cpu == 7).count();
        assert!(*failures == 0 || window >= 9);
    }
    // In the tenth all that waited, and from then on as they come.
    assert_eq!([booked[8], booked[9], booked[29]], [0, 40, 120]);
}

#[test]
fn failures_that_come_no_more_are_booked_no_more() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..20, true);
    bench.shake(0..10, 100);
    bench.fail(10..20);
    bench.go_over(Mode::Between, &[]);
    for _ in 0..3 {
        bench.window(20..30, 100);
    }
    bench.booked.clear();
    bench.open(30..60, false);
    assert_eq!(bench.booked, [100; 30]);
}

#[test]
fn many_failures_are_booked_like_other_handshakes() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..20, true);
    bench.fail(0..20);
    bench.go_over(Mode::Between, &[]);
    bench.open(20..25, false);
    assert_eq!(bench.booked, [7; 5]);
}

#[test]
fn handshakes_under_way_since_before_a_window_are_not_of_its_connections() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.shake(0..5, 900);
    bench.open(5..9, true);
    bench.shake(5..9, 100);
    bench.go_over(Mode::Between, &[]);
    bench.open(9..13, false);
    assert_eq!(bench.booked, [100; 4]);
}

#[test]
fn of_many_some_are_kept_and_all_count() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window(0..1000, 100);
    bench.open(1000..3000, false);
    assert_eq!(bench.booked.len(), 2000);
}

#[test]
fn a_service_without_tls_owes_nothing_later() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..10, true);
    bench.go_over(Mode::Between, &[]);
    bench.open(10..1000, false);
    bench.window(1000..1001, 100);
    assert!(bench.booked.is_empty());
}

#[test]
fn a_connection_that_was_reset_is_of_the_service_on_its_port() {
    let mut bench = Bench::new(&[Mode::Between]);
    let mut reset = connection();
    if let Some(whole) = &mut reset.whole {
        whole.turns = None;
    }
    assert_eq!(bench.cohorts.opening_of(&reset), None);
    bench.open(0..1, false);
    let found = bench.cohorts.opening_of(&reset);
    assert_eq!(found.map(|found| found.owner.process), Some(4711));
    // Nobody read it, although socket calls were seen.
    if let Some(whole) = &mut reset.whole {
        whole.turns = Some(0);
    }
    assert_eq!(bench.cohorts.opening_of(&reset), None);
}

/// A connection that moved so many bytes in each direction.
fn ended(carries: Carries, bytes: u64, handshake: u64) -> Connection {
    let mut one = connection();
    if let Some(whole) = &mut one.whole {
        whole.turns = None;
    }
    Connection {
        carries,
        bytes_received: bytes,
        bytes_sent: bytes,
        application_received: bytes - handshake,
        application_sent: bytes - handshake,
        ..one
    }
}

#[test]
fn bytes_of_a_connection_that_was_not_followed_are_those_after_a_handshake() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window(0..4, 100);
    bench
        .cohorts
        .closed("nginx", &mut ended(Carries::Tls, 5000, 700));
    let mut other = ended(Carries::Plain, 9000, 9000);
    bench.cohorts.closed("nginx", &mut other);
    assert_eq!(other.carries, Carries::Tls);
    assert_eq!(other.application_received, 8300);
    assert_eq!(other.application_sent, 8300);
}

#[test]
fn a_connection_that_was_not_followed_may_be_http2_where_others_may() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window(0..4, 100);
    for may_be_http2 in [Some(false), Some(true)] {
        let mut of_window = Connection {
            may_be_http2,
            ..ended(Carries::Tls, 5000, 700)
        };
        bench.cohorts.closed("nginx", &mut of_window);
    }
    let others = [(); 4].map(|()| {
        let mut other = Connection {
            may_be_http2: None,
            ..ended(Carries::Plain, 9000, 9000)
        };
        bench.cohorts.closed("nginx", &mut other);
        other.may_be_http2
    });
    assert_eq!(others, [Some(false), Some(true), Some(false), Some(true)]);
}

#[test]
fn connections_without_tls_stay_what_they_are() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..20, true);
    bench.shake(0..10, 100);
    bench.go_over(Mode::Between, &[]);
    bench
        .cohorts
        .closed("nginx", &mut ended(Carries::Tls, 5000, 700));
    let of_tls = (0..10).filter(|_| {
        let mut other = ended(Carries::Plain, 9000, 9000);
        bench.cohorts.closed("nginx", &mut other);
        other.carries == Carries::Tls
    });
    assert_eq!(of_tls.count(), 5);
}
