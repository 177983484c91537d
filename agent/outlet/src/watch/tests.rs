//! Points add up to the ledger, whatever happens to services; memory is bounded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::*;
use tlsprof_common::{Closer, Outcome, Resumption, Role};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_evidence::{Evidence, Handshake};
use tlsprof_ledger::Sampling as LedgerSampling;
use tlsprof_report::model::Host;

const NGINX: &str = "nginx.service";
const SECOND: Duration = Duration::from_secs(1);
/// What the monotonic clock says when the profile begins.
const BOOT: Duration = Duration::from_secs(1000);

fn about() -> About {
    About {
        run: "a-run".into(),
        tlsprof_version: "0.0.0".into(),
        host: Host {
            hostname: "host".into(),
            kernel: "6.12".into(),
            cpus: 2,
        },
        started_at: "2026-11-21T12:00:00Z".into(),
    }
}

/// A ledger under watch, as an agent keeps it.
struct Watched {
    ledger: SharedLedger,
    watch: Watch,
    at: Duration,
}

impl Watched {
    fn new(bounds: Bounds) -> Self {
        let ledger = SharedLedger::default();
        let sampling = LedgerSampling::Every(Duration::from_millis(10));
        ledger.write().unwrap().advance(BOOT);
        ledger.write().unwrap().set_sampling(sampling);
        Self {
            watch: Watch::new(SharedLedger::clone(&ledger), about(), bounds),
            ledger,
            at: Duration::ZERO,
        }
    }

    /// A handshake on a connection of five turns, by a service that samples say is in
    /// handshakes for three quarters of its CPU time.
    fn visit(&self, service: &str, handshake: Handshake) {
        let mut ledger = self.ledger.write().unwrap();
        ledger.book(service, &Evidence::Opened(opening(Role::Server)));
        ledger.book(service, &Evidence::Handshake(Box::new(handshake)));
        let mut closed = connection();
        closed.ended = ledger.now();
        ledger.book(service, &Evidence::Closed(Box::new(closed)));
        ledger.add_samples(service, Activity::Handshake, Mode::User, 3);
        ledger.add_samples(service, Activity::Application, Mode::System, 1);
        let part = Duration::from_millis(20);
        ledger.add_cpu(service, part, part);
    }

    fn pass(&mut self, time: Duration) {
        self.at += time;
        self.ledger.write().unwrap().advance(BOOT + self.at);
        let cost = AgentCost {
            cpu_seconds: self.at.as_secs_f64() / 100.0,
            ..AgentCost::default()
        };
        self.watch.read(self.at, cost, Vec::new());
    }

    fn judge(&mut self) {
        let facts = ServiceFacts {
            executable: "/usr/sbin/nginx".into(),
            ports: vec![443],
            ..ServiceFacts::default()
        };
        let facts = BTreeMap::from([(NGINX.to_owned(), facts)]);
        let thresholds = Thresholds::default();
        self.watch.judge(self.at, facts, thresholds, true);
    }

    /// All that the history holds, over services and points.
    fn held(&self) -> Sums {
        let history = self.watch.history();
        let all = history.series().map(|(_, series)| series);
        let mut sums = Sums::default();
        for series in all.chain(history.of(OTHER)) {
            sums.add(&series.total());
        }
        sums
    }

    /// All that the ledger holds.
    fn booked(&self) -> Sums {
        let mut sums = Sums::default();
        for (_, account) in self.ledger.read().unwrap().services() {
            sums.add(&Sums::of(account));
        }
        sums
    }
}

fn resumed() -> Handshake {
    Handshake {
        resumption: Resumption::Psk,
        cpu: Duration::from_micros(150),
        ..handshake()
    }
}

