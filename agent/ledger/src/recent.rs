//! Accounts of the last minutes, for what must go away once it is remedied.
//!
//! Sums of a [`Ledger`] only grow. Here the same evidence is booked a second time, in
//! accounts that begin anew every [`SPAN`]: what is judged has run for one to two of
//! these, or since the start. It is a ledger like that of a report over this time, and
//! means the same.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_evidence::Evidence;

use super::{CpuAccount, Ledger, Limits, Processes};

/// How far apart accounts begin.
pub(crate) const SPAN: Duration = Duration::from_secs(300);

/// What the whole ledger said of a service when accounts began.
#[derive(Clone, Debug, Default)]
struct Before {
    user: Duration,
    system: Duration,
    activities: CpuAccount,
    processes: Processes,
    overflows: u64,
}

#[derive(Clone, Debug)]
struct Accounts {
    began: Duration,
    ledger: Ledger,
    before: BTreeMap<String, Before>,
}

/// The last minutes of all services. Twice the memory of a ledger at most.
#[derive(Clone, Debug)]
pub struct Recent {
    limits: Limits,
    judged: Accounts,
    next: Option<Accounts>,
}

impl Accounts {
    fn begin(limits: Limits, began: Duration, whole: &Ledger) -> Self {
        let services = whole.services();
        let before = services.map(|(name, account)| {
            let before = Before {
                user: account.cpu_user,
                system: account.cpu_system,
                activities: account.activities.clone(),
                processes: account.processes,
                overflows: account.accept_queue.overflows,
            };
            (name.to_owned(), before)
        });
        let mut ledger = Ledger::new(limits);
        ledger.advance(whole.now());
        Self {
            began,
            ledger,
            before: before.collect(),
        }
    }

    /// Takes over what is no evidence of its own: CPU time and processes since the
    /// beginning, and what stands now.
    fn follow(&mut self, whole: &Ledger) {
        self.ledger.advance(whole.now());
        for (name, account) in &mut self.ledger.services {
            let Some(known) = whole.services.get(name) else {
                continue;
            };
            let none = Before::default();
            let before = self.before.get(name).unwrap_or(&none);
            account.cpu_user = known.cpu_user.saturating_sub(before.user);
            account.cpu_system = known.cpu_system.saturating_sub(before.system);
            account.activities = known.activities.since(&before.activities);
            account.processes = known.processes.since(before.processes);
            let queues = &mut account.accept_queue;
            queues.follow(&known.accept_queue, before.overflows);
            account.remotes.clone_from(&known.remotes);
            for (role, connections) in &mut account.connections {
                if let Some(known) = known.connections.get(role) {
                    connections.stand_like(known);
                }
            }
        }
    }
}

impl Recent {
    /// Accounts that begin together with the whole ledger, which is empty.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            judged: Accounts::begin(limits, Duration::ZERO, &Ledger::new(limits)),
            next: None,
        }
    }

    /// Books what the whole ledger has booked, under the same name of its service.
    pub fn book(&mut self, service: &str, evidence: &Evidence) {
        self.judged.ledger.book(service, evidence);
        if let Some(next) = &mut self.next {
            next.ledger.book(service, evidence);
        }
    }

    /// Takes over from the whole ledger, at a time since its beginning, what
    /// [`book`](Self::book) does not see; and turns to newer accounts when the present
    /// ones are two spans old. To be called more often than that.
    pub fn follow(&mut self, whole: &Ledger, at: Duration) {
        let newest = self.next.as_ref().unwrap_or(&self.judged);
        if at >= newest.began + SPAN {
            let next = Accounts::begin(self.limits, at, whole);
            if let Some(next) = self.next.replace(next) {
                self.judged = next;
            }
        }
        self.judged.follow(whole);
    }

    /// The accounts to judge by, and how long they were kept at that time.
    pub fn accounts(&self, at: Duration) -> (&Ledger, Duration) {
        (&self.judged.ledger, at.saturating_sub(self.judged.began))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;
    use crate::{Sampling, ServiceAccount};
    use tlsprof_common::{ProcessEvent, Role};
    use tlsprof_evidence::accept_queue::AcceptQueues;
    use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
    use tlsprof_evidence::sample::{connection, handshake, opening};

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
                recent: Recent::new(Limits::default()),
                at: Duration::ZERO,
            }
        }

        fn book(&mut self, evidence: &Evidence) {
            self.whole.book(SERVICE, evidence);
            self.recent.book(SERVICE, evidence);
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

        fn account(&self) -> Option<&ServiceAccount> {
            self.recent.accounts(self.at).0.service(SERVICE)
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
        assert_eq!(account.activities.upkeep(Upkeep::Process), 7 * count);
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
        assert_eq!(visits(books.account().unwrap()), 3);
        assert_eq!(books.recent.accounts(books.at).1, books.at);
    }

    #[test]
    fn it_reaches_back_one_to_two_spans() {
        let mut books = Books::new();
        let step = Duration::from_secs(15);
        for _ in 0..200 {
            books.visit();
            books.pass(step);
            let (_, elapsed) = books.recent.accounts(books.at);
            assert!(elapsed == books.at || (SPAN..2 * SPAN).contains(&elapsed));
            let wanted = elapsed.as_secs() / step.as_secs();
            assert_eq!(books.account().map(visits), Some(wanted), "{elapsed:?}");
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
}
