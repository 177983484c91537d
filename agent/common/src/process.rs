//! Processes and how they come and go.

use std::time::Duration;

/// A process (thread group) id in the initial pid namespace.
pub type Pid = u32;

/// A change in the population of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// `child` was forked by `parent` (processes, not threads).
    Fork {
        /// The process that called fork.
        parent: Pid,
        /// The new process.
        child: Pid,
        /// Its name (comm).
        comm: String,
    },
    /// The process replaced its program.
    Exec {
        /// The process.
        process: Pid,
        /// File name as given to execve; cut at 127 bytes.
        path: String,
        /// New name (comm).
        comm: String,
        /// CPU time of all its threads up to then; less than a tick of it is missing.
        cpu: LifetimeCpu,
    },
    /// The last thread of the process ended.
    Exit {
        /// The process.
        process: Pid,
        /// CPU time of all its threads over its whole life.
        cpu: LifetimeCpu,
    },
}

/// CPU time that a process used until its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifetimeCpu {
    /// Of all its threads, exact.
    pub total: Duration,
    /// What clock ticks found in user mode: good for a share of the total only.
    pub user_ticks: Duration,
    /// What clock ticks found in system mode, likewise.
    pub system_ticks: Duration,
}

impl LifetimeCpu {
    /// The part of the total in system mode, as the kernel reports it to the
    /// waiting parent: divided like its ticks, and all user time if no tick hit it
    /// (`cputime_adjust` in kernel/sched/cputime.c).
    pub fn system(self) -> Duration {
        let ticks = self.user_ticks.saturating_add(self.system_ticks);
        if ticks.is_zero() {
            return Duration::ZERO;
        }
        self.total
            .mul_f64(self.system_ticks.div_duration_f64(ticks))
    }
}
