//! The budget: what was spent since the last judgement, and what is said of it.

mod notices;
mod target_cpu;

use std::time::{Duration, Instant};

use super::calls_rate::InWindowsRate;
use super::governor::{Decision, Duty, Governor, Keep, Rung, Spent};
use super::windows::Attached;
use notices::{Notice, Notices};
use target_cpu::TargetCpu;
use tlsprof_common::units::percent;
use tlsprof_ledger::Ledger;
use tlsprof_outlet::watch::Reduced;

/// Least time between two judgements: in less, CPU times are read too seldom.
const INTERVAL: Duration = Duration::from_millis(1900);

/// Sums since the profile began, in CPU seconds of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// By all processes, and by interrupts.
    pub(super) host: f64,
    /// Probes in libraries.
    pub(super) probes: f64,
    /// Programs at changes of a connection's state.
    pub(super) states: f64,
    /// Programs that no rung takes out, other than these.
    pub(super) others: f64,
    /// For how long the groups of probes that come and go were attached.
    pub(super) attached: Attached,
    /// Handshakes that were seen to end, and these with those that are estimated.
    pub(super) handshakes: u64,
    pub(super) booked: u64,
}

/// The governor, and what had been spent by its last judgement.
pub(super) struct Budget {
    governor: Governor,
    judged: Instant,
    before: Sums,
    targets: TargetCpu,
    notices: Notices,
}

impl Budget {
    /// `share` of the targets' CPU time.
    pub(super) fn new(share: f64, keep: Keep) -> Self {
        Self {
            governor: Governor::new(share, keep),
            judged: Instant::now(),
            before: Sums::default(),
            targets: TargetCpu::default(),
            notices: Notices::default(),
        }
    }

    pub(super) const fn set(&mut self, share: f64) {
        self.governor.set_budget(share);
    }

    /// The rung of now.
    pub(super) fn rung(&self) -> Rung {
        self.governor.rung()
    }

    /// What is not measured now, to keep the budget.
    pub(super) fn reduced(&self) -> Option<Reduced> {
        reduced(self.governor.rung())
    }

    /// The first judgement will be of what is spent from now on.
    pub(super) fn begin(&mut self, sums: Sums, ledger: &Ledger) {
        let _before = self.spent(sums, InWindowsRate::default(), Duty::NEVER, ledger);
    }

    /// Whether it is time for a judgement.
    pub(super) fn is_due(&self) -> bool {
        self.judged.elapsed() >= INTERVAL
    }

    /// Judges what was spent since the last time. `seen`: what is in while socket calls are seen costs in a second.
    /// `key_derivation`: when that is to be probed.
    pub(super) fn judge(
        &mut self,
        sums: Sums,
        seen: InWindowsRate,
        key_derivation: Duty,
        ledger: &Ledger,
    ) -> Decision {
        let spent = self.spent(sums, seen, key_derivation, ledger);
        let decision = self.governor.judge(&spent);
        let cost_ratio = self.governor.share();
        tracing::debug!(?spent, cost_ratio, "the cost of profiling");
        if let Decision::Change(rung) = decision {
            log_change(rung, cost_ratio);
        }
        if let Some(notice) = self.notices.after(decision, self.judged) {
            log_notice(notice, cost_ratio);
        }
        decision
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of seconds")]
    fn spent(
        &mut self,
        sums: Sums,
        seen: InWindowsRate,
        key_derivation: Duty,
        ledger: &Ledger,
    ) -> Spent {
        let length = self.judged.elapsed().as_secs_f64();
        self.judged = Instant::now();
        let before = std::mem::replace(&mut self.before, sums);
        let attached = sums.attached.since(before.attached);
        let host = sums.host - before.host;
        let most = Duration::from_secs_f64(host.max(0.0));
        let targets = self.targets.since_last(ledger.services(), most);
        Spent {
            host,
            targets: targets.as_secs_f64(),
            always: seen.always.times(length),
            windows: seen.windows.times(length),
            is_new: seen.is_new,
            probes: sums.probes - before.probes,
            steps: attached.steps.as_secs_f64() / length,
            derivation: attached.derivation.as_secs_f64() / length,
            key_derivation,
            states: sums.states - before.states,
            others: sums.others - before.others,
            handshakes: sums.handshakes.saturating_sub(before.handshakes) as f64,
            booked: sums.booked.saturating_sub(before.booked) as f64,
        }
    }
}

fn log_change(rung: Rung, cost_ratio: f64) {
    let all = "Everything is measured again.".to_owned();
    let text = reduced(rung).map_or(all, |reduced| reduced.text);
    let cost = percent(cost_ratio);
    tracing::info!("profiling cost {cost} of the services' CPU time. {text}");
}

fn log_notice(notice: Notice, cost_ratio: f64) {
    let cost = percent(cost_ratio);
    match notice {
        Notice::Exceeded => tracing::warn!(
            "profiling exceeds its budget: it costs {cost} of the services' CPU time, and nothing \
             more can be turned off"
        ),
        Notice::Within => tracing::info!(
            "profiling is within its budget again: it costs {cost} of the services' CPU time"
        ),
    }
}

/// What is not measured on a rung, in a sentence; None if all is.
fn reduced(rung: Rung) -> Option<Reduced> {
    let text = if rung.calls != Duty::ALWAYS {
        format!(
            "To keep the budget, only connections opened in {} are followed: their handshakes and \
             requests stand for those of the others, which are only counted.",
            in_words(rung.calls)
        )
    } else if !rung.library {
        "To keep the budget, TLS libraries are not probed: handshakes are measured on their \
         sockets, without steps."
            .to_owned()
    } else if rung.steps != Duty::ALWAYS {
        let windows = in_words(rung.steps);
        format!("To keep the budget, steps of handshakes are measured in {windows} only.")
    } else {
        return None;
    };
    let estimates = rung.calls != Duty::ALWAYS;
    Some(Reduced { text, estimates })
}

fn in_words(duty: Duty) -> String {
    format!(
        "{} s of every {} s",
        duty.window.as_secs_f64(),
        duty.period.as_secs_f64()
    )
}
