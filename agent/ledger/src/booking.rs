//! How evidence is booked in the accounts of its service.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Carries, Connection, Opening, ProcessEvent};
use tlsprof_evidence::accept_queue::AcceptQueues;
use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
use tlsprof_evidence::{Comparison, Evidence};

use super::ledger::Ledger;
use super::limits::bounded;
use super::sources::record_application;
use super::{NetworkEvents, Primitives, Sampling};

impl Ledger {
    /// Books a TCP connection that was opened.
    pub fn record_opening(&mut self, service: &str, opening: &Opening) {
        let now = self.now;
        let account = self.account_mut(service);
        let kept = account.connections.entry(opening.role).or_default();
        kept.opened += 1;
        if let Some(wait) = opening.accept_wait {
            account.accept_queue.wait.record(wait);
        }
        if let Some(remote) = opening.remote {
            account.remotes.opened(remote, now);
        }
    }

    /// Books a TCP connection that ended.
    pub fn record_connection(&mut self, service: &str, connection: &Connection) {
        let limit = self.limits.label_sets;
        let account = self.account_mut(service);
        match &connection.whole {
            Some(whole) => {
                let kept = account.connections.entry(whole.role).or_default();
                kept.record(connection, whole);
                if connection.carries == Carries::Tls {
                    let role = account.roles.entry(whole.role).or_default();
                    record_application(&mut role.application, connection, limit);
                    role.flights.record(connection);
                }
            }
            None => {
                account.connections_from_before += 1;
                account.http2_from_before += u64::from(connection.may_be_http2 == Some(true));
            }
        }
        if let Some(remote) = connection.remote {
            let Connection {
                time_wait, ended, ..
            } = *connection;
            account.remotes.closed(remote, time_wait, ended);
        }
    }

    /// Sets how many TIME_WAIT sockets the kernel counts in the network namespace
    /// of a service, which its own cannot exceed.
    pub fn bound_time_wait(&mut self, service: &str, sockets: u64) {
        if let Some(account) = self.services.get_mut(service) {
            let roles = account.connections.values_mut();
            roles.for_each(|kept| kept.bound_time_wait(sockets));
        }
    }

    /// Books a TCP connection that ended without ever having had an owner.
    pub const fn record_ownerless(&mut self) {
        self.ownerless += 1;
    }

    /// TCP connections that ended before any process read, wrote or closed
    /// them, and those of the kernel itself.
    pub const fn ownerless(&self) -> u64 {
        self.ownerless
    }

    /// Books how two sources agree on a handshake, which is booked apart.
    pub fn record_comparison(&mut self, service: &str, comparison: &Comparison) {
        let account = self.account_mut(service);
        let agreement = &mut account.roles.entry(comparison.role).or_default().agreement;
        agreement.handshakes += 1;
        let (library, socket) = (bounded(comparison.library), bounded(comparison.socket));
        agreement.library = agreement.library.saturating_add(library);
        agreement.socket = agreement.socket.saturating_add(socket);
    }

    /// Books a reading of the accept queues of all services; one that is not in it
    /// listens no more.
    pub fn record_accept_queues(&mut self, services: &BTreeMap<String, AcceptQueues>) {
        for account in self.services.values_mut() {
            account.accept_queue.clear_present();
        }
        for (service, queues) in services {
            self.account_mut(service).accept_queue.add(queues);
        }
    }

    /// A connection of no profiled service: it is not booked, but the kernel's work for
    /// the network is its, too.
    pub fn record_unprofiled(&mut self, evidence: &Evidence) {
        let event = match evidence {
            Evidence::Opened(_) => NetworkEvents {
                opened: 1,
                ..NetworkEvents::default()
            },
            Evidence::Closed(connection) => NetworkEvents {
                opened: 0,
                closed: 1,
                bytes: connection
                    .bytes_received
                    .saturating_add(connection.bytes_sent),
            },
            _ => return,
        };
        self.unprofiled.add(event);
    }

    /// Events on the connections of services that are not profiled.
    pub const fn unprofiled_events(&self) -> NetworkEvents {
        self.unprofiled
    }

    /// Books a process that began, or a program that was started. Services without an
    /// account do not get one by that: a whole host starts processes all the time.
    pub fn record_process(&mut self, service: &str, event: &ProcessEvent) {
        let Some(account) = self.services.get_mut(service) else {
            return;
        };
        match event {
            ProcessEvent::Fork { .. } => account.processes.forked += 1,
            ProcessEvent::Exec { .. } => account.processes.executed += 1,
            ProcessEvent::Exit { .. } => {}
        }
    }

    /// Sets whether CPU samples are taken. CPU time while they are not is
    /// unattributed.
    pub fn set_sampling(&mut self, sampling: Sampling) {
        if let Sampling::Every(period) | Sampling::InWindows(period) = sampling {
            self.period = period;
            self.first_period.get_or_insert(period);
        }
        self.sampling = sampling;
    }

    /// Whether CPU samples are taken.
    pub const fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// What a sample stands for on its CPU; zero before any.
    pub const fn sample_period(&self) -> Duration {
        self.period
    }

    /// What it stood for in the beginning; None before any.
    pub const fn first_sample_period(&self) -> Option<Duration> {
        self.first_period
    }

    /// Books samples of a service. Those of an interval are to come before its
    /// [`add_cpu`](Self::add_cpu).
    pub fn add_samples(&mut self, service: &str, activity: Activity, mode: Mode, count: u64) {
        if count == 0 {
            return;
        }
        let period = self.period;
        let account = self.account_mut(service);
        account
            .activities
            .add_samples((activity, mode), count, period);
    }

    /// Notes that so many of the samples that were booked are in the kernel, in
    /// functions that are on no list.
    pub fn note_unclassified(&mut self, service: &str, count: u64) {
        let account = &mut self.account_mut(service).activities;
        account.unclassified = account.unclassified.saturating_add(count);
    }

    /// Notes that so many of the samples that were booked as `application` are upkeep.
    pub fn note_upkeep(&mut self, service: &str, what: Upkeep, count: u64) {
        let period = self.period;
        let account = self.account_mut(service);
        account.activities.add_upkeep(what, count, period);
    }

    /// Notes that so many of the samples that were booked as encryption are the cipher
    /// itself, in code of no known TLS library.
    pub fn note_cipher_alone(&mut self, service: &str, count: u64) {
        let account = &mut self.account_mut(service).activities;
        account.cipher_alone = account.cipher_alone.saturating_add(count);
    }

    /// Notes what the code computes that booked samples of handshakes and encryption hit.
    pub fn note_primitives(&mut self, service: &str, counts: &Primitives) {
        let now = self.now;
        let sampling = self.sampling.clone();
        let account = self.account_mut(service);
        account.activities.add_primitives(counts, &sampling, now);
        account.follow_samples(now);
    }

    /// Divides what still waits for a sample: none will come.
    pub fn settle_cpu(&mut self) {
        for account in self.services.values_mut() {
            let total = account.cpu();
            account.activities.settle(total, self.now, &self.sampling);
            account.step_samples.note_reading(self.now);
            account.follow_samples(self.now);
        }
    }
}
