//! Threads that do not run while their handshake is under way.

use crate::subject::Subject;
use crate::{Evidence, Finding, Id, Observed, Prediction, Range, Severity};
use tlsprof_common::units::{count, percent, time};
use tlsprof_common::{Role, WaitReason};
use tlsprof_ledger::RoleAccount;

pub(super) fn lock(subject: &Subject<'_>) -> Option<Finding> {
    let title = "Handshakes wait for locks that other threads hold";
    wait(subject, WaitReason::Lock, Id::LockWait, title)
}

pub(super) fn disk(subject: &Subject<'_>) -> Option<Finding> {
    let title = "Handshakes wait for a disk";
    wait(subject, WaitReason::Disk, Id::DiskWait, title)
}

pub(super) fn random(subject: &Subject<'_>) -> Option<Finding> {
    let title = "Handshakes wait for random numbers";
    wait(subject, WaitReason::Random, Id::RandomWait, title)
}

pub(super) fn pipe(subject: &Subject<'_>) -> Option<Finding> {
    let title = "Handshakes wait for another process, through a pipe";
    wait(subject, WaitReason::Pipe, Id::PipeWait, title)
}

/// Time that handshakes take in the server itself, in seconds: on the CPU or waiting
/// for anything but their peer.
fn own_time(role: &RoleAccount, cpu: f64) -> f64 {
    let reasons = WaitReason::ALL.into_iter().zip(role.waits);
    let own = reasons
        .filter(|(reason, _)| !matches!(reason, WaitReason::Network | WaitReason::BetweenCalls));
    own.fold(cpu, |sum, (_, wait)| sum + wait.as_secs_f64())
}

fn wait(subject: &Subject<'_>, reason: WaitReason, id: Id, title: &str) -> Option<Finding> {
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
            "{} handshakes waited {} for it, {} each: {} of the time that they take in the server \
             itself.",
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
    let kind = (id, Role::Server);
    let prediction = Prediction::Latency(range);
    Some(subject.finding(kind, severity, title.to_owned(), evidence, prediction))
}
