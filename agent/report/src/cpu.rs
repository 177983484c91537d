//! CPU time by activity and by unit of a service, from its account.

use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::{Evidence, Primitive};
use tlsprof_ledger::interval::of_share;
use tlsprof_ledger::{Ledger, PrimitiveAccount, ServiceAccount};

use super::model::{ActivityCpu, CpuSamples, PrimitiveCpu, PrimitiveSamples, Sampling, UnitCost};

/// How CPUs were sampled, or why they were not.
pub fn sampling(ledger: &Ledger) -> Sampling {
    match ledger.sampling() {
        tlsprof_ledger::Sampling::Every(period) | tlsprof_ledger::Sampling::InWindows(period) => {
            Sampling {
                period_seconds: Some(period.as_secs_f64()),
                unavailable: None,
            }
        }
        tlsprof_ledger::Sampling::Off(reason) => Sampling {
            period_seconds: None,
            unavailable: Some(reason.to_string()),
        },
    }
}

/// Empty where nothing was sampled: that is not six zeros.
pub(super) fn activities(account: &ServiceAccount) -> Vec<ActivityCpu> {
    let activities = &account.activities;
    if activities.is_empty() {
        return Vec::new();
    }
    let all = activities.samples();
    let total = account.cpu().as_secs_f64();
    let attributed = activities.attributed().as_secs_f64() / total.max(f64::MIN_POSITIVE);
    let of = |activity| {
        let [user, system, softirq] = Mode::ALL.map(|mode| activities.part(activity, mode));
        let samples = user.samples + system.samples;
        let seconds = (user.cpu() + system.cpu()).as_secs_f64();
        let share = seconds / total.max(f64::MIN_POSITIVE);
        // Intervals were scaled one by one: the limits are put around the share of the
        // time, which need not be just that of the samples.
        let of_samples = samples as f64 / all.max(1) as f64;
        let by = if samples == 0 {
            attributed
        } else {
            share / of_samples
        };
        let limits = of_share(samples, all).scaled(by);
        ActivityCpu {
            activity: Activity::label(activity).into(),
            cpu_seconds: seconds,
            user_seconds: user.cpu().as_secs_f64(),
            system_seconds: system.cpu().as_secs_f64(),
            softirq_seconds: softirq.cpu().as_secs_f64(),
            share,
            share_low: limits.low,
            share_high: limits.high.min(1.0),
            samples,
            softirq_samples: softirq.samples,
        }
    };
    Activity::ALL.into_iter().map(of).collect()
}

pub(super) fn samples(account: &ServiceAccount) -> Option<CpuSamples> {
    let activities = &account.activities;
    if activities.is_empty() {
        return None;
    }
    let total = account.cpu().as_secs_f64();
    let ratio = |of: f64| (total > 0.0).then(|| of / total);
    let attributed = activities.attributed().as_secs_f64();
    let unattributed = activities.unattributed().total() + activities.waiting().total();
    let system = activities
        .parts()
        .filter(|((_, mode), _)| *mode == Mode::System);
    Some(CpuSamples {
        count: activities.samples(),
        unclassified: activities.unclassified(),
        cipher_alone: activities.cipher_alone(),
        system: system.map(|(_, part)| part.samples).sum(),
        sampled_ratio: ratio(activities.sampled().as_secs_f64()),
        unattributed_seconds: unattributed.as_secs_f64(),
        reconciliation_error_ratio: ratio((total - attributed).abs()),
    })
}

/// What the code of handshakes and encryption computed, most CPU time first.
pub(super) fn primitives(account: &ServiceAccount) -> Vec<PrimitiveCpu> {
    let computed = account.activities.primitives();
    let all = account.activities.samples();
    let total = account.cpu().as_secs_f64().max(f64::MIN_POSITIVE);
    let of = |primitive| {
        let [handshake, encryption] =
            PrimitiveAccount::ACTIVITIES.map(|activity| computed.part(activity, primitive));
        let samples = handshake.samples + encryption.samples;
        let seconds = (handshake.cpu() + encryption.cpu()).as_secs_f64();
        let share = seconds / total;
        // As for activities.
        let of_samples = samples as f64 / all.max(1) as f64;
        let limits = of_share(samples, all).scaled(share / of_samples.max(f64::MIN_POSITIVE));
        PrimitiveCpu {
            primitive: Primitive::label(primitive).into(),
            cpu_seconds: seconds,
            handshake_seconds: handshake.cpu().as_secs_f64(),
            share,
            share_low: limits.low,
            share_high: limits.high.min(1.0),
            samples,
        }
    };
    let mut primitives: Vec<PrimitiveCpu> = Primitive::ALL.into_iter().map(of).collect();
    primitives.retain(|one| one.samples > 0);
    primitives.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    primitives
}

pub(super) fn primitive_samples(account: &ServiceAccount) -> Option<PrimitiveSamples> {
    let computed = account.activities.primitives();
    (!computed.is_empty()).then(|| PrimitiveSamples {
        count: computed.samples(),
        by_name: computed.identified(Evidence::Name),
        by_instructions: computed.identified(Evidence::Instructions),
        not_identified: computed.identified(Evidence::None),
    })
}

pub(super) fn unit_costs(account: &ServiceAccount) -> Vec<UnitCost> {
    let costs = account.unit_costs().into_iter();
    costs
        .map(|cost| UnitCost {
            unit: cost.unit.label().into(),
            count: cost.count,
            cpu_seconds: cost.seconds,
            low_seconds: cost.limits.low,
            high_seconds: cost.limits.high,
            samples: cost.samples,
            cipher: cost.cipher.map(str::to_owned),
        })
        .collect()
}
