//! Why sessions are refused: by who had given them, and how old they were.

use std::time::Duration;

use super::cause::Cause;
use tlsprof_common::units::{count, time};
use tlsprof_evidence::hello::Giver;
use tlsprof_ledger::{Brought, Distribution, Origins};

/// Share of the refused sessions that a cause must explain.
const MOST: f64 = 0.5;
/// Up to this share of those tried is none: clocks and memory of what was given have
/// their limits.
const NONE: f64 = 0.1;
/// Sessions of known age on which an age limit must rest.
const AGES: u64 = 10;
/// Time-outs are whole seconds: what is younger than one has met none.
const SHORTEST_TIME_OUT: Duration = Duration::from_secs(1);

const GIVERS: [(Giver, &str); 4] = [
    (Giver::Same, "the same process"),
    (Giver::Sibling, "another process of the service"),
    (Giver::Ended, "processes that have ended"),
    (Giver::Stranger, "another service"),
];

/// Sessions that one kind of giver gave, and that were brought again.
#[derive(Clone, Copy)]
struct Tried {
    accepted: u64,
    refused: u64,
}

impl Tried {
    fn of(origins: &Origins, giver: Giver) -> Self {
        let count = |brought: Option<&Brought>| brought.map_or(0, |it| it.count);
        Self {
            accepted: count(origins.accepted(giver)),
            refused: count(origins.refused(giver)),
        }
    }

    fn accepted_share(self) -> f64 {
        self.accepted as f64 / (self.accepted + self.refused).max(1) as f64
    }
}

/// The cause of most of so many refused sessions, if what was seen tells it; `by_ticket`:
/// most of them were tickets, which no server drops before their time.
pub(super) fn cause(origins: &Origins, refused: u64, by_ticket: bool) -> Option<Cause> {
    let enough = |number: u64| number as f64 >= refused as f64 * MOST;
    let of = |giver| Tried::of(origins, giver);
    let (own, siblings) = (of(Giver::Same), of(Giver::Sibling));
    if enough(of(Giver::Stranger).refused) {
        return Some(Cause::OtherService);
    }
    if enough(of(Giver::Ended).refused) {
        return Some(Cause::Restarted);
    }
    if !enough(own.refused + siblings.refused) {
        return None;
    }
    let takes_own = own.accepted_share() >= 1.0 - NONE;
    if takes_own && enough(siblings.refused) && siblings.accepted_share() <= NONE {
        return Some(Cause::NotShared);
    }
    let youngest = youngest_refused(origins);
    if own.accepted + siblings.accepted > 0 {
        let aged = age_limit(origins).is_some() || by_ticket;
        return Some(if aged {
            Cause::TimeOut
        } else {
            Cause::TooSmall
        });
    }
    match youngest {
        Some(age) if age >= SHORTEST_TIME_OUT => Some(Cause::OffOrTimeOut),
        Some(_) if own.refused > 0 => Some(Cause::Off),
        _ => None,
    }
}

fn ages(origins: &Origins, accepted: bool) -> impl Iterator<Item = &Distribution> {
    let brought = [Giver::Same, Giver::Sibling].map(|giver| match accepted {
        true => origins.accepted(giver),
        false => origins.refused(giver),
    });
    let ages = brought.into_iter().flatten().map(|one| &one.ages);
    ages.filter(|ages| ages.count() > 0)
}

/// All but a few are older than this; None if no age is known.
fn youngest_refused(origins: &Origins) -> Option<Duration> {
    ages(origins, false).map(|ages| ages.quantile(0.05)).min()
}

/// The age up to which sessions were accepted and that from which they were refused, but
/// for a few of each, if there are such.
fn age_limit(origins: &Origins) -> Option<(Duration, Duration)> {
    let counted = |accepted| {
        ages(origins, accepted)
            .map(Distribution::count)
            .sum::<u64>()
    };
    let oldest = ages(origins, true).map(|ages| ages.quantile(0.95)).max()?;
    let youngest = youngest_refused(origins)?;
    let apart = oldest <= youngest && counted(true) >= AGES && counted(false) >= AGES;
    apart.then_some((oldest, youngest))
}

/// What was seen of the sessions that were refused.
pub(super) fn statements(origins: &Origins, refused: u64, cause: Option<Cause>) -> Vec<String> {
    let seen = GIVERS.map(|(giver, words)| (Tried::of(origins, giver), words));
    let known: u64 = seen.iter().map(|(tried, _)| tried.refused).sum();
    let mut givers: Vec<String> = seen
        .iter()
        .filter(|(tried, _)| tried.refused + tried.accepted > 0)
        .map(|(tried, words)| {
            let (refused, accepted) = (count(tried.refused), count(tried.accepted));
            format!("{words}: {refused} refused, {accepted} accepted")
        })
        .collect();
    if refused > known {
        givers.push(format!("unknown: {} refused", count(refused - known)));
    }
    let mut statements = vec![format!("Issued by {}.", givers.join("; "))];
    match (cause, age_limit(origins), youngest_refused(origins)) {
        (Some(Cause::TimeOut), Some((accepted, refused)), _) => statements.push(format!(
            "Sessions up to an age of {} were accepted; from {} on they were refused.",
            time(accepted.as_secs_f64()),
            time(refused.as_secs_f64())
        )),
        (Some(_), _, Some(youngest)) => statements.push(format!(
            "Age of the youngest refused sessions: {}.",
            time(youngest.as_secs_f64())
        )),
        (Some(_), ..) => {}
        (None, ..) => statements.push(
            "This does not show the cause. Common causes, in this order: cache and tickets are \
             disabled; processes or hosts do not share them; a restart or new ticket keys; a short \
             timeout; a small cache."
                .to_owned(),
        ),
    }
    statements
}

/// The same in figures.
pub(super) fn figures(origins: &Origins) -> Vec<(&'static str, f64)> {
    let names = [
        (
            Giver::Same,
            "refused_by_their_giver",
            "accepted_by_their_giver",
        ),
        (
            Giver::Sibling,
            "refused_of_other_processes",
            "accepted_of_other_processes",
        ),
        (
            Giver::Ended,
            "refused_of_ended_processes",
            "accepted_of_ended_processes",
        ),
        (
            Giver::Stranger,
            "refused_of_other_services",
            "accepted_of_other_services",
        ),
    ];
    let figures = names.into_iter().flat_map(|(giver, refused, accepted)| {
        let tried = Tried::of(origins, giver);
        [(refused, tried.refused), (accepted, tried.accepted)]
    });
    let some = figures.filter(|(_, number)| *number > 0);
    some.map(|(name, number)| (name, number as f64)).collect()
}
