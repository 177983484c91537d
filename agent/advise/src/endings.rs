//! Connections that end after the same number of turns, and what longer ones would save.

use crate::subject::Subject;
use crate::upkeep::{PerConnection, own_code, per_connection};
use crate::{CostSource, Evidence, Observed, Prediction, Range, Saving, Severity, Variant};
use tlsprof_common::units::{count, percent, rate, time};
use tlsprof_common::{Closer, Role};
use tlsprof_ledger::{Closed, ConnectionAccount};

/// Share of all connections that must have ended alike.
const ALIKE: f64 = 0.5;

/// A limit is one that (almost) no connection passes.
const BEYOND: f64 = 0.01;

/// Limits to predict for.
const LIMITS: [u32; 4] = [10, 40, 100, 1000];

/// The handshakes saved cost what those measured did, to within this share.
const MARGIN: f64 = 0.05;

/// Connections that one side ended after the same number of turns.
pub(crate) struct Spike {
    pub turns: u32,
    pub connections: u64,
    /// Of all that ended.
    pub share: f64,
}

pub(crate) fn spike<'a>(
    account: &ConnectionAccount,
    of: impl Iterator<Item = &'a Closed> + Clone,
) -> Option<(Spike, f64)> {
    let turns = of.clone().flat_map(|closed| closed.turns.classes());
    let mut classes: Vec<(u32, u32, u64)> = turns.collect();
    classes.sort_unstable();
    let (turns, _, _) = *classes
        .iter()
        .filter(|(from, to, _)| from == to && *from > 0)
        .max_by_key(|(.., connections)| *connections)?;
    let sum = |wanted: &dyn Fn(u32) -> bool| -> u64 {
        let those = classes.iter().filter(|(from, ..)| wanted(*from));
        those.map(|(.., connections)| connections).sum()
    };
    let connections = sum(&|from| from == turns);
    // Those that nobody counted may have more.
    let unknown: u64 = of.map(Closed::turns_unknown).sum();
    let beyond = (sum(&|from| from > turns) + unknown) as f64 / (sum(&|_| true) + unknown) as f64;
    let share = connections as f64 / account.closed_count() as f64;
    let spike = Spike {
        turns,
        connections,
        share,
    };
    Some((spike, beyond))
}

/// Connections that the server closed, nearly all after the same number of turns.
pub(crate) struct ClosedByServer {
    pub turns: u32,
    pub evidence: Evidence,
    pub(crate) saving: Saving,
}

/// None where they are too few, or longer ones save too little.
pub(crate) fn closed_by_server(subject: &Subject<'_>) -> Option<ClosedByServer> {
    let account = subject.connections(Role::Server)?;
    let local = account.closed.get(&Closer::Local)?;
    let (spike, beyond) = spike(account, std::iter::once(local))?;
    if !subject.enough(spike.connections) || spike.share < ALIKE || beyond > BEYOND {
        return None;
    }
    let saving = saving(subject, Role::Server, &spike)?;
    subject.worth(saving.cpu.likely).then(|| ClosedByServer {
        turns: spike.turns,
        evidence: evidence(subject, (account, Role::Server), &spike, "the server"),
        saving,
    })
}

/// An upper bound alone is nothing grave: clients may be the cause.
pub(crate) fn of_bound(prediction: &Prediction) -> Severity {
    let share = prediction
        .saving()
        .map_or(0.0, |saving| saving.share.likely);
    Severity::of_share(share).max(Severity::Medium)
}

/// What longer connections save: TLS handshakes, and the opening and closing of the TCP
/// connections.
pub(crate) fn saving(subject: &Subject<'_>, role: Role, spike: &Spike) -> Option<Saving> {
    let (handshakes, with_tls) = handshakes(subject, role, spike)?;
    let own = own_code(subject, role, spike.connections).times(with_tls as f64);
    let tcp = per_connection(subject.account);
    let opening = tcp.map_or_else(Range::default, |each| {
        each.cpu(role).times(spike.connections as f64)
    });
    let all = handshakes.plus(opening).plus(own);
    let at = |limit: u32| all.times(1.0 - f64::from(spike.turns) / f64::from(limit));
    let mut limits: Vec<u32> = LIMITS
        .into_iter()
        .filter(|limit| *limit > spike.turns)
        .collect();
    // Beyond a hundred there is hardly more to save.
    if limits.len() > 1 {
        limits.retain(|limit| *limit <= 100);
    }
    let best = *limits.last()?;
    let method = method(
        best,
        [handshakes.likely, own.likely].map(|cpu| cpu > 0.0),
        tcp.is_some(),
    );
    let mut saving = subject.saving(at(best), CostSource::ThisService, method);
    saving.variants = limits
        .iter()
        .map(|&limit| Variant {
            change: format!("{} requests per connection", count(limit.into())),
            share: subject.share(at(limit)),
        })
        .collect();
    Some(saving)
}