#[test]
fn rates_are_what_came_divided_by_the_time() {
    let mut host = Watched::new(Bounds::default());
    for _ in 0..3 {
        host.visit(NGINX, handshake());
    }
    host.visit(NGINX, resumed());
    let failed = Handshake {
        outcome: Outcome::Failed,
        ..handshake()
    };
    host.visit(NGINX, failed);
    host.pass(2 * SECOND);
    let rates = Rates::of(&host.watch.history().last().services[NGINX], 2 * SECOND);
    assert!((rates.cpu_cores - 0.1).abs() < 1e-12);
    assert!((rates.system_cores - 0.05).abs() < 1e-12);
    assert!((rates.tls_ratio.unwrap() - 0.75).abs() < 1e-9);
    let server = rates.main().unwrap();
    assert_eq!(
        (server.handshakes_per_second, server.completed_per_second),
        (2.5, 2.0)
    );
    assert_eq!(
        (server.failed_per_second, server.abandoned_per_second),
        (0.5, 0.0)
    );
    assert_eq!(server.resumed_ratio, Some(0.25));
    let full = handshake().cpu.as_secs_f64();
    assert!((server.full_cpu_seconds.unwrap() - full).abs() < 1e-12);
    assert!((server.resumed_cpu_seconds.unwrap() - 150e-6).abs() < 1e-12);
    assert_eq!(
        (server.opened_per_second, server.closed_per_second),
        (2.5, 2.5)
    );
    assert_eq!(
        (
            server.closed_local_per_second,
            server.closed_remote_per_second
        ),
        (2.5, 0.0)
    );
    assert_eq!(
        (server.turns_per_second, server.turns_per_connection),
        (Some(12.5), Some(5.0))
    );
    assert_eq!(
        (
            server.time_wait_created_per_second,
            server.time_wait_standing
        ),
        (2.5, 5)
    );
}

#[test]
fn an_interval_without_anything_is_zero_and_divides_by_nothing() {
    let mut host = Watched::new(Bounds::default());
    host.visit(NGINX, handshake());
    host.pass(SECOND);
    host.pass(SECOND);
    let rates = Rates::of(&host.watch.history().last().services[NGINX], SECOND);
    assert!(rates.cpu_cores.abs() < f64::EPSILON);
    assert_eq!(rates.tls_ratio, None);
    let server = rates.main().unwrap();
    assert_eq!(
        (server.resumed_ratio, server.full_cpu_seconds),
        (None, None)
    );
    assert_eq!(
        (server.opened_per_second, server.time_wait_standing),
        (0.0, 1)
    );
}

#[test]
fn the_points_of_an_hour_add_up_to_the_ledger() {
    let mut host = Watched::new(Bounds::default());
    for second in 0..3580_u32 {
        let one = if second % 3 == 0 {
            resumed()
        } else {
            handshake()
        };
        host.visit(
            if second % 7 == 0 {
                "other-server"
            } else {
                NGINX
            },
            one,
        );
        // As an agent's turns are: a little over a second.
        host.pass(Duration::from_millis(1000 + u64::from(second % 5)));
    }
    // To the end of the point.
    host.pass(6 * SECOND);
    assert_eq!(host.held(), host.booked());
    let history = host.watch.history();
    assert_eq!(history.newest(), history.spans().len() as u64);
    let lengths: Duration = history.spans().iter().map(|span| span.length).sum();
    assert_eq!(lengths, host.at);
    let mean = lengths.as_secs_f64() / history.spans().len() as f64;
    assert!((4.9..5.1).contains(&mean), "{mean}");
}

#[test]
fn what_is_over_an_hour_old_is_forgotten() {
    let mut host = Watched::new(Bounds::default());
    host.visit(NGINX, handshake());
    for _ in 0..719 {
        host.pass(5 * SECOND);
    }
    assert_eq!(host.held().get(Figure::Opened(Role::Server)), 1);
    assert_eq!(host.watch.history().series().count(), 1);
    for _ in 0..14 {
        host.pass(5 * SECOND);
    }
    assert_eq!(host.watch.history().spans().len(), 720);
    assert!(host.held().is_empty());
    assert_eq!(host.watch.history().series().count(), 0, "all is zero");
}

#[test]
fn the_page_gets_only_the_points_that_it_does_not_have() {
    let mut host = Watched::new(Bounds::default());
    for _ in 0..800 {
        host.visit(NGINX, handshake());
        host.pass(5 * SECOND);
    }
    let all = host.watch.series(NGINX, 0).unwrap();
    assert_eq!(
        (all.first_point, all.ends.len(), all.lengths.len()),
        (81, 720, 720)
    );
    assert!(all.columns.values().all(|values| values.len() == 720));
    assert!((all.ends[719] - 4000.0).abs() < 1e-9);
    assert!((all.columns["cpu/user"][0] - 0.02).abs() < 1e-12);
    let newer = host.watch.series(NGINX, 798).unwrap();
    assert_eq!((newer.first_point, newer.ends.len()), (799, 2));
    assert_eq!(newer.columns["opened/server"], [1.0, 1.0]);
    assert_eq!(
        newer.columns["handshakes/server/completed/none"],
        [1.0, 1.0]
    );
    for beyond in [800, 900, u64::MAX] {
        let none = host.watch.series(NGINX, beyond).unwrap();
        assert_eq!((none.first_point, none.ends.len()), (801, 0));
    }
    assert!(host.watch.series("nobody", 0).is_none());
}

