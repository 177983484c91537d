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

/// For how long each of the groups that come and go has been attached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attached {
    pub(super) steps: Duration,
    pub(super) derivation: Duration,
}

impl Attached {
    /// Since then.
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            steps: self.steps.saturating_sub(before.steps),
            derivation: self.derivation.saturating_sub(before.derivation),
        }
    }
}

/// One group's windows.
struct Windows {
    group: Group,
    duty: Duty,
    open: bool,
    /// When the last window began, or the duty changed.
    since: Instant,
    /// For how long it was open in all, up to `since`.
    attached: Duration,
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
            attached: Duration::ZERO,
            took: Duration::ZERO,
            generation: 0,
        }
    }

    /// Changes the duty. A window that is open ends a window's length from now at the latest, and the next
    /// one begins a period from now.
    fn set_duty(&mut self, duty: Duty) {
        if duty != self.duty {
            self.attached = self.attached();
            self.since = Instant::now();
            self.duty = duty;
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
        match wanted {
            true => self.since = Instant::now(),
            false => self.attached += self.since.elapsed(),
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
            true => self.duty.is_always() || elapsed < window,
            false => first || elapsed >= period,
        }
    }

    /// What was asked for, less often where each window costs much.
    fn affordable(&self) -> Duty {
        let Duty { window, period } = self.duty;
        // Without an end there are no windows to pay for.
        if self.duty.is_always() {
            return self.duty;
        }
        let period = period.max(self.took * MIN_IDLE_FACTOR);
        Duty { window, period }
    }

    /// For how long it has been open in all.
    fn attached(&self) -> Duration {
        match self.open {
            true => self.attached + self.since.elapsed(),
            false => self.attached,
        }
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
    pub(super) fn set_duty(&mut self, duty: Duty) {
        self.steps.set_duty(duty);
    }

    /// Changes the duty of key derivation.
    pub(super) fn set_key_derivation(&mut self, duty: Duty) {
        self.key_derivation.set_duty(duty);
    }

    /// Share of the time in which the public-key steps are probed.
    pub(super) fn duty_ratio(&self) -> f64 {
        self.steps.affordable().ratio()
    }

    /// For how long they have been attached.
    pub(super) fn attached(&self) -> Attached {
        Attached {
            steps: self.steps.attached(),
            derivation: self.key_derivation.attached(),
        }
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
    fn windows_that_begin_anew_wait_for_their_period() {
        let mut windows = Windows::new(Group::Steps, Duty::NEVER);
        assert_eq!(windows.change(true), None);
        windows.set_duty(DUTY);
        assert_eq!(windows.change(false), None);
        windows.set_duty(Duty::ALWAYS);
        windows.since -= Duration::from_secs(1);
        assert_eq!(windows.change(false), Some((Group::Steps, true)));
        windows.since -= Duration::from_secs(100);
        windows.set_duty(DUTY);
        assert_eq!(windows.change(false), None);
        windows.since -= Duration::from_secs(1);
        assert_eq!(windows.change(false), Some((Group::Steps, false)));
        assert_eq!(windows.change(false), None);
        assert_eq!(windows.attached().as_secs(), 101);
    }

    #[test]
    fn probes_that_stay_stay() {
        let mut windows = Windows::new(Group::Steps, Duty::ALWAYS);
        windows.paid(true, Duration::from_secs(5));
        assert_eq!(windows.affordable(), Duty::ALWAYS);
    }
}
