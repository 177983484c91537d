//! Session resumption: refused by the server, or not asked for.

use super::refusal;
use crate::costs::range;
use crate::remedies::refused_since;
use crate::subject::{Subject, Tally};
use crate::{CostSource, Evidence, Finding, Id, Observed, Prediction, Range, Saving, Severity};
use tlsprof_common::units::{count, percent, time};
use tlsprof_common::{Outcome, Resumption, Role, Step};
use tlsprof_evidence::hello::Attempt;
use tlsprof_ledger::{Class, HandshakeKey, Moments, RoleAccount};

/// Share of hellos without a session from which nobody seems to ask for resumption.
const NOBODY_OFFERS: f64 = 0.9;

/// Two protocols in one: a resumed handshake of TLS 1.3 still exchanges keys.
#[derive(Clone, Copy, PartialEq)]
enum Era {
    Tls13,
    Before,
}

impl Era {
    const ALL: [Self; 2] = [Self::Tls13, Self::Before];

    fn has(self, key: &HandshakeKey) -> bool {
        (self == Self::Tls13) == (key.version == "TLS1.3")
    }

    /// The steps of a full handshake that a resumed one has not.
    const fn spared(self) -> &'static [Step] {
        match self {
            Self::Tls13 => &[Step::Signing, Step::Verification],
            Self::Before => &[
                Step::KeyExchange,
                Step::Signing,
                Step::Verification,
                Step::RsaDecryption,
            ],
        }
    }

    /// Besides the steps that it spares, a resumed handshake sends no certificate, hashes
    /// less and, before TLS 1.3, needs no second flight of the client: this share of what
    /// is not in those steps. As measured on nginx, Apache httpd, HAProxy and Node.js with
    /// OpenSSL 3.0; docs/journal/2026-11-21-predicted-and-measured-savings.md.
    const fn spared_besides(self) -> Range {
        match self {
            Self::Tls13 => Range {
                low: 0.05,
                likely: 0.1,
                high: 0.25,
            },
            Self::Before => Range {
                low: 0.35,
                likely: 0.45,
                high: 0.6,
            },
        }
    }
}

fn full(role: Role, era: Era) -> impl Fn(&HandshakeKey) -> bool {
    move |key| {
        key.role == role
            && key.outcome == Outcome::Completed
            && key.resumption == Resumption::None
            && era.has(key)
    }
}

fn costs(subject: &Subject<'_>, wanted: impl Fn(&HandshakeKey) -> bool) -> Moments {
    let those = subject
        .account
        .handshakes
        .iter()
        .filter(|(key, _)| wanted(key));
    those.fold(Moments::default(), |sum, (_, one)| sum.plus(one.costs))
}

/// Seconds that one resumed handshake takes less than a full one, and how that is known.
fn spared(subject: &Subject<'_>, role: Role, era: Era) -> Option<(Range, &'static str)> {
    let resumed = |key: &HandshakeKey| {
        key.role == role
            && key.outcome == Outcome::Completed
            && !matches!(key.resumption, Resumption::None | Resumption::Unknown)
            && era.has(key)
    };
    let whole = range(costs(subject, full(role, era)));
    if let Some(resumed) = range(costs(subject, resumed)) {
        return Some((
            whole?.minus(resumed),
            "A full handshake of this service, less a resumed one of it",
        ));
    }
    by_steps(subject.role(role)?, era, whole?).map(|range| {
        (
            range,
            "The steps of a full handshake of this service that a resumed one has not, and an \
             estimated share of the rest",
        )
    })
}

fn by_steps(role: &RoleAccount, era: Era, whole: Range) -> Option<Range> {
    let mut sum = Range::default();
    for step in era.spared() {
        let full = |class: &Class| class.resumption == Resumption::None;
        let cost = role.steps.cost(*step, full);
        sum = sum.plus(range(cost)?);
    }
    let rest = (whole.likely - sum.likely).max(0.0);
    Some(sum.plus(era.spared_besides().times(rest)))
}

/// CPU time that resuming these handshakes would have saved.
fn saved(subject: &Subject<'_>, role: Role, numbers: [u64; 2]) -> Option<Saving> {
    let mut cpu = Range::default();
    let mut method = "";
    for (era, number) in Era::ALL.into_iter().zip(numbers) {
        if number > 0 {
            let (each, how) = spared(subject, role, era)?;
            cpu = cpu.plus(each.times(number as f64));
            method = how;
        }
    }
    let method = format!("{method}, times the handshakes that could have been resumed.");
    Some(subject.saving(cpu, CostSource::ThisService, method))
}

/// Full handshakes, as an upper bound where nothing better is known.
fn all_full(subject: &Subject<'_>, role: Role) -> Tally {
    subject.handshakes(|key| Era::ALL.iter().any(|era| full(role, *era)(key)))
}

fn attempts(role: &RoleAccount, wanted: Attempt) -> impl Iterator<Item = (&'static str, u64)> {
    let attempts = role.hellos.attempts.iter();
    attempts
        .filter(move |((attempt, _), _)| *attempt == wanted)
        .map(|((_, means), number)| (*means, *number))
}

