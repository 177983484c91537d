//! The port that the user named: who listens there now, and who did.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Session, monotonic_now};
use crate::discover::ports::ListeningPorts;
use crate::evidence::Pid;
use crate::outlet::terminal::units::counted;
use crate::units::time;

/// Most processes that a note names.
const NAMED: usize = 3;

/// Listeners of the port that have ended.
#[derive(Debug, Default)]
pub(super) struct PortListeners {
    /// Those whose parent does not listen there, with the names of their services.
    heads: BTreeMap<Pid, String>,
    ended: Vec<(Pid, String, Duration)>,
}

impl PortListeners {
    fn end(&mut self, pid: Pid, after: Duration) {
        if let Some(service) = self.heads.remove(&pid) {
            self.ended.push((pid, service, after));
        }
    }

    fn note(&self, port: u16) -> Option<String> {
        if self.ended.is_empty() {
            return None;
        }
        let one = |(pid, service, after): &(Pid, String, Duration)| {
            format!("{service}, pid {pid}, after {}", time(after.as_secs_f64()))
        };
        let mut named: Vec<String> = self.ended.iter().take(NAMED).map(one).collect();
        if let Some(more @ 1..) = self.ended.len().checked_sub(NAMED) {
            named.push(format!("{more} more"));
        }
        Some(format!(
            "{} that listened on port {port} ended during the profile ({}). The figures include {} and \
             every process that listened there afterwards.",
            counted(self.ended.len() as u64, "process", "processes"),
            named.join("; "),
            if self.ended.len() == 1 { "it" } else { "them" },
        ))
    }
}

impl Session {
    /// Follows a selected port: takes note of its listeners, selects new ones, and has the
    /// ports read at once where one has `appeared`.
    pub(super) fn follow_port(&mut self, appeared: bool) {
        if self.table.selected_port().is_none() {
            return;
        }
        if appeared {
            self.listening.hurry();
        }
        self.listening.turn(&self.proc, self.table.lives());
        if self.listening.take_news() {
            self.table.follow_listeners(self.listening.known());
            self.note_port_listeners();
        }
    }

    /// At the end: selects who listens on the port now, whether it had a connection or not.
    pub(super) fn settle_port(&mut self) {
        if self.table.selected_port().is_some() {
            let ports = ListeningPorts::read(&self.proc, self.table.live());
            self.table.follow_listeners(&ports);
        }
    }

    /// Takes note of the heads of those that listen on the selected port.
    pub(super) fn note_port_listeners(&mut self) {
        for pid in self.table.heads_of_listeners(self.listening.known()) {
            if let Some(service) = self.table.service_of(pid) {
                let service = service.as_str().to_owned();
                self.port.heads.insert(pid, service);
            }
        }
    }

    /// Processes have ended, at these times of the kernel's monotonic clock.
    pub(super) fn note_port_ends(&mut self, ended: &BTreeMap<Pid, u64>) {
        let now = monotonic_now();
        let elapsed = self.elapsed();
        for (&pid, &time) in ended {
            let ago = now.saturating_sub(Duration::from_nanos(time));
            self.port.end(pid, elapsed.saturating_sub(ago));
        }
    }

    /// Who listened on the selected port and has ended.
    pub(super) fn note_on_port(&self) -> Option<String> {
        self.port.note(self.table.selected_port()?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn ended_listeners_are_named() {
        let mut port = PortListeners::default();
        for pid in 1..=4 {
            port.heads.insert(pid, "nginx".to_owned());
        }
        assert_eq!(port.note(443), None);
        port.end(9, Duration::ZERO);
        port.end(1, Duration::from_millis(400));
        assert_eq!(
            port.note(443).unwrap(),
            "1 process that listened on port 443 ended during the profile (nginx, pid 1, after 400 ms). \
             The figures include it and every process that listened there afterwards."
        );
        for pid in 2..=4 {
            port.end(pid, Duration::from_secs(1));
        }
        let all = port.note(443).unwrap();
        assert!(
            all.starts_with("4 processes") && all.contains("; 1 more)"),
            "{all}"
        );
    }
}
