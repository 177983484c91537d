//! A session's bookings, for tests.

use std::sync::PoisonError;

use super::Metrics;
use tlsprof_common::Role;
use tlsprof_evidence::Evidence;
use tlsprof_evidence::sample::opening;
use tlsprof_ledger::SharedLedger;
use tlsprof_report::sample::{connection, handshake, record_queues};

/// Books a handshake and a connection as a session does: in the ledger, then in the histograms.
pub fn book(ledger: &SharedLedger, metrics: &Metrics, service: &str) {
    let mut ledger = ledger.write().unwrap_or_else(PoisonError::into_inner);
    ledger.record(service, &handshake());
    let evidence = Evidence::Handshake(Box::new(handshake()));
    metrics.observe(ledger.booked_name(service), &evidence);
    ledger.record_opening(service, &opening(Role::Server));
    let evidence = Evidence::Opened(opening(Role::Server));
    metrics.observe(ledger.booked_name(service), &evidence);
    record_queues(&mut ledger, service, 7, 2);
    ledger.record_connection(service, &connection());
    let evidence = Evidence::Closed(Box::new(connection()));
    metrics.observe(ledger.booked_name(service), &evidence);
}
