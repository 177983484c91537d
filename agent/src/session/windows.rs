//! When the groups of step probes are attached.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::governor::Duty;
use tlsprof_attach::registry::Registry;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_library::spec::Group;

/// Least time from one window to the next, as a multiple of how long attaching and releasing the
/// probes took. They are written into the memory of each process that maps the library, which
/// with hundreds of workers is most of what windows cost the agent.
const MIN_IDLE_FACTOR: u32 = 500;

/// One group's windows.
struct Windows {
    group: Group,
    duty: Duty,
    open: bool,
    since: Instant,
    /// To attach and release the probes, last time.
    took: Duration,
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
            took: Duration::ZERO,
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
        let Duty { window, period } = self.affordable();
        let elapsed = self.since.elapsed();
        match self.open {
            _ if window.is_zero() => false,
            true => window >= period || elapsed < window,
            false => first || elapsed >= period,
        }
    }

    /// What was asked for, less often where each window costs much.
    fn affordable(&self) -> Duty {
        let Duty { window, period } = self.duty;
        // Without an end there are no windows to pay for.
        let period = match window < period {
            true => period.max(self.took * MIN_IDLE_FACTOR),
            false => period,
        };
        Duty { window, period }
    }

    /// Notes how long it took to attach the probes, or to release them.
    fn paid(&mut self, attached: bool, took: Duration) {
        self.took = match attached {
            true => took,
            false => self.took.saturating_add(took),
        };
    }
}

/// Attaches and releases the step probes, and informs the programs.
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
    pub(super) const fn set_duty(&mut self, duty: Duty) {
        self.steps.duty = duty;
    }

    /// Changes the duty of key derivation.
    pub(super) const fn set_key_derivation(&mut self, duty: Duty) {
        self.key_derivation.duty = duty;
    }

    /// Share of the time in which the public-key steps are probed.
    pub(super) fn duty_ratio(&self) -> f64 {
        self.steps.affordable().ratio()
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
        // Attach before the programs are informed; inform them before the release.
        self.set_attached(loaded, registry, &changes, true);
        loaded.set_generations(self.steps.generation, self.key_derivation.generation)?;
        self.set_attached(loaded, registry, &changes, false);
        Ok(())
    }

    fn set_attached(
        &mut self,
        loaded: &mut Loaded,
        registry: &mut Registry,
        changes: &[(Group, bool)],
        attached: bool,
    ) {
        for windows in [&mut self.steps, &mut self.key_derivation] {
            if !changes.contains(&(windows.group, attached)) {
                continue;
            }
            let began = Instant::now();
            registry.set_attached(loaded, windows.group, attached);
            windows.paid(attached, began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTY: Duty = Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(10),
    };

    #[test]
    fn windows_that_cost_little_are_as_often_as_asked_for() {
        let mut windows = Windows::new(Group::Steps, DUTY);
        windows.paid(true, Duration::from_millis(5));
        windows.paid(false, Duration::from_millis(5));
        assert_eq!(windows.affordable(), DUTY);
    }

    #[test]
    fn dear_windows_are_less_often_and_say_so() {
        let mut windows = Windows::new(Group::Steps, DUTY);
        windows.paid(true, Duration::from_millis(60));
        windows.paid(false, Duration::from_millis(40));
        assert_eq!(windows.affordable().period, Duration::from_secs(50));
        // Only the last window counts.
        windows.paid(true, Duration::from_millis(1));
        windows.paid(false, Duration::from_millis(1));
        assert_eq!(windows.affordable(), DUTY);
    }

    #[test]
    fn probes_that_stay_stay() {
        let mut windows = Windows::new(Group::Steps, Duty::ALWAYS);
        windows.paid(true, Duration::from_secs(5));
        assert_eq!(windows.affordable(), Duty::ALWAYS);
    }
}