/// Sessions that clients brought, and that the server did not take up.
pub(super) fn refused(subject: &Subject<'_>) -> Option<Finding> {
    let role = subject.role(Role::Server)?;
    let by_means: Vec<(&str, u64)> = attempts(role, Attempt::Refused).collect();
    let number: u64 = by_means.iter().map(|(_, number)| number).sum();
    if !subject.enough(number) {
        return None;
    }
    let psk = by_means.iter().filter(|(means, _)| *means == "psk");
    let psk: u64 = psk.map(|(_, number)| number).sum();
    let prediction = match saved(subject, Role::Server, [psk, number - psk]) {
        Some(saving) => {
            if !subject.worth(saving.cpu.likely) {
                return None;
            }
            Prediction::Saving(saving)
        }
        None if !subject.worth(all_full(subject, Role::Server).each() * number as f64) => {
            return None;
        }
        None => Prediction::Unknown(
            "no resumed handshake of this service was measured, nor the steps of full ones"
                .to_owned(),
        ),
    };
    let accepted: u64 = attempts(role, Attempt::Accepted)
        .map(|(_, number)| number)
        .sum();
    let offered = number + accepted;
    let means: Vec<String> = by_means
        .iter()
        .map(|(means, number)| format!("{} by {}", count(*number), means_in_words(means)))
        .collect();
    let full = all_full(subject, Role::Server);
    let mut statements = vec![
        format!(
            "{} clients brought a session, and {} ({}) were refused: {}.",
            count(offered),
            count(number),
            percent(number as f64 / offered as f64),
            means.join(", ")
        ),
        format!(
            "Each paid for a full handshake, {} of CPU.",
            time(full.each())
        ),
    ];
    let origins = &role.hellos.origins;
    let by_id = by_means.iter().filter(|(means, _)| *means == "session_id");
    let by_id: u64 = by_id.map(|(_, number)| number).sum();
    let cause = refusal::cause(origins, number, by_id < number - by_id);
    statements.extend(refusal::statements(origins, number, cause));
    let mut figures = vec![
        ("refused_handshakes", number as f64),
        ("accepted_handshakes", accepted as f64),
        ("full_handshake_seconds", full.each()),
    ];
    figures.extend(refusal::figures(origins));
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, offered),
        statements,
        figures,
    };
    let mut title = "Clients bring sessions to resume, and the server refuses them".to_owned();
    if let Some(cause) = cause {
        title.push_str(": ");
        title.push_str(cause.words());
    }
    let kind = (Id::ResumptionRefused, Role::Server);
    let mut finding = subject.finding(kind, Severity::Medium, title, evidence, prediction);
    if let Some(cause) = cause {
        finding.remedy = refused_since(cause, subject.server);
    }
    Some(finding)
}

fn means_in_words(means: &str) -> &str {
    match means {
        "session_id" => "session id",
        "psk" => "TLS 1.3 ticket",
        "ticket" => "TLS 1.2 ticket",
        other => other,
    }
}

/// Clients that never bring a session.
pub(super) fn not_offered_by_clients(subject: &Subject<'_>) -> Option<Finding> {
    not_offered(subject, Role::Server)
}

/// The service, as a client, never brings a session.
pub(super) fn not_offered_by_service(subject: &Subject<'_>) -> Option<Finding> {
    not_offered(subject, Role::Client)
}

fn not_offered(subject: &Subject<'_>, role: Role) -> Option<Finding> {
    let account = subject.role(role)?;
    let number: u64 = attempts(account, Attempt::NotOffered)
        .map(|(_, number)| number)
        .sum();
    let share = number as f64 / account.hellos.hellos.max(1) as f64;
    if !subject.enough(number) || share < NOBODY_OFFERS {
        return None;
    }
    let full = Era::ALL.map(|era| subject.handshakes(full(role, era)).count);
    let saving = saved(subject, role, full);
    let bound = subject.worth(all_full(subject, role).cpu);
    let caveat = match role {
        Role::Server => "a client that comes for the first time has no session to bring",
        Role::Client => "a server that is connected to for the first time has given no session",
    };
    let prediction = match saving {
        Some(saving) if subject.worth(saving.cpu.likely) => {
            Prediction::AtMost(saving, caveat.to_owned())
        }
        None if bound => Prediction::Unknown(
            "no resumed handshake of this service was measured, nor the steps of full ones"
                .to_owned(),
        ),
        _ => return None,
    };
    let (who, title) = match role {
        Role::Server => ("clients", "No client brings a session to resume"),
        Role::Client => (
            "of its own hellos",
            "The service brings no session when it connects to other servers",
        ),
    };
    let statements = vec![format!(
        "{} of {} {who} ({}) brought no session. Either the server gives none, or the clients \
         come once, or drop it.",
        count(number),
        count(account.hellos.hellos),
        percent(share)
    )];
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, account.hellos.hellos),
        statements,
        figures: vec![
            ("not_offered_handshakes", number as f64),
            ("not_offered_ratio", share),
        ],
    };
    let kind = (Id::ResumptionNotOffered, role);
    Some(subject.finding(kind, Severity::Low, title.to_owned(), evidence, prediction))
}
