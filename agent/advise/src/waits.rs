//! Threads that do not run while their handshake is under way.

use crate::finding::Kind;
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Range, Severity};
use tlsprof_common::units::{count, percent, time};
use tlsprof_common::{Role, WaitReason};
use tlsprof_ledger::RoleAccount;

/// Time that handshakes take in the server itself, in seconds: on the CPU or waiting
/// for anything but their peer.
fn own_time(role: &RoleAccount, cpu: f64) -> f64 {
    let reasons = WaitReason::ALL.into_iter().zip(role.waits);
    let own = reasons
        .filter(|(reason, _)| !matches!(reason, WaitReason::Network | WaitReason::BetweenCalls));
    own.fold(cpu, |sum, (_, wait)| sum + wait.as_secs_f64())
}

/// Handshakes that wait for that reason.
pub(crate) fn wait(
    subject: &Subject<'_>,
    reason: WaitReason,
    kind: &'static Kind,
) -> Option<Finding> {
    let role = subject.role(Role::Server)?;
    let handshakes = subject.handshakes(|key| key.role == Role::Server);
    let waited = role.waits.get(reason as usize)?.as_secs_f64();
    let all = own_time(role, handshakes.cpu);
    let share = waited / all;
    if !subject.enough(handshakes.count) || all <= 0.0 || share < subject.thresholds.min_saving {
        return None;
    }
    let each = waited / handshakes.count as f64;
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, handshakes.count),
        statements: vec![format!(
            "{} handshakes waited {}, {} each: {} of the time that they spent in the server.",
            count(handshakes.count),
            time(waited),
            time(each),
            percent(share)
        )],
        figures: vec![
            ("handshakes", handshakes.count as f64),
            ("wait_seconds", waited),
            ("wait_ratio", share),
        ],
    };
    // The wait itself was measured; what replaces it may wait a little too.
    let range = Range {
        low: each * 0.8,
        likely: each,
        high: each,
    };
    // A share of handshakes, which may be little of the service's time.
    let severity = Severity::of_share(share).max(Severity::Medium);
    let prediction = Prediction::Latency(range);
    Some(subject.finding(
        (kind, Role::Server),
        severity,
        kind.summary.to_owned(),
        evidence,
        prediction,
    ))
}
