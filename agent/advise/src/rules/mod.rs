//! The rules: each looks at one service and says what is wrong with it, if anything.

mod accept_queue;
mod bottleneck;
mod certificate;
mod chain;
mod cipher;
mod connections;
mod failures;
mod key_exchange;
mod ports;
mod processes;
mod refusal;
mod resumption;
mod waits;

use super::{Finding, subject::Subject};

/// A rule.
type Rule = fn(&Subject<'_>) -> Option<Finding>;

const RULES: [Rule; 21] = [
    key_exchange::slow,
    certificate::costly,
    cipher::costly,
    certificate::verification,
    chain::long,
    resumption::refused,
    resumption::not_offered_by_clients,
    resumption::not_offered_by_service,
    connections::closed_after_turns,
    connections::upstream,
    ports::time_wait,
    ports::ephemeral,
    processes::per_connection,
    accept_queue::overflow,
    waits::lock,
    waits::disk,
    waits::random,
    waits::pipe,
    failures::handshakes,
    bottleneck::not_tls,
    key_exchange::post_quantum,
];

/// What the rules find.
pub(super) fn apply(subject: &Subject<'_>) -> Vec<Finding> {
    RULES.iter().filter_map(|rule| rule(subject)).collect()
}
