use super::*;

const BUDGET: f64 = 0.01;
const WITHIN: Spent = Spent {
    host: 1.0,
    targets: 1.0,
    calls: 0.002,
    switches: 0.0,
    probes: 0.004,
    states: 0.0005,
    others: 0.0005,
    openings: 100.0,
};

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
        let spent = |rung: Rung| Spent {
            calls,
            probes: probes(rung),
            ..WITHIN
        };
        for _ in 0..2 {
            governor.judge(&spent(governor.rung()));
        }
        let rung = governor.rung();
        let share = governor.share(&spent(rung));
        assert!(
            share <= BUDGET || rung == LOWEST,
            "{calls} {counting} {steps}: {share} on {rung:?}"
        );
    }
}

#[test]
fn a_rung_that_was_never_tried_is_not_free() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let storm = Spent {
        calls: 0.06,
        probes: 0.06,
        openings: 1000.0,
        ..WITHIN
    };
    assert_eq!(governor.judge(&storm), change(5));
    // Socket calls would have room all the time, and so the rungs above, up to the one with probes.
    let calmer = Spent {
        calls: 0.002,
        probes: 0.0,
        ..storm
    };
    for _ in 0..10 * PATIENCE {
        governor.judge(&calmer);
    }
    assert_eq!(governor.rung(), rung_at(3));
}

#[test]
fn expensive_socket_calls_lead_at_once_to_the_rung_that_fits() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = Spent {
        calls: 0.06,
        ..WITHIN
    };
    assert_eq!(governor.judge(&expensive), change(5));
    let more_expensive = Spent {
        calls: 0.3,
        ..WITHIN
    };
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
    let storm = Spent {
        calls: 0.03,
        probes: 0.02,
        others: 0.02,
        ..WITHIN
    };
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
fn after_a_rung_up_that_did_not_last_the_next_takes_longer() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let expensive = Spent {
        calls: 0.06,
        probes: 0.0,
        ..WITHIN
    };
    let cheap = Spent {
        calls: 0.02,
        probes: 0.0,
        ..WITHIN
    };
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
fn probes_that_nobody_hits_stay() {
    let mut governor = Governor::new(BUDGET, Keep::LibraryProbes);
    let others = Spent {
        calls: 0.05,
        probes: 0.0,
        others: 0.02,
        ..WITHIN
    };
    assert_eq!(governor.judge(&others), Decision::OverBudget);
    assert_eq!(governor.rung(), rung_at(0));
}

#[test]
fn what_is_to_be_kept_is_not_taken() {
    let expensive = Spent {
        calls: 0.3,
        probes: 0.3,
        ..WITHIN
    };
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
fn states_of_connections_are_at_the_expense_of_those_that_have_them() {
    let beside_much_else = Spent {
        host: 64.0,
        calls: 0.006,
        probes: 0.0,
        ..WITHIN
    };
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
    let bystander = Spent {
        host: 1.0,
        calls: 0.05,
        ..Spent::default()
    };
    assert_eq!(governor.judge(&bystander), change(5));
    let beside_much_else = Spent {
        host: 20.0,
        ..bystander
    };
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    assert_eq!(governor.judge(&beside_much_else), Decision::Keep);
}

#[test]
fn a_rung_up_is_taken_when_it_fits_by_what_it_cost_before() {
    let mut governor = Governor::new(BUDGET, Keep::Connections);
    let storm = Spent {
        host: 1.0,
        targets: 1.0,
        calls: 0.002,
        switches: 0.0,
        probes: 0.02,
        states: 0.0005,
        others: 0.0005,
        openings: 1000.0,
    };
    assert_eq!(governor.judge(&storm), change(1));
    let calmer = |openings: f64| Spent {
        probes: 8e-6 * openings,
        openings,
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
    let spent = Spent {
        host: 10.0,
        switches: 0.2,
        ..WITHIN
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
