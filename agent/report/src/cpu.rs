//! CPU time by activity and by unit of a service, from its account.

use std::time::Duration;

use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::{Evidence, Primitive};
use tlsprof_ledger::{Ledger, PrimitiveAccount, Sampling as SampledBy, ServiceAccount};

use super::model::{ActivityCpu, CpuSamples, PrimitiveCpu, PrimitiveSamples, Sampling, UnitCost};

/// How CPUs were sampled, or why they were not.
pub fn sampling(ledger: &Ledger) -> Sampling {
    let (period, first, unavailable) = match ledger.sampling() {
        SampledBy::Every(period) => (Some(*period), ledger.first_sample_period(), None),
        SampledBy::InWindows(period) => (Some(*period), None, None),
        SampledBy::Off(reason) => (None, None, Some(reason.to_string())),
    };
    let seconds = |period: Duration| period.as_secs_f64();
    Sampling {
        period_seconds: period.map(seconds),
        first_period_seconds: first.filter(|first| Some(*first) < period).map(seconds),
        unavailable,
    }
}

/// Empty where nothing was sampled: that is not six zeros.
pub(super) fn activities(account: &ServiceAccount) -> Vec<ActivityCpu> {
    let activities = &account.activities;
    if activities.is_empty() {
        return Vec::new();
    }
    let total = account.cpu().as_secs_f64().max(f64::MIN_POSITIVE);
    let of = |activity| {
        let [user, system, softirq] = Mode::ALL.map(|mode| activities.part(activity, mode));
        let samples = user.samples + system.samples;
        let seconds = (user.cpu() + system.cpu()).as_secs_f64();
        let share = seconds / total;
        let limits = activities.limits(seconds).scaled(1.0 / total);
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
        effective: activities.effective_samples(),
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
    let activities = &account.activities;
    let computed = activities.primitives();
    let total = account.cpu().as_secs_f64().max(f64::MIN_POSITIVE);
    let of = |primitive| {
        let [handshake, encryption] =
            PrimitiveAccount::ACTIVITIES.map(|activity| computed.part(activity, primitive));
        let samples = handshake.samples + encryption.samples;
        let seconds = (handshake.cpu() + encryption.cpu()).as_secs_f64();
        let share = seconds / total;
        let limits = activities.limits(seconds).scaled(1.0 / total);
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
