//! One process, as /proc shows it.

use std::ffi::OsString;
use std::ops::{Add, AddAssign};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use super::service::{Cgroup, ServiceName, service_name};
use super::{Error, ProcRoot};
use tlsprof_common::Pid;

/// `PF_KTHREAD` of include/linux/sched.h, in the field `flags` of stat.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// CPU time that the kernel accounts to a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user: Duration,
    /// In kernel mode.
    pub system: Duration,
}

impl CpuTime {
    /// User and system together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// The same, if it adds up to as much; else what is missing was used in user mode.
    fn at_least(self, total: Duration) -> Self {
        Self {
            user: self.user + total.saturating_sub(self.total()),
            ..self
        }
    }

    /// What was added since `earlier`; never negative.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

impl Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What is used of /proc/PID/stat (proc_pid_stat(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Name (comm): set by the process itself, at most 15 bytes.
    pub name: String,
    /// State letter: `R`, `S`, `Z`, ...
    pub state: char,
    /// Parent process.
    pub(crate) parent: Pid,
    /// True for a thread of the kernel.
    pub(crate) kernel_thread: bool,
    /// CPU time of all its threads, ended ones included; children are not.
    /// The kernel shows it in whole clock ticks, usually of 10 ms. Of a process with one
    /// thread the sum is exact where the kernel has `schedstat`.
    pub cpu: CpuTime,
    /// Number of threads.
    pub threads: u32,
    /// Clock ticks from boot to its start.
    pub start_time: u64,
}

impl Stat {
    /// True when only the exit status is left of it. A zombie with more than one
    /// thread lives on: only its first thread has ended.
    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

/// Parses /proc/PID/stat; None if it is not of that form.
pub(crate) fn parse_stat(text: &[u8], ticks_per_second: u64) -> Option<Stat> {
    // The name may hold parentheses, spaces and newlines: it ends at the last ")".
    let open = text.iter().position(|&byte| byte == b'(')?;
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // proc_pid_stat(5) counts from 1, and the state is its third field.
    let field = |number: usize| fields.get(number - 3).copied();
    let ticks = |number| Some(ticks(field(number)?.parse().ok()?, ticks_per_second));
    let flags: u32 = field(9)?.parse().ok()?;
    Some(Stat {
        name,
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        kernel_thread: flags & KERNEL_THREAD != 0,
        cpu: CpuTime {
            user: ticks(14)?,
            system: ticks(15)?,
        },
        threads: field(20)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

fn ticks(count: u64, per_second: u64) -> Duration {
    let per_second = per_second.max(1);
    let nanoseconds = u128::from(count % per_second) * 1_000_000_000 / u128::from(per_second);
    Duration::from_secs(count / per_second)
        + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: Pid,
    /// Its parent's id, at the time of reading.
    pub parent: Pid,
    /// Clock ticks from boot to its start: distinguishes processes that reuse a pid.
    pub start_time: u64,
    /// Its name (comm).
    pub name: String,
    /// Its executable as it sees it itself, in its own mount namespace (of a
    /// process that has called chroot, as the agent sees it); empty where the
    /// kernel does not show it.
    pub executable: PathBuf,
    /// Where it is in the tree of control groups.
    pub cgroup: Cgroup,
    /// The service that it belongs to.
    pub service: ServiceName,
    /// CPU time until now.
    pub cpu: CpuTime,
}

impl Process {
    pub(crate) fn has_executable(&self) -> bool {
        !self.executable.as_os_str().is_empty()
    }

    /// The same: if the kernel does not say its executable, it is what was executed last.
    #[must_use]
    pub(crate) fn executed(self, path: &str) -> Self {
        if self.has_executable() {
            return self;
        }
        let executable = PathBuf::from(path);
        Self {
            service: service_name(&self.cgroup, &executable, &self.name),
            executable,
            ..self
        }
    }
}

/// A path as /proc shows it, without the mark of a file that is gone.
pub(super) fn without_deleted(path: PathBuf) -> (PathBuf, bool) {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(bytes) => (OsString::from_vec(bytes.to_vec()).into(), true),
        None => (path, false),
    }
}

impl ProcRoot {
    /// Reads /proc/PID/stat; None if the process is gone.
    ///
    /// # Errors
    /// [`Error`] if the kernel denies it or writes something unknown.
    pub(crate) fn stat(&self, pid: Pid) -> Result<Option<Stat>, Error> {
        let Some(text) = self.read(pid, "stat")? else {
            return Ok(None);
        };
        let Some(mut stat) = parse_stat(&text, procfs::ticks_per_second()) else {
            return Err(Error::malformed(self.path(pid, "stat"), &text));
        };
        if stat.threads == 1 {
            let run_time = self.run_time(pid).unwrap_or_default();
            stat.cpu = stat.cpu.at_least(run_time);
        }
        Ok(Some(stat))
    }

    /// CPU time of the first thread (/proc/PID/schedstat, in nanoseconds); None where the kernel
    /// does not show it.
    fn run_time(&self, pid: Pid) -> Option<Duration> {
        let text = self.read(pid, "schedstat").ok()??;
        let first = text.split(|&byte| byte == b' ').next()?;
        let nanoseconds = std::str::from_utf8(first).ok()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }

    /// Reads one process; None if it is gone, or is a thread of the kernel.
    ///
    /// # Errors
    /// [`Error`] if the kernel denies it or writes something unknown.
    pub fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
        let Some(stat) = self.stat(pid)? else {
            return Ok(None);
        };
        if stat.kernel_thread || stat.is_dead() {
            return Ok(None);
        }
        let Some(executable) = self.executable(pid, &stat)? else {
            return Ok(None);
        };
        let Some(cgroup) = self.read(pid, "cgroup")? else {
            return Ok(None);
        };
        // The same start before and after: the parts are of one process, not of
        // two that had the same id one after the other.
        if self
            .stat(pid)?
            .is_none_or(|after| after.start_time != stat.start_time)
        {
            return Ok(None);
        }
        let cgroup = Cgroup::parse(&String::from_utf8_lossy(&cgroup)).named(self.containers());
        let service = service_name(&cgroup, &executable, &stat.name);
        Ok(Some(Process {
            pid,
            parent: stat.parent,
            start_time: stat.start_time,
            name: stat.name,
            executable,
            cgroup,
            service,
            cpu: stat.cpu,
        }))
    }

    /// All processes that can be read, without threads of the kernel.
    ///
    /// # Errors
    /// [`Error::Read`] if /proc itself cannot be read. A process that cannot be
    /// read is left out.
    pub fn processes(&self) -> Result<Vec<Process>, Error> {
        let read = |pid| self.process(pid).ok().flatten();
        Ok(self.pids()?.into_iter().filter_map(read).collect())
    }

    fn executable(&self, pid: Pid, stat: &Stat) -> Result<Option<PathBuf>, Error> {
        match self.read_link(pid, "exe") {
            Ok(Some(path)) => Ok(Some(without_deleted(path).0)),
            // The link of a process goes with its first thread.
            Ok(None) if stat.threads > 1 => Ok(Some(PathBuf::new())),
            Ok(None) => Ok(None),
            // Protected processes hide it, even from root.
            Err(e) if e.is_denied() => Ok(Some(PathBuf::new())),
            Err(e) => Err(e),
        }
    }
}

impl ProcRoot {
    /// True if a seccomp filter limits the process's system calls
    /// (proc_pid_status(5), `Seccomp`); false if it is gone.
    pub fn is_under_seccomp(&self, pid: Pid) -> bool {
        let status = self.read(pid, "status").ok().flatten().unwrap_or_default();
        let value = status
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(b"Seccomp:"));
        value.is_some_and(|value| value.trim_ascii() == b"2")
    }
}

#[cfg(test)]
mod tests;