/// The TLS handshakes of those that ended alike: in CPU seconds, and how many.
fn handshakes(subject: &Subject<'_>, role: Role, spike: &Spike) -> Option<(Range, u64)> {
    let completed = subject.completed(role);
    // Which connections carry TLS is not kept by their turns. At least so many of those
    // that ended alike do, as all the others may, those that are still open included.
    let account = subject.connections(role)?;
    let all = account.closed_count().max(account.opened);
    let others = all - spike.connections;
    let alike = completed
        .count
        .saturating_sub(others)
        .min(spike.connections);
    let cpu = completed.cpu * alike as f64 / completed.count.max(1) as f64;
    Some((Range::around(cpu, cpu * MARGIN), alike))
}

fn method(limit: u32, [has_tls, has_own]: [bool; 2], has_samples: bool) -> String {
    let what = match (has_tls, has_samples) {
        (true, true) => {
            "Estimate: TLS handshakes of the avoided connections, plus kernel CPU in the service's \
             processes to open and close them, including their threads and processes"
        }
        (true, false) => "Estimate: TLS handshakes of the avoided connections",
        (false, _) => {
            "Estimate: kernel CPU in the service's processes to open and close the avoided \
             connections, including their threads and processes"
        }
    };
    let own = if has_own {
        "The service's own CPU per connection is estimated from its handshakes."
    } else {
        "This is a lower bound: the service's own CPU per connection is unknown."
    };
    format!(
        "{what}, at {} requests per connection, if clients send as many. {own}",
        count(limit.into())
    )
}

pub(crate) fn evidence(
    subject: &Subject<'_>,
    (account, role): (&ConnectionAccount, Role),
    spike: &Spike,
    closer: &str,
) -> Evidence {
    let noun = match (subject.account.turns_are_requests(role), spike.turns) {
        (true, 1) => "request",
        (true, _) => "requests",
        (false, 1) => "turn",
        (false, _) => "turns",
    };
    let closed = account.closed_count();
    let mut statements = vec![format!(
        "{} of {} connections ({}) were closed by {closer} after exactly {} {noun}.",
        count(spike.connections),
        count(closed),
        percent(spike.share),
        count(spike.turns.into()),
    )];
    if account.time_wait_created > 0 {
        statements.push(format!(
            "They left {} TIME_WAIT sockets ({}).",
            count(account.time_wait_created),
            rate(
                account.time_wait_created,
                subject.setting.elapsed.as_secs_f64()
            )
        ));
    }
    let each = per_connection(subject.account);
    let measured = each.filter(|each| each.cpu(role).likely > 0.0);
    statements.extend(measured.map(|each| opening_in_words(&each, role)));
    Evidence {
        basis: subject.basis(Observed::Connections, closed),
        statements,
        figures: vec![
            (
                "open_and_close_seconds",
                each.map_or(0.0, |each| each.cpu(role).likely),
            ),
            (
                "open_and_close_softirq_seconds",
                each.map_or(0.0, |each| each.softirq),
            ),
            ("connections", closed as f64),
            ("alike_connections", spike.connections as f64),
            ("turns", f64::from(spike.turns)),
            ("time_wait_created", account.time_wait_created as f64),
        ],
    }
}

fn opening_in_words(each: &PerConnection, role: Role) -> String {
    let mut text = format!(
        "CPU to open and close a connection: {} in the service's processes",
        time(each.cpu(role).likely)
    );
    if role == Role::Server && each.threads.likely > 0.0 {
        text.push_str(&format!(
            ", including {} to start and end threads or processes",
            time(each.threads.likely)
        ));
    }
    if each.softirq > 0.0 {
        text.push_str(&format!(", plus about {} in softirq", time(each.softirq)));
    }
    text.push('.');
    text
}
