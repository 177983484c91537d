//! A process for each connection.

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::upkeep::{in_processes, of_processes, processes_per_connection, sampled};
use crate::{CostSource, Evidence, Finding, Observed, Prediction, Range, Server, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, time};
use tlsprof_evidence::activity::{Activity, Upkeep};
use tlsprof_ledger::ServiceAccount;

pub(crate) static KIND: Kind = Kind {
    label: "process-per-connection",
    page: include_str!("../../../../docs/findings/process-per-connection.md"),
    summary: "A process is started for each connection",
    risk: "Processes isolate connections from each other; threads and event loops do not. Code that \
           is safe with one connection per process may not be safe with many.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// What processes cost, in CPU seconds.
struct Cost {
    /// Forking, executing, linking, mapping, ending, and all that they do before their
    /// first handshake.
    upkeep: f64,
    /// The rest that is no handshake and no socket call: their task, and their own end.
    rest: f64,
}

impl Cost {
    fn of(account: &ServiceAccount) -> Option<Self> {
        let activities = &account.activities;
        if activities.samples() == 0 {
            return None;
        }
        let outside = of_processes(account);
        let all = [Activity::Encryption, Activity::Application]
            .map(|activity| in_processes(account, activity));
        let in_handshakes = activities.upkeep(Upkeep::HandshakeMemory);
        Some(Self {
            upkeep: outside + in_handshakes.as_secs_f64(),
            rest: (all.iter().sum::<f64>() - outside).max(0.0),
        })
    }

    fn range(&self, account: &ServiceAccount) -> Range {
        Range {
            high: sampled(account, self.upkeep + self.rest).high,
            ..sampled(account, self.upkeep)
        }
    }
}

fn find(subject: &Subject<'_>) -> Option<Finding> {
    let account = subject.connections(Role::Server)?;
    if !subject.enough(account.opened) || processes_per_connection(subject.account).is_none() {
        return None;
    }
    let processes = subject.account.processes;
    let cost = Cost::of(subject.account);
    let range = cost.as_ref().map(|cost| cost.range(subject.account));
    let prediction = predict(subject, range)?;
    let evidence = Evidence {
        basis: subject.basis(Observed::Connections, account.opened),
        statements: statements(subject, account.opened, range),
        figures: vec![
            ("connections", account.opened as f64),
            ("processes_forked", processes.forked as f64),
            ("programs_executed", processes.executed as f64),
            (
                "seconds_per_process",
                range.map_or(0.0, |range| range.likely / processes.forked.max(1) as f64),
            ),
        ],
    };
    let title = "A process is started for each connection".to_owned();
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

fn predict(subject: &Subject<'_>, range: Option<Range>) -> Option<Prediction> {
    let Some(range) = range else {
        return Some(Prediction::Unknown(
            "the cost of a process is known from CPU samples, and there are none".to_owned(),
        ));
    };
    let method = "Estimate from samples: CPU to fork, execute and end processes, to link programs \
                  and map their memory, and of all work before their first handshake. Upper bound: \
                  all CPU outside handshakes and socket calls.";
    subject.worth(range.likely).then(|| {
        Prediction::Saving(subject.saving(range, CostSource::ThisService, method.to_owned()))
    })
}

fn statements(subject: &Subject<'_>, opened: u64, range: Option<Range>) -> Vec<String> {
    let processes = subject.account.processes;
    let mut statement = format!(
        "{} connections were opened, and {} processes started",
        count(opened),
        count(processes.forked)
    );
    if processes.executed > 0 {
        statement.push_str(&format!(
            ", {} of which executed a new program",
            count(processes.executed.min(processes.forked))
        ));
    }
    statement.push('.');
    let each = range.map(|range| {
        format!(
            "CPU per process: {}, {} of the service's CPU in total.",
            time(range.likely / processes.forked.max(1) as f64),
            subject.share_in_words(range.likely)
        )
    });
    std::iter::once(statement).chain(each).collect()
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Apache => (
            "Keep processes alive (0 means no limit). Better: use the event MPM.",
            "MaxConnectionsPerChild 0",
        ),
        Server::Stunnel => (
            "Run stunnel as a daemon instead of from inetd or systemd's Accept=yes.",
            "accept = 443",
        ),
        _ => (
            "Serve many connections per process: with threads, an event loop or a pool of \
             processes. Under inetd or systemd, run a daemon (Accept=no). Link the TLS library \
             instead of starting a program for it, and enable session resumption.",
            "",
        ),
    }
}
