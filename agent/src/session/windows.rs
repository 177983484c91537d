//! When the groups of step probes are attached.

use std::time::Instant;

use anyhow::Result;

use super::governor::Duty;
use crate::attach::registry::Registry;
use crate::attach::spec::Group;
use crate::kernel::load::Loaded;

/// One group's windows.
struct Windows {
    group: Group,
    duty: Duty,
    open: bool,
    since: Instant,
    /// Odd while open: the programs compare it between the beginning and the end
    /// of a handshake.
    generation: u32,
}

impl Windows {
    fn new(group: Group, duty: Duty) -> Self {
        Self {
            group,
            duty,
            open: false,
            since: Instant::now(),
            generation: 0,
        }
    }

    /// The group and whether it is attached from now on; None if nothing changes.
    fn change(&mut self, first: bool) -> Option<(Group, bool)> {
        let wanted = self.wanted(first);
        if wanted == self.open {
            return None;
        }
        self.open = wanted;
        self.generation += 1;
        if wanted {
            self.since = Instant::now();
        }
        Some((self.group, wanted))
    }

    /// Whether the group should be attached now. The first window opens at once:
    /// a short profile has one too.
    fn wanted(&self, first: bool) -> bool {
        let Duty { window, period } = self.duty;
        let elapsed = self.since.elapsed();
        match self.open {
            _ if window.is_zero() => false,
            true => window >= period || elapsed < window,
            false => first || elapsed >= period,
        }
    }
}

/// Attaches and releases the step probes, and tells the programs.
pub(super) struct StepProbes {
    steps: Windows,
    key_derivation: Windows,
}

impl StepProbes {
    pub(super) fn new(steps: Duty, key_derivation: Duty) -> Self {
        Self {
            steps: Windows::new(Group::Steps, steps),
            key_derivation: Windows::new(Group::KeyDerivation, key_derivation),
        }
    }

    pub(super) fn begin(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        self.follow(loaded, registry, true)
    }

    pub(super) fn turn(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        self.follow(loaded, registry, false)
    }

    /// Changes the duty of the public-key steps.
    pub(super) fn set_duty(&mut self, duty: Duty) {
        self.steps.duty = duty;
    }

    /// Share of the time in which the public-key steps are probed.
    pub(super) fn duty_ratio(&self) -> f64 {
        self.steps.duty.ratio()
    }

    fn follow(&mut self, loaded: &mut Loaded, registry: &mut Registry, first: bool) -> Result<()> {
        let windows = [&mut self.steps, &mut self.key_derivation];
        let changes: Vec<(Group, bool)> = windows
            .into_iter()
            .filter_map(|windows| windows.change(first))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        // Attached first, told then; and told first, released then.
        for (group, _) in changes.iter().filter(|(_, attached)| *attached) {
            registry.set_attached(loaded, *group, true);
        }
        loaded.set_generations(self.steps.generation, self.key_derivation.generation)?;
        for (group, _) in changes.iter().filter(|(_, attached)| !attached) {
            registry.set_attached(loaded, *group, false);
        }
        Ok(())
    }
}
