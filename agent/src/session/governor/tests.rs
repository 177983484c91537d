mod climbing;

use super::ladder::{LADDER, LOWEST, calls, steps};
use super::*;
use std::time::Duration;

const BUDGET: f64 = 0.01;
const WITHIN: Spent = Spent {
    host: 1.0,
    targets: 1.0,
    always: InWindows {
        calls: 0.002,
        switches: 0.0,
    },
    windows: InWindows {
        calls: 0.001,
        switches: 0.0,
    },
    is_new: true,
    probes: 0.004,
    steps: 1.0,
    derivation: 0.0,
    key_derivation: Duty::NEVER,
    states: 0.0005,
    others: 0.0005,
    handshakes: 100.0,
    booked: 100.0,
};

/// What such hooks on socket calls cost, with windows of half a second.
fn in_windows(always: InWindows, spent: Spent) -> Spent {
    Spent {
        always,
        windows: always.times(0.5),
        ..spent
    }
}

fn with_calls(calls: f64, spent: Spent) -> Spent {
    let always = InWindows {
        calls,
        switches: spent.always.switches,
    };
    in_windows(always, spent)
}

fn change(level: usize) -> Decision {
    Decision::Change(rung_at(level))
}

#[test]
fn each_rung_costs_less_than_the_one_above() {
    for pair in LADDER.windows(2) {
        let [above, below] = pair else {
            unreachable!("two");
        };
        assert!(below.steps.ratio() <= above.steps.ratio());
        assert!(below.library <= above.library);
        assert!(below.calls.ratio() <= above.calls.ratio());
        assert_ne!(below, above);
    }
}

#[test]
fn within_the_budget_nothing_changes() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    for _ in 0..100 {
        assert_eq!(governor.judge(&WITHIN), Decision::Keep);
    }
}

#[test]
fn expensive_probes_go_step_by_step() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = Spent {
        probes: 0.02,
        ..WITHIN
    };
    assert_eq!(governor.judge(&expensive), change(1));
    // Of those that are left most count handshakes: to probe steps still less saves too little.
    assert_eq!(governor.judge(&expensive), change(3));
}

#[test]
fn two_judgements_lead_to_what_the_budget_allows() {
    for (calls, counting, steps) in [0.0, 0.002, 0.01, 0.04, 0.2, 2.0]
        .into_iter()
        .flat_map(|calls| [0.0, 0.003, 0.0085, 0.02, 0.3].map(|counting| (calls, counting)))
        .flat_map(|(calls, counting)| {
            // Steps cost at most what is left beside the least part of counting.
            [0.0, 1.0, 7.0 / 3.0].map(|times| (calls, counting, counting * times))
        })
    {
        let mut governor = Governor::new(BUDGET, Keep::Connections);
        let probes = |rung: Rung| match rung.library {
            true => counting + steps * rung.steps.ratio(),
            false => 0.0,
        };
        let spent = |rung: Rung| {
            let probes = probes(rung);
            let steps = rung.steps.ratio();
            with_calls(
                calls,
                Spent {
                    probes,
                    steps,
                    ..WITHIN
                },
            )
        };
        for _ in 0..2 {
            governor.judge(&spent(governor.rung()));
        }
        let rung = governor.rung();
        let share = governor.cost(&spent(rung));
        assert!(
            share <= BUDGET || rung == LOWEST,
            "{calls} {counting} {steps}: {share} on {rung:?}"
        );
    }
}

#[test]
fn expensive_socket_calls_lead_at_once_to_the_rung_that_fits() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = with_calls(0.06, WITHIN);
    assert_eq!(governor.judge(&expensive), change(5));
    let more_expensive = with_calls(0.3, WITHIN);
    assert_eq!(governor.judge(&more_expensive), change(6));
    let still_too_much = Spent {
        others: 0.02,
        ..more_expensive
    };
    assert_eq!(governor.judge(&still_too_much), Decision::OverBudget);
}

#[test]
fn what_is_never_taken_out_does_not_lead_to_the_bottom() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let storm = with_calls(
        0.03,
        Spent {
            probes: 0.02,
            others: 0.02,
            ..WITHIN
        },
    );
    assert_eq!(governor.judge(&storm), change(5));
    let without_probes = Spent {
        probes: 0.0,
        ..storm
    };
    for _ in 0..2 * PATIENCE {
        assert_eq!(governor.judge(&without_probes), Decision::OverBudget);
    }
}

#[test]
fn probes_that_nobody_hits_stay() {
    let mut governor = Governor::new(BUDGET, Keep::LibraryProbes);
    let others = with_calls(
        0.05,
        Spent {
            probes: 0.0,
            others: 0.02,
            ..WITHIN
        },
    );
    assert_eq!(governor.judge(&others), Decision::OverBudget);
    assert_eq!(governor.rung(), rung_at(0));
}

