//! Connections that wait for what others show.

use super::*;

/// So many connections wait when all are followed.
fn waiting(ids: Range<u64>) -> Bench {
    let mut bench = Bench::before_windows();
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Between, &[]);
    bench.open(ids, false);
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Whole, &[]);
    assert!(bench.booked.is_empty());
    bench
}

#[test]
fn few_failures_wait_for_more_once_there_are_no_more_windows() {
    let mut bench = Bench::before_windows();
    bench.go_over(Mode::Window, &[]);
    bench.open(0..9, true);
    bench.fail(0..9);
    bench.go_over(Mode::Between, &[]);
    bench.open(9..509, false);
    bench.go_over(Mode::Window, &[]);
    assert!(bench.booked.is_empty());
    bench.go_over(Mode::Whole, &[]);
    bench.pay(32);
    assert!(bench.booked.is_empty());
    bench.open(509..510, true);
    bench.fail(509..510);
    bench.pay(64);
    assert_eq!(bench.booked, [7; 500]);
    bench.booked.clear();
    bench.window(510..520, 100);
    bench.open(520..523, false);
    assert_eq!(bench.booked, [100; 3]);
}

/// One of two connections failed, 20 wait, and all are followed.
fn after_one_failure() -> Bench {
    let mut bench = Bench::before_windows();
    bench.go_over(Mode::Window, &[]);
    bench.open(0..2, true);
    bench.fail(0..1);
    bench.go_over(Mode::Between, &[]);
    bench.open(2..22, false);
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Whole, &[]);
    bench
}

#[test]
fn failures_that_wait_are_counted_with_the_connections_that_they_are_of() {
    let mut bench = after_one_failure();
    // Too few for the beginning of the next windows.
    bench.open(22..40, true);
    bench.shake(22..40, 100);
    bench.booked.clear();
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Whole, &[]);
    assert_eq!(bench.booked, [7], "one of 20 failed, and 20 wait");
}

#[test]
fn one_failure_stands_for_one_where_as_many_connections_were_seen_as_wait() {
    let mut bench = after_one_failure();
    bench.open(22..30, true);
    bench.shake(22..30, 100);
    bench.pay(32);
    assert!(bench.booked.iter().all(|cpu| *cpu == 100));
    bench.open(30..40, true);
    bench.shake(30..40, 100);
    bench.pay(64);
    assert_eq!(bench.booked.iter().filter(|cpu| **cpu == 7).count(), 1);
}

#[test]
fn what_waits_is_booked_by_what_is_seen_later() {
    let mut bench = waiting(0..10);
    bench.open(10..14, true);
    bench.shake(10..12, 100);
    bench.pay(31);
    assert!(bench.booked.is_empty());
    bench.pay(32);
    bench.pay(64);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn what_waits_is_booked_by_those_that_had_time_for_a_handshake() {
    let mut bench = waiting(0..10);
    bench.open(10..1011, true);
    bench.pay(32);
    assert!(bench.booked.is_empty(), "their handshakes are under way");
    bench.shake(10..1010, 100);
    bench.pay(64);
    assert_eq!(bench.booked, [100; 10]);
}

#[test]
fn what_waits_is_kept_until_something_is_seen() {
    let mut bench = waiting(0..10);
    bench.pay(32);
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Between, &[]);
    bench.open(10..12, false);
    assert!(bench.booked.is_empty());
    bench.window(12..13, 100);
    assert_eq!(bench.booked, [100; 12]);
}

#[test]
fn what_was_seen_in_the_last_window_alone_is_looked_at_again() {
    let mut bench = waiting(0..10);
    bench.go_over(Mode::Window, &[]);
    bench.open(10..12, true);
    bench.go_over(Mode::Whole, &[]);
    // Their handshakes were still under way.
    bench.shake(10..12, 100);
    bench.pay(32);
    assert_eq!(bench.booked, [100; 10]);
}

#[test]
fn what_was_seen_before_the_next_windows_stands_for_what_waits() {
    let mut bench = waiting(0..10);
    bench.open(10..30, true);
    bench.shake(10..30, 100);
    bench.go_over(Mode::Window, &[]);
    assert_eq!(bench.booked, [100; 10]);
}

#[test]
fn what_opened_between_windows_and_is_used_later_waits_as_well() {
    let mut bench = waiting(0..0);
    bench.open(0..5, false);
    bench.open(5..7, true);
    bench.shake(5..7, 100);
    bench.pay(32);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn a_window_whose_connections_have_not_come_to_tls_says_nothing() {
    let mut bench = Bench::new(&[Mode::Window]);
    bench.open(0..3, true);
    bench.go_over(Mode::Between, &[0, 1, 2]);
    bench.open(3..8, false);
    bench.window(8..10, 100);
    assert_eq!(bench.booked, [100; 5]);
}

#[test]
fn nothing_is_kept_of_a_service_for_which_nothing_waits() {
    let mut bench = Bench::before_windows();
    bench.window(0..10, 100);
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Whole, &[]);
    assert_eq!(bench.cohorts.count(), 0);
}
