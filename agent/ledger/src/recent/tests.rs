//! The last minutes are what a ledger holds in which only their evidence was booked.
#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use proptest::prelude::*;

use super::*;
use crate::tests::any_handshake;
use crate::{ConnectionAccount, Distribution, Sampling, StepAccount};
use tlsprof_common::{Carries, Closer, Connection, ProcessEvent, Step, Whole};
use tlsprof_evidence::accept_queue::AcceptQueues;
use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_evidence::{Comparison, Evidence, Handshake};

const SERVICE: &str = "nginx.service";

/// A whole ledger and its last minutes, booked as an agent does.
struct Books {
    whole: Ledger,
    recent: Recent,
    at: Duration,
}

impl Books {
    fn new() -> Self {
        let mut whole = Ledger::default();
        whole.set_sampling(Sampling::Every(Duration::from_millis(10)));
        Self {
            whole,
            recent: Recent::default(),
            at: Duration::ZERO,
        }
    }

    fn book(&mut self, evidence: &Evidence) {
        self.whole.book(SERVICE, evidence);
    }

    /// One handshake in a connection, a process for it, and a second of CPU time.
    fn visit(&mut self) {
        self.book(&Evidence::Opened(opening(Role::Server)));
        self.book(&Evidence::Handshake(Box::new(handshake())));
        let mut closed = connection();
        closed.ended = self.whole.now();
        self.book(&Evidence::Closed(Box::new(closed)));
        let fork = ProcessEvent::Fork {
            parent: 1,
            child: 2,
            comm: "nginx".into(),
        };
        self.whole.record_process(SERVICE, &fork);
        let part = Duration::from_millis(500);
        let (activity, mode) = (Activity::Application, Mode::User);
        self.whole.add_samples(SERVICE, activity, mode, 100);
        self.whole.note_upkeep(SERVICE, Upkeep::Process, 7);
        let queues = AcceptQueues {
            listeners: 1,
            overflows: 3,
            ..AcceptQueues::default()
        };
        let queues = BTreeMap::from([(SERVICE.to_owned(), queues)]);
        self.whole.record_accept_queues(&queues);
        self.whole.add_cpu(SERVICE, part, part);
    }

    fn pass(&mut self, time: Duration) {
        self.at += time;
        self.whole.advance(self.whole.now() + time);
        self.recent.follow(&self.whole, self.at);
    }

    fn account(&self) -> Option<ServiceAccount> {
        self.recent.account(&self.whole, SERVICE)
    }
}

/// Handshakes, connections, processes and CPU seconds: the same number of each.
fn visits(account: &ServiceAccount) -> u64 {
    let count = account.handshake_count();
    let connections = account.connections.get(&Role::Server).unwrap();
    assert_eq!(
        (connections.opened, connections.closed_count()),
        (count, count)
    );
    assert_eq!(account.processes.forked, count);
    assert_eq!(account.cpu(), Duration::from_secs(count));
    assert_eq!(account.activities.samples(), 100 * count);
    assert_eq!(account.activities.attributed(), account.cpu());
    let upkeep = account.activities.upkeep(Upkeep::Process).as_secs_f64();
    assert!((upkeep - 0.07 * count as f64).abs() < 1e-6, "{upkeep}");
    assert_eq!(account.accept_queue.overflows, 3 * count);
    count
}

#[test]
fn at_first_it_is_the_whole() {
    let mut books = Books::new();
    for _ in 0..3 {
        books.visit();
        books.pass(Duration::from_secs(15));
    }
    assert_eq!(visits(&books.account().unwrap()), 3);
    assert_eq!(books.recent.length(books.at), books.at);
}

#[test]
fn it_reaches_back_one_to_two_spans() {
    let mut books = Books::new();
    let step = Duration::from_secs(15);
    for _ in 0..200 {
        books.visit();
        books.pass(step);
        let elapsed = books.recent.length(books.at);
        assert!(elapsed == books.at || (SPAN..2 * SPAN).contains(&elapsed));
        let wanted = elapsed.as_secs() / step.as_secs();
        let visits = books.account().as_ref().map(visits);
        assert_eq!(visits, Some(wanted), "{elapsed:?}");
    }
}