#[test]
fn what_is_to_be_kept_is_not_taken() {
    let expensive = with_calls(
        0.3,
        Spent {
            probes: 0.3,
            ..WITHIN
        },
    );
    let lowest = |keep| {
        let mut governor = Governor::new(BUDGET, keep);
        while governor.judge(&expensive) != Decision::OverBudget {}
        governor.rung()
    };
    assert_eq!(lowest(Keep::LibraryProbes), rung_at(2));
    assert_eq!(lowest(Keep::Handshakes), rung_at(3));
    assert_eq!(lowest(Keep::Connections), rung_at(6));
}

#[test]
fn a_window_costs_what_its_end_does_as_well() {
    let short = with_calls(
        0.03,
        Spent {
            probes: 0.0,
            ..WITHIN
        },
    );
    // What began in it goes on for a second.
    let long = Spent {
        windows: short.always.times(1.5),
        ..short
    };
    let judge = |spent| Governor::new(BUDGET, Keep::Connections).judge(spent);
    assert_eq!(judge(&short), change(4));
    assert_eq!(judge(&long), change(5));
}

#[test]
fn states_of_connections_are_at_the_expense_of_those_that_have_them() {
    let beside_much_else = with_calls(
        0.006,
        Spent {
            host: 64.0,
            probes: 0.0,
            ..WITHIN
        },
    );
    let all_run_into_them = Spent {
        others: 0.006,
        ..beside_much_else
    };
    let theirs_alone = Spent {
        states: 0.006,
        ..beside_much_else
    };
    let judge = |spent| Governor::new(BUDGET, Keep::Connections).judge(spent);
    assert_eq!(judge(&all_run_into_them), Decision::Keep);
    assert_eq!(judge(&theirs_alone), change(4));
}

#[test]
fn a_bystander_counts_where_no_target_runs() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let bystander = with_calls(
        0.05,
        Spent {
            host: 1.0,
            ..Spent::default()
        },
    );
    assert_eq!(governor.judge(&bystander), change(5));
    let beside_much_else = Spent {
        host: 20.0,
        ..bystander
    };
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    assert_eq!(governor.judge(&beside_much_else), Decision::Keep);
}

#[test]
fn a_duty_is_a_share_of_the_time() {
    assert!((Duty::ALWAYS.ratio() - 1.0).abs() < f64::EPSILON);
    assert!((steps(10).ratio() - 0.1).abs() < f64::EPSILON);
    assert!((calls(8).ratio() - 0.0625).abs() < f64::EPSILON);
    assert!(Duty::NEVER.ratio().abs() < f64::EPSILON);
}

#[test]
fn stopping_clocks_is_taken_from_the_whole_host_and_goes_with_socket_calls() {
    let mut governor = Governor::new(0.01, Keep::Connections);
    let switches = InWindows {
        switches: 0.2,
        ..WITHIN.always
    };
    let spent = Spent {
        host: 10.0,
        ..in_windows(switches, WITHIN)
    };
    assert_eq!(governor.judge(&spent), change(4));
    let without_probes = Spent {
        probes: 0.0,
        ..spent
    };
    // All the time they would take four times as much.
    for _ in 0..10 * PATIENCE {
        assert_eq!(governor.judge(&without_probes), Decision::Keep);
    }
}

#[test]
fn between_windows_it_waits_for_the_next_to_go_down() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    assert_eq!(governor.judge(&with_calls(0.06, WITHIN)), change(5));
    let window = with_calls(0.3, WITHIN);
    // The load has ended, but its rate is still that of the last window.
    let no_window_since = Spent {
        targets: 0.2,
        is_new: false,
        ..window
    };
    for _ in 0..10 {
        assert_eq!(governor.judge(&no_window_since), Decision::Unknown);
    }
    assert_eq!(governor.judge(&window), change(6));
}

#[test]
fn probes_of_key_derivation_when_the_profile_begins_lead_no_further_down() {
    // Microseconds of a handshake.
    let (counting, steps, derivation) = (1.0, 2.0, 5.0);
    let spent = |rung: Rung, derived: f64| {
        let each = counting + steps * rung.steps.ratio() + derivation * derived;
        with_calls(
            0.0,
            Spent {
                probes: each * 1000.0 / 1e6,
                steps: rung.steps.ratio(),
                derivation: derived,
                key_derivation: Duty {
                    window: Duration::from_secs(1),
                    period: Duration::from_secs(20),
                },
                handshakes: 1000.0,
                ..WITHIN
            },
        )
    };
    let mut governor = Governor::new(0.005, Keep::Connections);
    let first = governor.judge(&spent(rung_at(0), 0.5));
    assert_eq!(first, change(1));
    for _ in 1..PATIENCE {
        let decision = governor.judge(&spent(governor.rung(), 0.0));
        assert_eq!(decision, Decision::Keep);
    }
}

#[test]
fn a_rung_that_fits_but_saves_next_to_nothing_hides_none_that_saves_more() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let just_over = with_calls(
        0.0099,
        Spent {
            probes: 0.0002,
            states: 0.0,
            others: 0.0,
            ..WITHIN
        },
    );
    assert_eq!(governor.judge(&just_over), change(4));
}
