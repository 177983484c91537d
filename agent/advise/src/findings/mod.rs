//! The findings: each in one file with its rule, its words and its remedies, and a page in
//! `docs/findings/`. [`ALL`] names them.
//!
//! A directive is a line or more to put into the server's configuration as it is, or a
//! setting by its place in the user interface. Where a server has none for it, or is not
//! known, the advice is general.

mod accept_queue_overflow;
mod certificate_verification;
mod connections_closed_after_n_turns;
mod costly_certificate;
mod costly_cipher;
mod disk_wait;
mod ephemeral_ports;
mod handshake_failures;
mod keep_alive_off;
mod lock_wait;
mod long_certificate_chain;
#[cfg(test)]
mod pages;
mod pipe_wait;
mod post_quantum_cost;
mod process_per_connection;
mod random_wait;
mod resumption_not_offered;
mod resumption_refused;
mod slow_key_exchange;
mod time_wait_build_up;
mod tls_is_not_the_bottleneck;
mod upstream_keep_alive_off;

use crate::Finding;
use crate::finding::Kind;
use crate::subject::Subject;

/// All findings, in the order of the index of their pages.
pub(crate) static ALL: [&Kind; 21] = [
    &slow_key_exchange::KIND,
    &costly_certificate::KIND,
    &costly_cipher::KIND,
    &certificate_verification::KIND,
    &long_certificate_chain::KIND,
    &resumption_refused::KIND,
    &resumption_not_offered::KIND,
    &connections_closed_after_n_turns::KIND,
    &keep_alive_off::KIND,
    &upstream_keep_alive_off::KIND,
    &time_wait_build_up::KIND,
    &ephemeral_ports::KIND,
    &process_per_connection::KIND,
    &accept_queue_overflow::KIND,
    &lock_wait::KIND,
    &disk_wait::KIND,
    &random_wait::KIND,
    &pipe_wait::KIND,
    &handshake_failures::KIND,
    &tls_is_not_the_bottleneck::KIND,
    &post_quantum_cost::KIND,
];

impl Kind {
    /// All kinds, in the order of the index of their pages.
    pub const fn all() -> &'static [&'static Self] {
        &ALL
    }

    /// The kind of this name.
    pub fn named(label: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|kind| kind.label == label)
    }
}

/// What the rules find.
pub(crate) fn apply(subject: &Subject<'_>) -> Vec<Finding> {
    let rules = ALL.iter().flat_map(|kind| kind.rules);
    rules.filter_map(|(_, rule)| rule(subject)).collect()
}
