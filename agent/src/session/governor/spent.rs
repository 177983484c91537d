//! What profiling cost in an interval. Pure.

use super::ladder::{Duty, Rung};

/// Less CPU time than this says nothing about a share.
pub(super) const LEAST_CPU_SECONDS: f64 = 0.1;

/// CPU seconds of programs that are in only while socket calls are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InWindows {
    /// On socket calls.
    pub(crate) calls: f64,
    /// Those that stop clocks.
    pub(crate) switches: f64,
}

impl InWindows {
    /// What was spent since then.
    #[must_use]
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            switches: self.switches - before.switches,
        }
    }

    /// So many times as much.
    #[must_use]
    pub(crate) fn times(self, factor: f64) -> Self {
        Self {
            calls: self.calls * factor,
            switches: self.switches * factor,
        }
    }
}

/// What was spent in an interval, in CPU seconds of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// By all processes, and by interrupts.
    pub(crate) host: f64,
    /// By the targets: services that had connections.
    pub(crate) targets: f64,
    /// While socket calls are seen, had they been all the time.
    pub(crate) always: InWindows,
    /// The same with one window in each second, to the end of what is followed in it.
    pub(crate) windows: InWindows,
    /// Whether these two were measured since the interval before; in windows, by one that is over.
    pub(crate) is_new: bool,
    /// Probes in libraries.
    pub(crate) probes: f64,
    /// For how much of the interval the steps of handshakes were probed.
    pub(crate) steps: f64,
    /// The same of key derivation.
    pub(crate) derivation: f64,
    /// When that is asked for.
    pub(crate) key_derivation: Duty,
    /// Programs at changes of a connection's state.
    pub(crate) states: f64,
    /// All other programs.
    pub(crate) others: f64,
    /// Handshakes that were seen to end.
    pub(crate) handshakes: f64,
    /// These and those that are estimated.
    pub(crate) booked: f64,
}

impl Spent {
    /// Whether enough ran to judge a share of it.
    pub(super) fn is_enough(&self) -> bool {
        self.host >= LEAST_CPU_SECONDS
    }

    /// What no rung changes, as a share of CPU time: the whole host runs into most of it.
    pub(super) fn fixed(&self) -> f64 {
        self.states / self.callers() + self.others / self.host
    }

    /// What a rung costs beside it, with such probes.
    pub(super) fn variable(&self, probes: f64, rung: Rung) -> f64 {
        let seen = self.seen(rung.calls);
        (probes + seen.calls) / self.callers() + seen.switches / self.host
    }

    fn seen(&self, calls: Duty) -> InWindows {
        match calls.is_always() {
            true => self.always,
            false => self.windows.times(1.0 / calls.period.as_secs_f64()),
        }
    }

    /// CPU seconds of those with connections. Where targets hardly run, others do the socket calls.
    const fn callers(&self) -> f64 {
        if self.targets < LEAST_CPU_SECONDS {
            self.host
        } else {
            self.targets
        }
    }
}
