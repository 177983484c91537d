//! When a rung above is taken.

use super::*;

/// That has led to windows, by one interval.
fn over_budget() -> Governor {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    assert_eq!(governor.judge(&with_calls(0.06, WITHIN)), change(5));
    governor
}

#[test]
fn a_rung_that_was_never_tried_is_not_free() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let storm = with_calls(
        0.06,
        Spent {
            probes: 0.06,
            handshakes: 1000.0,
            ..WITHIN
        },
    );
    assert_eq!(governor.judge(&storm), change(5));
    // Socket calls would have room all the time, and so the rungs above, up to the one with probes.
    let calmer = with_calls(
        0.002,
        Spent {
            probes: 0.0,
            ..storm
        },
    );
    for _ in 0..10 * PATIENCE {
        governor.judge(&calmer);
    }
    assert_eq!(governor.rung(), rung_at(3));
}

#[test]
fn after_a_rung_up_that_did_not_last_the_next_takes_longer() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = with_calls(
        0.06,
        Spent {
            probes: 0.0,
            ..WITHIN
        },
    );
    let cheap = with_calls(
        0.02,
        Spent {
            probes: 0.0,
            ..WITHIN
        },
    );
    let mut up_after = || {
        governor.judge(&expensive);
        1 + (0..1000)
            .take_while(|_| governor.judge(&cheap) == Decision::Keep)
            .count()
    };
    assert_eq!(up_after(), PATIENCE as usize);
    assert_eq!(up_after(), 2 * PATIENCE as usize);
    assert_eq!(up_after(), 4 * PATIENCE as usize);
}

#[test]
fn an_idle_target_proves_nothing() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let idle = Spent {
        host: 0.05,
        others: 0.05,
        ..Spent::default()
    };
    assert_eq!(governor.judge(&idle), Decision::Unknown);
    assert_eq!(governor.judge(&Spent::default()), Decision::Unknown);
}

#[test]
fn an_idle_target_beside_other_work_proves_no_room() {
    let mut governor = over_budget();
    let others_work = Spent {
        host: 4.0,
        others: 0.001,
        is_new: true,
        ..Spent::default()
    };
    for _ in 0..10 * PATIENCE {
        assert_eq!(governor.judge(&others_work), Decision::Keep);
    }
    // A handshake now and then does.
    let hardly_works = Spent {
        targets: 0.01,
        booked: 1.0,
        ..others_work
    };
    for _ in 1..PATIENCE {
        assert_eq!(governor.judge(&hardly_works), Decision::Keep);
        assert_eq!(governor.judge(&others_work), Decision::Keep);
    }
    assert_eq!(governor.judge(&hardly_works), change(4));
}

#[test]
fn targets_that_use_little_show_room_in_time() {
    let mut governor = over_budget();
    let keep_alive = Spent {
        host: 4.0,
        targets: 0.021,
        is_new: true,
        ..Spent::default()
    };
    for _ in 1..5 * PATIENCE {
        assert_eq!(governor.judge(&keep_alive), Decision::Keep);
    }
    assert_eq!(governor.judge(&keep_alive), change(4));
}

#[test]
fn a_window_that_was_not_counted_counts_later() {
    let mut governor = over_budget();
    let window = Spent {
        host: 4.0,
        is_new: true,
        ..Spent::default()
    };
    let handshake = Spent {
        booked: 1.0,
        is_new: false,
        ..window
    };
    for _ in 1..PATIENCE {
        assert_eq!(governor.judge(&window), Decision::Keep);
        assert_eq!(governor.judge(&handshake), Decision::Keep);
    }
    governor.judge(&window);
    assert_eq!(governor.judge(&handshake), change(4));
}

#[test]
fn one_window_is_not_enough_to_climb() {
    let mut governor = over_budget();
    let cheap = with_calls(
        0.002,
        Spent {
            probes: 0.0,
            ..WITHIN
        },
    );
    let no_window_since = Spent {
        is_new: false,
        ..cheap
    };
    assert_eq!(governor.judge(&cheap), Decision::Keep);
    for _ in 0..10 * PATIENCE {
        assert_eq!(governor.judge(&no_window_since), Decision::Keep);
    }
    assert_eq!(governor.judge(&cheap), change(4));
}

#[test]
fn a_rung_up_that_lasts_is_trusted_again() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = with_calls(
        0.06,
        Spent {
            probes: 0.0,
            ..WITHIN
        },
    );
    let cheap = with_calls(0.0, expensive);
    let intervals_to_climb = |governor: &mut Governor| {
        1 + (0..1000)
            .take_while(|_| governor.judge(&cheap) == Decision::Keep)
            .count()
    };
    for _ in 0..4 {
        governor.judge(&expensive);
        intervals_to_climb(&mut governor);
    }
    governor.judge(&expensive);
    let waits = [(); 3].map(|()| intervals_to_climb(&mut governor));
    // Four did not last. The next one has, before there is patience for another.
    assert_eq!(waits, [80, LASTING as usize + 1, PATIENCE as usize]);
}

#[test]
fn a_rung_up_is_taken_when_it_fits_by_what_it_cost_before() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let storm = with_calls(
        0.002,
        Spent {
            probes: 0.02,
            handshakes: 1000.0,
            ..WITHIN
        },
    );
    assert_eq!(governor.judge(&storm), change(1));
    let calmer = |handshakes: f64| Spent {
        probes: 8e-6 * handshakes,
        handshakes,
        ..storm
    };
    // Steps all the time would cost 20 us each: too much for 300.
    for _ in 0..2 * PATIENCE {
        assert_eq!(governor.judge(&calmer(300.0)), Decision::Keep);
    }
    for _ in 1..PATIENCE {
        assert_eq!(governor.judge(&calmer(200.0)), Decision::Keep);
    }
    assert_eq!(governor.judge(&calmer(200.0)), change(0));
}
