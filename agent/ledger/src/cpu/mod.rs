//! CPU time of a service by activity: what samples say, scaled to what the kernel
//! accounts.
//!
//! The kernel knows exactly how much CPU time the processes of a service used;
//! samples know on what. So the time of each interval is divided like its samples:
//! the activities add up to the kernel's total to the nanosecond, nothing is taken
//! back, and the sums can be exported as counters.
//!
//! **User and system are divided by the samples, not by the kernel.** Its total
//! (`sum_exec_runtime`) is exact, but unless it accounts at each entry and exit
//! (`VIRT_CPU_ACCOUNTING`), it divides the total by what ran at clock ticks
//! (`cputime_adjust` in kernel/sched/cputime.c). A process that lives for less than a
//! tick, as in a server that forks for each connection, is user time in whole. Scaling mode
//! by mode would give that time to the wrong activities.
//!
//! **What no sample speaks for waits** for the next one: a service that runs for 3 ms
//! in a second has none in most intervals. Time that waited long, although it stands
//! for many samples, is given up: sampling failed, and the next sample cannot speak for
//! it. It is *unattributed*, never `application`.
//!
//! **Where samples are taken in windows**, nothing waits for the next one: time between windows is
//! divided like the samples of the last ones.
//!
//! **Softirq** is kernel work for the service outside its processes' time. It is no part
//! of that sum; each sample stands for a period.

mod part;
mod primitives;
mod reconcile;
#[cfg(test)]
mod tests;
mod time;
mod window;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::interval::{Interval, of_share};
use crate::since::sums;
use tlsprof_common::Step;
use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
use tlsprof_evidence::primitive::{Evidence, Primitive};

pub use part::Part;
pub use primitives::PrimitiveAccount;
use reconcile::{Waiting, shares};
pub use time::Accounted;
use time::{Key, nanos};
pub use window::Check;
use window::{State, Window};

/// Whether CPU samples are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// They are not, and why.
    Off(Cow<'static, str>),
    /// One on each CPU in this time.
    Every(Duration),
    /// In windows only: each stands for so much time.
    InWindows(Duration),
}

impl Sampling {
    /// Nobody asked for samples.
    pub(crate) const OFF: Self = Self::Off(Cow::Borrowed("they were not asked for"));
}

impl Default for Sampling {
    fn default() -> Self {
        Self::OFF
    }
}

/// Samples by activity, what their code computes, how that is known, and the step that they were called for, if their
/// callers show it.
pub type Primitives = BTreeMap<(Activity, Primitive, Evidence, Option<Step>), u64>;

/// CPU time of one service by activity.
#[derive(Clone, Debug, Default)]
pub struct CpuAccount {
    parts: BTreeMap<Key, Part>,
    pub(super) unclassified: u64,
    /// In nanoseconds that their samples stand for.
    upkeep: BTreeMap<Upkeep, u64>,
    pub(super) cipher_alone: u64,
    primitives: PrimitiveAccount,
    unattributed: Accounted,
    waiting: Waiting,
    /// What the samples of its processes stand for, at a period each.
    sampled: u64,
    /// The squares of these periods.
    squares: u128,
    window: Window,
}

sums!(
    CpuAccount: parts, unclassified, upkeep, cipher_alone, primitives, unattributed, sampled, squares;
    empty: waiting, window
);

impl CpuAccount {
    /// Whether nothing was ever sampled.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Everything that was sampled, by activity and mode.
    pub fn parts(&self) -> impl Iterator<Item = (Key, Part)> {
        self.parts.iter().map(|(key, part)| (*key, *part))
    }

    /// One part of it.
    pub fn part(&self, activity: Activity, mode: Mode) -> Part {
        let part = self.parts.get(&(activity, mode));
        part.copied().unwrap_or_default()
    }

    /// How many samples its processes had, without softirq.
    pub fn samples(&self) -> u64 {
        self.of_processes().map(|(_, part)| part.samples).sum()
    }

    /// CPU time of its processes in all activities together.
    pub fn attributed(&self) -> Duration {
        self.of_processes().map(|(_, part)| part.cpu()).sum()
    }

    /// CPU time that is in no activity and never will be: there were no samples
    /// where there should have been many.
    pub const fn unattributed(&self) -> Accounted {
        self.unattributed
    }

    /// CPU time that waits for a sample.
    pub const fn waiting(&self) -> Accounted {
        self.waiting.cpu
    }

    /// Samples in the kernel whose functions are on no list: they are in
    /// `application`, and show how much the lists miss.
    pub const fn unclassified(&self) -> u64 {
        self.unclassified
    }