#[test]
fn what_is_over_goes_away() {
    let mut books = Books::new();
    for _ in 0..5 {
        books.visit();
    }
    for _ in 0..41 {
        books.pass(Duration::from_secs(15));
    }
    assert!(books.account().is_none());
    assert_eq!(books.whole.service(SERVICE).unwrap().handshake_count(), 5);
}

#[test]
fn a_full_accept_queue_is_evidence_while_nothing_is_accepted() {
    let mut books = Books::new();
    let full = AcceptQueues {
        listeners: 1,
        overflows: 3,
        ..AcceptQueues::default()
    };
    for overflows in [true, false] {
        for _ in 0..41 {
            if overflows {
                let queues = BTreeMap::from([(SERVICE.to_owned(), full)]);
                books.whole.record_accept_queues(&queues);
            }
            books.pass(Duration::from_secs(15));
        }
        assert_eq!(books.account().is_some(), overflows);
    }
}

#[test]
fn what_stands_is_that_of_the_whole_ledger() {
    let mut books = Books::new();
    let mut upstream = opening(Role::Client);
    upstream.remote = Some(tlsprof_common::Remote {
        endpoint: 1,
        local_ports: 100,
    });
    for _ in 0..7 {
        books.book(&Evidence::Opened(upstream.clone()));
    }
    for _ in 0..40 {
        books.pass(Duration::from_secs(15));
    }
    books.book(&Evidence::Opened(upstream));
    books.visit();
    books.whole.bound_time_wait(SERVICE, 0);
    books.pass(Duration::from_secs(15));
    let now = books.whole.now();
    let account = books.account().unwrap();
    assert_eq!(account.ephemeral_ports(now).unwrap().used, 8);
    let server = account.connections.get(&Role::Server).unwrap();
    assert_eq!(server.time_wait_created, 1);
    assert_eq!(server.time_wait_standing(now), 0);
}

fn close(one: f64, other: f64) -> bool {
    // The shortest time that is kept apart is 100 ns.
    (one - other).abs() <= 0.01 * one.max(other) + 100e-9
}

fn assert_alike(recent: &Distribution, alone: &Distribution) {
    assert_eq!(recent.count(), alone.count());
    assert_eq!(recent.mean(), alone.mean());
    assert_eq!(recent.mean_error(), alone.mean_error());
    let of = |one: &Distribution| [one.quantile(0.5), one.quantile(0.99), one.max()];
    for (recent, alone) in of(recent).into_iter().zip(of(alone)) {
        assert!(
            close(recent.as_secs_f64(), alone.as_secs_f64()),
            "{recent:?} {alone:?}"
        );
    }
}

fn assert_roles_alike(recent: &ServiceAccount, alone: &ServiceAccount) {
    assert_eq!(recent.roles.len(), alone.roles.len());
    for (role, alone) in &alone.roles {
        let recent = recent.roles.get(role).unwrap();
        assert_eq!(recent.waits, alone.waits);
        assert_eq!(recent.socket, alone.socket);
        assert_eq!(recent.agreement, alone.agreement);
        assert_eq!(recent.application, alone.application);
        assert_eq!(recent.flights, alone.flights);
        assert_eq!(recent.costs.len(), alone.costs.len());
        for (resumption, alone) in &alone.costs {
            let recent = recent.costs.get(resumption).unwrap();
            assert_alike(&recent.cpu, &alone.cpu);
            assert_alike(&recent.duration, &alone.duration);
        }
        for step in Step::ALL {
            let (recent, alone) = (&recent.steps, &alone.steps);
            assert_eq!(recent.cost(step, |_| true), alone.cost(step, |_| true));
            assert_eq!(
                recent.measured_handshakes(step),
                alone.measured_handshakes(step)
            );
        }
        // Earlier ones may speak for those that were not measured: the sum is the same.
        let all = |steps: &StepAccount| -> Duration {
            let cpu: Duration = Step::ALL.map(|step| steps.cpu(step)).iter().sum();
            cpu + steps.unmeasured().cpu()
        };
        assert_eq!(all(&recent.steps), all(&alone.steps));
    }
}

