//! A process for each connection.

use crate::advise::subject::Subject;
use crate::advise::{Evidence, Finding, Id, Observed, Prediction, Severity};
use crate::evidence::Role;
use crate::units::count;

/// Processes for each connection from which each has one of its own.
const PER_CONNECTION: f64 = 0.8;
/// More of them are started for something else: a shell that starts programs, a build.
const FOR_SOMETHING_ELSE: f64 = 3.0;

pub(super) fn per_connection(subject: &Subject<'_>) -> Option<Finding> {
    let account = subject.connections(Role::Server)?;
    let processes = subject.account.processes;
    let per_connection = processes.forked as f64 / account.opened.max(1) as f64;
    let one_each = PER_CONNECTION..FOR_SOMETHING_ELSE;
    if !subject.enough(account.opened) || !one_each.contains(&per_connection) {
        return None;
    }
    let mut statement = format!(
        "{} connections were opened, and {} processes started",
        count(account.opened),
        count(processes.forked)
    );
    if processes.executed > 0 {
        statement.push_str(&format!(
            ", of which {} loaded a program anew",
            count(processes.executed.min(processes.forked))
        ));
    }
    statement.push('.');
    let evidence = Evidence {
        basis: subject.basis(Observed::Connections, account.opened),
        statements: vec![statement],
        figures: vec![
            ("connections", account.opened as f64),
            ("processes_forked", processes.forked as f64),
            ("programs_executed", processes.executed as f64),
        ],
    };
    let title = "A process is started for each connection".to_owned();
    let why = "what a process costs depends on its program, and was not measured apart from the \
               work that it does"
        .to_owned();
    let kind = (Id::ProcessPerConnection, Role::Server);
    let prediction = Prediction::Unknown(why);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}
