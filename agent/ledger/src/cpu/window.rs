//! The last minute of a service: do the activities add up, and did the samples come?

use std::collections::VecDeque;
use std::time::Duration;

/// What is looked back on.
const SPAN: Duration = Duration::from_secs(60);

/// Sums since the beginning, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// CPU time that the kernel accounted.
    pub(crate) accounted: u64,
    /// CPU time in activities.
    pub attributed: u64,
    /// What samples stand for.
    pub sampled: u64,
}

/// How the last minute of CPU time adds up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// How far the sum of the activities is from the kernel's, as a share of the
    /// kernel's. Above zero is what waits for a sample, or will never have one.
    pub error_ratio: f64,
    /// What samples stand for, as a share of what the kernel accounted: about 1, less
    /// where samples are lost.
    pub sampled_ratio: f64,
}

/// States of the last minute, one for each second in which CPU time came.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The last state before those.
    base: State,
    states: VecDeque<(u64, State)>,
}

impl Window {
    pub(crate) fn push(&mut self, now: Duration, state: State) {
        let second = now.as_secs();
        while let Some(&(first, old)) = self.states.front()
            && first + SPAN.as_secs() <= second
        {
            self.base = old;
            self.states.pop_front();
        }
        match self.states.back_mut() {
            Some((last, kept)) if *last >= second => *kept = state,
            _ => self.states.push_back((second, state)),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "ratios")]
    pub fn check(&self) -> Option<Check> {
        let &(_, last) = self.states.back()?;
        let accounted = last.accounted.saturating_sub(self.base.accounted);
        if accounted == 0 {
            return None;
        }
        let attributed = last.attributed.saturating_sub(self.base.attributed);
        let sampled = last.sampled.saturating_sub(self.base.sampled);
        Some(Check {
            error_ratio: accounted.abs_diff(attributed) as f64 / accounted as f64,
            sampled_ratio: sampled as f64 / accounted as f64,
        })
    }
}