fn assert_connections_alike(recent: &ServiceAccount, alone: &ServiceAccount) {
    assert_eq!(recent.connections.len(), alone.connections.len());
    for (role, alone) in &alone.connections {
        let recent = recent.connections.get(role).unwrap();
        assert_alike(&recent.duration, &alone.duration);
        let closed = |one: &ConnectionAccount| format!("{:?}", one.closed);
        assert_eq!(closed(recent), closed(alone));
        let sums = |one: &ConnectionAccount| {
            let bytes = (one.bytes_received, one.bytes_sent);
            (
                one.opened,
                bytes,
                one.hidden_requests,
                one.time_wait_created,
            )
        };
        assert_eq!(sums(recent), sums(alone));
    }
}

prop_compose! {
    fn any_connection()(
        server in any::<bool>(),
        whole in any::<bool>(),
        turns in prop::option::of(0u32..300),
        closed_by in prop::sample::select(vec![Closer::Local, Closer::Remote]),
        (reset, time_wait, tls) in any::<(bool, bool, bool)>(),
        bytes in 0u64..100_000,
        millis in 0u64..100_000,
    ) -> Connection {
        let sample = connection();
        let role = if server { Role::Server } else { Role::Client };
        let kept = sample.whole.unwrap();
        let duration = Duration::from_millis(millis);
        Connection {
            whole: whole.then_some(Whole { role, duration, turns, ..kept }),
            carries: if tls { Carries::Tls } else { Carries::Plain },
            cipher: "TLS_AES_128_GCM_SHA256",
            application_received: bytes,
            application_sent: bytes / 2,
            bytes_received: bytes,
            closed_by,
            reset,
            time_wait,
            ..sample
        }
    }
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let compared = |handshake: Handshake| {
        Evidence::Compared(Box::new(Comparison {
            process: handshake.process,
            comm: handshake.comm,
            role: handshake.role,
            began: handshake.began,
            connection: None,
            library: handshake.cpu,
            socket: handshake.cpu / 2,
        }))
    };
    prop_oneof![
        any_handshake().prop_map(|one| Evidence::Handshake(Box::new(one))),
        any_connection().prop_map(|one| Evidence::Closed(Box::new(one))),
        any_handshake().prop_map(|one| Evidence::Opened(opening(one.role))),
        any_handshake().prop_map(compared),
    ]
}

proptest! {
    #[test]
    fn they_are_a_ledger_of_the_later_evidence_alone(
        earlier in prop::collection::vec(any_evidence(), 0..60),
        later in prop::collection::vec(any_evidence(), 0..60),
    ) {
        let mut books = Books::new();
        earlier.iter().for_each(|one| books.book(one));
        let mut alone = Ledger::default();
        for _ in 0..2 {
            books.pass(SPAN);
        }
        prop_assert!(books.account().is_none());
        for one in &later {
            books.book(one);
            alone.book(SERVICE, one);
        }
        let recent = books.account();
        let alone = alone.service(SERVICE);
        prop_assert_eq!(recent.is_some(), alone.is_some());
        if let (Some(recent), Some(alone)) = (&recent, alone) {
            prop_assert_eq!(&recent.handshakes, &alone.handshakes);
            prop_assert_eq!(recent.connections_from_before, alone.connections_from_before);
            assert_roles_alike(recent, alone);
            assert_connections_alike(recent, alone);
            let roles: BTreeSet<Role> = alone.handshakes.keys().map(|key| key.role).collect();
            prop_assert_eq!(books.recent.tls_roles(&books.whole, SERVICE), roles);
        }
    }
}
