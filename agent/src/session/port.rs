//! Who listens where; of the port that the user named, also who did.

use std::collections::BTreeMap;
use std::time::Duration;

use super::listening::{Listening, Source};
use super::shared::monotonic_now;
use super::targets::Targets;
use tlsprof_common::Pid;
use tlsprof_common::units::time;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_outlet::terminal::units::counted;

/// Most processes that a note names.
const NAMED: usize = 3;

/// Listeners of the port that have ended.
#[derive(Debug, Default)]
struct PortListeners {
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

/// Who listens where, and on the port that the user selected.
pub(super) struct Ports {
    listening: Listening,
    selected: PortListeners,
}

impl Ports {
    pub(super) fn new(listening: Listening) -> Self {
        Self {
            listening,
            selected: PortListeners::default(),
        }
    }

    /// What is known of all processes' ports.
    pub(super) const fn known(&self) -> &ListeningPorts {
        self.listening.known()
    }

    /// Reads the ports of all processes now and then, beside the session.
    pub(super) fn turn(&mut self, loaded: &mut Loaded, targets: &Targets) {
        self.listening.turn(|| source(loaded, targets));
    }

    /// Has them read at once: there is a listener that is not known.
    pub(super) fn hurry(&mut self) {
        self.listening.hurry();
    }

    /// Follows a selected port: takes note of its listeners, selects new ones, and has the
    /// ports read at once where one has `appeared`.
    pub(super) fn follow_selected(
        &mut self,
        loaded: &mut Loaded,
        targets: &mut Targets,
        appeared: bool,
    ) {
        if targets.table.selected_port().is_none() {
            return;
        }
        if appeared {
            self.listening.hurry();
        }
        self.turn(loaded, targets);
        if self.listening.take_news() {
            targets.table.follow_listeners(self.listening.known());
            self.note_listeners(targets);
        }
    }

    /// Takes note of the heads of the selected port's listeners.
    pub(super) fn note_listeners(&mut self, targets: &Targets) {
        for pid in targets.table.heads_of_listeners(self.listening.known()) {
            if let Some(service) = targets.table.service_of(pid) {
                let service = service.as_str().to_owned();
                self.selected.heads.insert(pid, service);
            }
        }
    }

    /// Processes have ended, at these times of the kernel's monotonic clock; the profile has
    /// been under way for that long.
    pub(super) fn note_ends(&mut self, ended: &BTreeMap<Pid, u64>, elapsed: Duration) {
        let now = monotonic_now();
        for (&pid, &time) in ended {
            let ago = now.saturating_sub(Duration::from_nanos(time));
            self.selected.end(pid, elapsed.saturating_sub(ago));
        }
    }

    /// At the end: reads the ports, and selects who listens on the selected one, whether it had a
    /// connection or not.
    pub(super) fn settle(&mut self, loaded: &mut Loaded, targets: &mut Targets) {
        self.listening.read_now(source(loaded, targets));
        targets.table.follow_listeners(self.listening.known());
    }

    /// Who listened on the selected port and has ended.
    pub(super) fn note(&self, targets: &Targets) -> Option<String> {
        self.selected.note(targets.table.selected_port()?)
    }
}

fn source(loaded: &mut Loaded, targets: &Targets) -> Source {
    Source::new(loaded.listeners(), &targets.proc, targets.table.live())
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
