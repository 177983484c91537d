//! Steps of handshakes by samples, of a service from its account.

use tlsprof_common::Step;
use tlsprof_ledger::{ServiceAccount, StepAccount, StepSet};

use super::model::SampledStep;

pub(super) fn of(account: &ServiceAccount) -> Vec<SampledStep> {
    let roles = account.roles.values();
    let measured: Vec<StepAccount> = roles.map(|role| role.steps.settled()).collect();
    let sampled = account.sampled_steps().into_iter();
    sampled
        .map(|one| SampledStep {
            steps: one.steps.steps().map(|step| step.label().into()).collect(),
            cpu_seconds: one.cpu.as_secs_f64(),
            share: one.share,
            share_low: one.limits.low,
            share_high: one.limits.high,
            samples: one.samples,
            measured_share: measured_share(&measured, one.steps),
        })
        .collect()
}

/// The share of steps in the handshakes of which probes measured the steps.
fn measured_share(measured: &[StepAccount], wanted: StepSet) -> Option<f64> {
    let cpu = |step: Step| -> f64 {
        let roles = measured.iter().map(|steps| steps.cpu(step).as_secs_f64());
        roles.sum()
    };
    let all: f64 = Step::ALL.map(cpu).iter().sum();
    let those: f64 = wanted.steps().map(cpu).sum();
    (all > 0.0).then(|| those / all)
}