    /// CPU time in `application` that is upkeep of processes and threads. By what its samples stand for: they are of
    /// more than one rate, and their intervals are not kept apart.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn upkeep(&self, what: Upkeep) -> Duration {
        let stands_for = self.upkeep.get(&what).copied().unwrap_or_default();
        let share = stands_for as f64 / self.sampled.max(1) as f64;
        self.attributed().mul_f64(share.min(1.0))
    }

    /// Samples in `encryption` that are there for their instructions, and not for the TLS
    /// library that they are in: the cipher itself. What frames and copies records
    /// is not separated from `application` there.
    pub const fn cipher_alone(&self) -> u64 {
        self.cipher_alone
    }

    /// Whether all CPU time of handshakes so far is in primitives, and none waits for a sample.
    pub(super) fn all_handshakes_divided(&self) -> bool {
        !self.waiting.has_cpu() && !self.primitives.has_waiting(Activity::Handshake)
    }

    /// What the code of handshakes and encryption computes.
    pub const fn primitives(&self) -> &PrimitiveAccount {
        &self.primitives
    }

    /// What its samples stand for at a period each, to compare with what the
    /// kernel accounted.
    pub const fn sampled(&self) -> Duration {
        Duration::from_nanos(self.sampled)
    }

    /// How many samples at one rate would be as precise as these: those that stand for a longer time add more to
    /// the error (Kish, Survey Sampling, 1965, section 11.7).
    #[allow(clippy::cast_precision_loss, reason = "statistics")]
    pub fn effective_samples(&self) -> f64 {
        (self.sampled as f64).powi(2) / (self.squares as f64).max(1.0)
    }

    /// The 95% range, in seconds, of CPU time that samples attributed to something.
    pub fn limits(&self, seconds: f64) -> Interval {
        let all = self.attributed().as_secs_f64();
        let share = seconds / all.max(f64::MIN_POSITIVE);
        of_share(share, self.effective_samples()).scaled(all)
    }

    /// How the last minute adds up; None before the first CPU time.
    pub fn check(&self) -> Option<Check> {
        self.window.check()
    }

    fn of_processes(&self) -> impl Iterator<Item = (Key, Part)> {
        self.parts().filter(|((_, mode), _)| *mode != Mode::Softirq)
    }

    pub(super) fn add_samples(&mut self, key: Key, count: u64, period: Duration) {
        let stands_for = nanos(period).saturating_mul(count);
        let part = self.parts.entry(key).or_default();
        part.samples = part.samples.saturating_add(count);
        if key.1 == Mode::Softirq {
            part.nanos = part.nanos.saturating_add(stands_for);
        } else {
            self.sampled = self.sampled.saturating_add(stands_for);
            let squares = u128::from(stands_for) * u128::from(nanos(period));
            self.squares = self.squares.saturating_add(squares);
            self.waiting.add_samples(key, count);
        }
    }

    pub(super) fn add_upkeep(&mut self, what: Upkeep, count: u64, period: Duration) {
        let kept = self.upkeep.entry(what).or_default();
        *kept = kept.saturating_add(nanos(period).saturating_mul(count));
    }

    /// Books CPU time; `total` is all that the kernel accounted, this included.
    pub(super) fn add_cpu(
        &mut self,
        new: Accounted,
        total: Duration,
        now: Duration,
        sampling: &Sampling,
    ) {
        self.waiting.add_cpu(new, now);
        match sampling {
            Sampling::Off(_) => self.give_up(),
            Sampling::Every(_) if self.waiting.has_samples() => self.divide(),
            Sampling::Every(period) if self.waiting.is_hopeless(now, *period) => self.give_up(),
            Sampling::Every(_) => {}
            Sampling::InWindows(_) if self.waiting.has_windows() => self.divide_in_windows(now),
            Sampling::InWindows(period) if self.waiting.is_hopeless_in_windows(now, *period) => {
                self.give_up();
            }
            Sampling::InWindows(_) => {}
        }
        let state = State {
            accounted: nanos(total),
            attributed: nanos(self.attributed()),
            sampled: self.sampled,
        };
        self.window.push(now, state);
    }

    /// No more samples come: what waits is divided like all before it, unless it
    /// stands for so many samples that it was something else.
    pub(super) fn settle(&mut self, total: Duration, now: Duration, sampling: &Sampling) {
        let lost = match sampling {
            Sampling::Off(_) => true,
            Sampling::Every(period) => self.waiting.stands_for_many(*period),
            Sampling::InWindows(_) => false,
        };
        if self.waiting.has_samples() {
            self.divide();
        } else if lost || self.samples() == 0 {
            self.give_up();
        } else {
            let so_far = self.of_processes();
            self.waiting.samples = so_far.map(|(key, part)| (key, part.samples)).collect();
            self.divide();
        }
        self.add_cpu(Accounted::default(), total, now, sampling);
        self.primitives.settle();
    }

    /// Adds samples whose code was looked up.
    pub(super) fn add_primitives(
        &mut self,
        counts: &Primitives,
        sampling: &Sampling,
        now: Duration,
    ) {
        for (&(activity, primitive, by, step), &count) in counts {
            let computed = (activity, primitive, step);
            self.primitives.add_samples(computed, by, count);
        }
        match sampling {
            Sampling::InWindows(_) => self.primitives.divide_in_windows(now),
            Sampling::Every(_) | Sampling::Off(_) => self.primitives.divide(),
        }
    }

    fn divide(&mut self) {
        if self.waiting.has_cpu() {
            let (cpu, samples) = self.waiting.take();
            self.give(cpu, &samples);
            self.primitives.divide();
        }
    }

    fn divide_in_windows(&mut self, now: Duration) {
        if self.waiting.has_cpu() {
            let (cpu, samples) = self.waiting.take_in_windows(now);
            self.give(cpu, &samples);
            self.primitives.divide_in_windows(now);
        }
    }

    fn give(&mut self, cpu: Accounted, samples: &BTreeMap<Key, u64>) {
        for (key, nanos) in shares(nanos(cpu.total()), samples) {
            let part = self.parts.entry(key).or_default();
            part.nanos = part.nanos.saturating_add(nanos);
            self.primitives.add_cpu(key, nanos);
        }
    }

    fn give_up(&mut self) {
        let cpu = std::mem::take(&mut self.waiting.cpu);
        self.unattributed.add(cpu);
    }
}
