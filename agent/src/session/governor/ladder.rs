//! What is measured, from everything to what is always exact. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When something is attached; by default never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duty {
    /// Length of a window; zero for never.
    pub(crate) window: Duration,
    /// From the beginning of one window to that of the next; not longer than the
    /// window for always.
    pub period: Duration,
}

impl Duty {
    /// Attached all the time.
    pub(crate) const ALWAYS: Self = Self {
        window: Duration::from_secs(1),
        period: Duration::from_secs(1),
    };
    /// Not attached at all.
    pub(crate) const NEVER: Self = Self {
        window: Duration::ZERO,
        period: Duration::ZERO,
    };

    /// Share of the time in which it is attached.
    pub fn ratio(self) -> f64 {
        if self.window.is_zero() {
            return 0.0;
        }
        (self.window.as_secs_f64() / self.period.as_secs_f64()).min(1.0)
    }

    /// Whether it is attached all the time.
    pub(crate) fn is_always(self) -> bool {
        !self.window.is_zero() && self.window >= self.period
    }

    /// The one of both that is attached for less of the time.
    pub(crate) fn rarer(self, other: Self) -> Self {
        match other.ratio() < self.ratio() {
            true => other,
            false => self,
        }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// When the public-key steps of handshakes are probed.
    pub steps: Duty,
    /// Whether TLS libraries are probed. If not, handshakes are measured on their sockets.
    pub library: bool,
    /// When socket calls are seen. For a part of the time only: handshakes of the connections
    /// that open then stand for the others.
    pub calls: Duty,
}

impl Rung {
    /// When key derivation is probed, which is asked for at these times.
    pub(crate) fn key_derivation(self, asked: Duty) -> Duty {
        match self.library {
            true => asked.rarer(self.steps),
            false => Duty::NEVER,
        }
    }
}

/// A window of a second for steps: handshakes that begin and end in it are measured.
pub(super) const fn steps(period: u64) -> Duty {
    Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(period),
    }
}

/// How long socket calls are seen at a time, where they are not all the time.
pub(crate) const CALLS_WINDOW: Duration = Duration::from_millis(500);

pub(super) const fn calls(period: u64) -> Duty {
    Duty {
        window: CALLS_WINDOW,
        period: Duration::from_secs(period),
    }
}

const fn rung(steps: Duty, library: bool, calls: Duty) -> Rung {
    Rung {
        steps,
        library,
        calls,
    }
}

/// Most expensive first.
pub(super) const LADDER: [Rung; 7] = [
    rung(Duty::ALWAYS, true, Duty::ALWAYS),
    rung(steps(10), true, Duty::ALWAYS),
    rung(steps(60), true, Duty::ALWAYS),
    rung(Duty::NEVER, false, Duty::ALWAYS),
    rung(Duty::NEVER, false, calls(2)),
    rung(Duty::NEVER, false, calls(8)),
    LOWEST,
];

pub(super) const LOWEST: Rung = rung(Duty::NEVER, false, calls(32));

pub(super) fn rung_at(level: usize) -> Rung {
    LADDER.get(level).copied().unwrap_or(LOWEST)
}

/// What the budget must not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keep {
    /// Connections, their bytes and TIME_WAIT: handshakes and turns may become estimates.
    #[default]
    Connections,
    /// Every handshake, measured in its library or on its socket.
    Handshakes,
    /// What probes in TLS libraries say of every handshake; steps may go.
    LibraryProbes,
}

impl Keep {
    /// The lowest rung.
    pub(super) fn lowest(self) -> usize {
        let kept = |rung: &Rung| match self {
            Self::Connections => true,
            Self::Handshakes => rung.calls == Duty::ALWAYS,
            Self::LibraryProbes => rung.library,
        };
        // The first keeps everything.
        LADDER.iter().rposition(kept).unwrap_or_default()
    }
}
