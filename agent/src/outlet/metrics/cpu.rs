//! CPU time of services: what the kernel accounts, and by activity.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use crate::evidence::activity::{Activity, Mode};
use crate::ledger::{Check, Ledger, Part, Sampling, ServiceAccount};

use super::collector::{Labels, NONE, Writer};

/// The activity of time that no sample speaks for.
const UNATTRIBUTED: &str = "unattributed";

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    accounted(encoder, ledger)?;
    seconds(encoder, ledger)?;
    samples(encoder, ledger)?;
    unclassified(encoder, ledger)?;
    period(encoder, ledger)?;
    let mut error = Writer::gauge(
        encoder,
        "tlsprof_cpu_reconciliation_error_ratio",
        "How far the activities of the last minute are from the CPU time that the kernel accounts.",
    )?;
    checks(&mut error, ledger, |check| check.error_ratio)?;
    let mut sampled = Writer::gauge(
        encoder,
        "tlsprof_cpu_sampled_ratio",
        "What the samples of the last minute stand for, as a share of the CPU time that the kernel accounts.",
    )?;
    checks(&mut sampled, ledger, |check| check.sampled_ratio)
}

fn accounted(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_service_cpu_seconds",
        "CPU time that the kernel accounts to the processes of the service.",
    )?;
    for (service_name, account) in ledger.services() {
        for (mode, time) in [("user", account.cpu_user), ("system", account.cpu_system)] {
            let labels: Labels<'_, 2> = [("service_name", service_name), ("mode", mode)];
            metric.seconds(&labels, time)?;
        }
    }
    Ok(())
}

/// The services with accounts by activity; none where no sample was ever taken.
fn accounts(ledger: &Ledger) -> impl Iterator<Item = (&str, &ServiceAccount)> {
    let sampled = !ledger.sample_period().is_zero();
    ledger.services().filter(move |_| sampled)
}

/// Whether a service has to do with TLS or TCP as far as is known: it listened, or had a
/// handshake or a connection. Once it has, it always has.
fn communicates(account: &ServiceAccount) -> bool {
    account.accept_queue.listened || !account.roles.is_empty() || account.connection_count() > 0
}

/// Parts of the CPU time. Of a service that communicates all, zeros included: a counter is to
/// begin at zero. Of others, which are most processes of a host and only use CPU time, those
/// that are not zero and the application's; so parts still add up to the whole, and none
/// that was there ever goes.
fn parts<'a>(
    service_name: &'a str,
    account: &ServiceAccount,
) -> impl Iterator<Item = (Labels<'a, 3>, Part)> {
    let keys = Activity::ALL
        .into_iter()
        .flat_map(|activity| Mode::ALL.map(|mode| (activity, mode)));
    let all = communicates(account);
    let account = &account.activities;
    let own = |(activity, mode)| activity == Activity::Application && mode != Mode::Softirq;
    let wanted = move |key: &(Activity, Mode)| {
        let part = account.part(key.0, key.1);
        all || own(*key) || part.samples > 0 || !part.cpu().is_zero()
    };
    keys.filter(wanted).map(move |(activity, mode)| {
        let labels = [
            ("service_name", service_name),
            ("activity", activity.label()),
            ("mode", mode.label()),
        ];
        (labels, account.part(activity, mode))
    })
}

fn seconds(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_cpu_seconds",
        "CPU time of the service by activity: samples, scaled to what the kernel accounts.",
    )?;
    for (service_name, account) in accounts(ledger) {
        for (labels, part) in parts(service_name, account) {
            metric.seconds(&labels, part.cpu())?;
        }
        let lost = account.activities.unattributed();
        for (mode, time) in [(Mode::User, lost.user), (Mode::System, lost.system)] {
            let labels: Labels<'_, 3> = [
                ("service_name", service_name),
                ("activity", UNATTRIBUTED),
                ("mode", mode.label()),
            ];
            metric.seconds(&labels, time)?;
        }
    }
    Ok(())
}

fn samples(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_cpu_samples",
        "CPU samples of the service by activity.",
    )?;
    for (service_name, account) in accounts(ledger) {
        for (labels, part) in parts(service_name, account) {
            metric.count(&labels, part.samples)?;
        }
    }
    Ok(())
}

fn unclassified(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_cpu_samples_unclassified",
        "CPU samples in kernel functions that are on no list; they are in application.",
    )?;
    for (service_name, account) in accounts(ledger) {
        let unclassified = account.activities.unclassified();
        metric.count(&[("service_name", service_name)], unclassified)?;
    }
    Ok(())
}

fn period(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_cpu_sample_period_seconds",
        "Time between two samples of a CPU; 0 where none are taken.",
    )?;
    let period = match ledger.sampling() {
        Sampling::Every(period) => period.as_secs_f64(),
        Sampling::Off(_) => 0.0,
    };
    metric.ratio(&NONE, period)
}

fn checks(metric: &mut Writer<'_>, ledger: &Ledger, of: impl Fn(Check) -> f64) -> fmt::Result {
    for (service_name, account) in accounts(ledger) {
        if let Some(check) = account.activities.check() {
            metric.ratio(&[("service_name", service_name)], of(check))?;
        }
    }
    Ok(())
}
