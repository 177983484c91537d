//! When the groups of step probes are attached.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::attach::registry::Registry;
use crate::kernel::load::Loaded;

/// When key derivation is probed: a TLS 1.3 handshake calls it some 20 times, so
/// that probing it always would cost more than all other probes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDerivation {
    /// Length of a window; zero for never.
    pub window: Duration,
    /// From the beginning of one window to that of the next.
    pub period: Duration,
}

impl KeyDerivation {
    /// Key derivation stays in the step "other".
    pub const fn never() -> Self {
        Self {
            window: Duration::ZERO,
            period: Duration::ZERO,
        }
    }
}

/// Opens and closes the windows, and tells the programs.
pub(super) struct Windows {
    steps: bool,
    plan: KeyDerivation,
    open: bool,
    since: Instant,
    generation: u32,
}

impl Windows {
    pub(super) fn new(steps: bool, plan: KeyDerivation) -> Self {
        Self {
            steps,
            plan,
            open: false,
            since: Instant::now(),
            generation: 0,
        }
    }

    /// The first window opens at once: a short profile has one too.
    pub(super) fn begin(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        if self.steps && !self.plan.window.is_zero() {
            self.open(loaded, registry)?;
        }
        self.tell(loaded)
    }

    pub(super) fn turn(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        let elapsed = self.since.elapsed();
        if self.open && elapsed >= self.plan.window && self.plan.window < self.plan.period {
            self.close(loaded, registry)?;
        } else if !self.open
            && self.steps
            && !self.plan.window.is_zero()
            && elapsed >= self.plan.period
        {
            self.open(loaded, registry)?;
        }
        Ok(())
    }

    /// Attached first, told then.
    fn open(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        registry.set_key_derivation(loaded, true);
        self.open = true;
        self.since = Instant::now();
        self.generation += 1;
        self.tell(loaded)
    }

    /// Told first, released then.
    fn close(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        self.open = false;
        self.generation += 1;
        self.tell(loaded)?;
        registry.set_key_derivation(loaded, false);
        Ok(())
    }

    fn tell(&self, loaded: &mut Loaded) -> Result<()> {
        loaded.set_generations(u32::from(self.steps), self.generation)?;
        Ok(())
    }
}