#[test]
fn a_service_that_grows_takes_the_series_of_the_lightest_and_no_sum_is_lost() {
    let bounds = Bounds {
        services: 2,
        ..Bounds::default()
    };
    let mut host = Watched::new(bounds);
    for round in 0..60 {
        for (service, visits) in [("heavy", 8), ("light", 1), ("late", (round / 10) * 2)] {
            for _ in 0..visits {
                host.visit(service, handshake());
            }
        }
        host.pass(5 * SECOND);
    }
    let names: Vec<_> = host
        .watch
        .history()
        .series()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["heavy", "late"]);
    assert_eq!(host.held(), host.booked());
    let state = host.watch.state(host.watch.history().last_point());
    let own: Vec<_> = state
        .services
        .iter()
        .map(|one| (&*one.service_name, one.has_series))
        .collect();
    assert_eq!(own, [("late", true), ("heavy", true), ("light", false)]);
}

#[test]
fn one_minute_of_memory_for_the_agents_own_cost() {
    let mut host = Watched::new(Bounds::default());
    for _ in 0..200 {
        host.visit(NGINX, handshake());
        host.pass(SECOND);
    }
    assert!(host.watch.costs.len() <= 61);
    let state = host.watch.state(host.watch.history().last());
    assert!((state.agent.cpu_cores.unwrap() - 0.01).abs() < 1e-9);
    assert_eq!(state.agent.profiled_ratio, Some(0.0));
}

#[test]
fn details_are_those_of_a_report_with_its_findings() {
    let mut host = Watched::new(Bounds::default());
    for _ in 0..400 {
        let slow = Handshake {
            group: "secp384r1",
            resumption: Resumption::None,
            ..handshake()
        };
        host.visit(NGINX, slow);
    }
    host.pass(5 * SECOND);
    host.judge();
    let details = host.watch.details(NGINX).unwrap();
    assert_eq!(details.service.handshakes[0].group, "secp384r1");
    assert_eq!(details.service.handshakes[0].count, 400);
    assert_eq!(
        details.service.connections[0].closed[0].closed_by.label(),
        Closer::Local.label()
    );
    assert_eq!(details.service.ports, [443]);
    assert!(!details.findings.is_empty());
    let state = host.watch.state(host.watch.history().last_point());
    assert_eq!(state.services[0].findings as usize, details.findings.len());
    assert_eq!(
        state.services[0].severity.as_deref(),
        Some(details.findings[0].finding.severity.label())
    );
    assert_eq!(state.findings.len(), details.findings.len());
    assert!(
        details
            .findings
            .iter()
            .all(|one| one.finding.remedy.server == "nginx" && !one.lines.change.is_empty())
    );
    assert!(host.watch.details("nobody").is_none());
    let json = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
}

#[test]
fn a_frozen_watch_stays_as_it_is() {
    let mut host = Watched::new(Bounds::default());
    host.visit(NGINX, handshake());
    host.pass(5 * SECOND);
    let frozen = host.watch.frozen();
    host.visit(NGINX, handshake());
    host.pass(5 * SECOND);
    host.judge();
    let handshakes = |watch: &Watch| watch.details(NGINX).unwrap().service.handshakes[0].count;
    assert_eq!((handshakes(&frozen), handshakes(&host.watch)), (1, 2));
    assert_eq!(frozen.history().newest() + 1, host.watch.history().newest());
}

proptest! {
    /// However services come, grow and go: with a series or without, all that was booked in
    /// the points that are held is in the history, once.
    #[test]
    fn nothing_is_lost_or_counted_twice(
        rounds in prop::collection::vec((0usize..6, 1usize..20, 1u32..12), 1..80),
    ) {
        let bounds = Bounds { services: 2, ..Bounds::default() };
        let mut host = Watched::new(bounds);
        for (service, visits, seconds) in rounds {
            for _ in 0..visits {
                host.visit(["a", "b", "c", "d", "e", OTHER][service], handshake());
            }
            host.pass(SECOND * seconds);
            prop_assert!(host.watch.history().series().count() <= 2);
        }
        host.pass(6 * SECOND);
        prop_assert_eq!(host.held(), host.booked());
        let points = host.watch.history().spans().len();
        for (_, series) in host.watch.history().series() {
            prop_assert!(series.columns().all(|(_, values)| values.len() == points));
        }
    }
}
