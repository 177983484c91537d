//! CPU time of services: what the kernel accounts, and by activity.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::Primitive;
use tlsprof_ledger::{Check, Ledger, Part, PrimitiveAccount, Sampling, ServiceAccount};

use super::families::{
    CPU, CPU_RECONCILIATION_ERROR, CPU_SAMPLE_PERIOD, CPU_SAMPLED, CPU_SAMPLES,
    CPU_SAMPLES_UNCLASSIFIED, CRYPTO_CPU, HANDSHAKE_STEP_SAMPLED_CPU, SERVICE_CPU,
};
use super::rows::{one, write};

/// The activity of time that no sample speaks for.
const UNATTRIBUTED: &str = "unattributed";

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let accounted = ledger.services().flat_map(|(name, account)| {
        [
            ([name, Mode::User.label()], account.cpu_user),
            ([name, Mode::System.label()], account.cpu_system),
        ]
    });
    write(encoder, &SERVICE_CPU, accounted)?;
    write(encoder, &CPU, accounts(ledger).flat_map(seconds))?;
    let samples = accounts(ledger).flat_map(|(name, account)| {
        parts(name, account).map(|(labels, part)| (labels, part.samples))
    });
    write(encoder, &CPU_SAMPLES, samples)?;
    let unclassified =
        accounts(ledger).map(|(name, account)| ([name], account.activities.unclassified()));
    write(encoder, &CPU_SAMPLES_UNCLASSIFIED, unclassified)?;
    let primitives = accounts(ledger).flat_map(primitives);
    write(encoder, &CRYPTO_CPU, primitives)?;
    let steps: Vec<(&str, String, Duration)> = accounts(ledger)
        .flat_map(|(name, account)| {
            let counters = account.sampled_step_counters();
            counters.map(move |(steps, cpu)| (name, steps.label(), cpu))
        })
        .collect();
    let steps = steps
        .iter()
        .map(|(name, step, cpu)| ([*name, step.as_str()], *cpu));
    write(encoder, &HANDSHAKE_STEP_SAMPLED_CPU, steps)?;
    let period = match ledger.sampling() {
        Sampling::Every(period) | Sampling::InWindows(period) => *period,
        Sampling::Off(_) => Duration::ZERO,
    };
    write(encoder, &CPU_SAMPLE_PERIOD, one(period))?;
    let errors = checks(ledger, |check| check.error_ratio);
    write(encoder, &CPU_RECONCILIATION_ERROR, errors)?;
    let sampled = checks(ledger, |check| check.sampled_ratio);
    write(encoder, &CPU_SAMPLED, sampled)
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
) -> impl Iterator<Item = ([&'a str; 3], Part)> {
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
        let labels = [service_name, activity.label(), mode.label()];
        (labels, account.part(activity, mode))
    })
}

fn seconds<'a>(
    (service_name, account): (&'a str, &'a ServiceAccount),
) -> impl Iterator<Item = ([&'a str; 3], Duration)> {
    let parts = parts(service_name, account).map(|(labels, part)| (labels, part.cpu()));
    let lost = account.activities.unattributed();
    let labels = |mode: Mode| [service_name, UNATTRIBUTED, mode.label()];
    parts.chain([
        (labels(Mode::User), lost.user),
        (labels(Mode::System), lost.system),
    ])
}

/// What was sampled, which never goes.
fn primitives<'a>(
    (service_name, account): (&'a str, &'a ServiceAccount),
) -> impl Iterator<Item = ([&'a str; 3], Duration)> {
    let keys = PrimitiveAccount::ACTIVITIES
        .into_iter()
        .flat_map(|activity| Primitive::ALL.map(|primitive| (activity, primitive)));
    let computed = account.activities.primitives();
    keys.filter_map(move |(activity, primitive)| {
        let part = computed.part(activity, primitive);
        let labels = [service_name, activity.label(), primitive.label()];
        (part.samples > 0).then_some((labels, part.cpu()))
    })
}

fn checks(ledger: &Ledger, of: impl Fn(Check) -> f64) -> impl Iterator<Item = ([&str; 1], f64)> {
    accounts(ledger).filter_map(move |(name, account)| {
        let check = account.activities.check()?;
        Some(([name], of(check)))
    })
}
