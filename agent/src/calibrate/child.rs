//! The child: loads the library and times its operations, one line each.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::libcrypto::{BYTES, Libcrypto, be_idle};
use super::operations::operations;
use tlsprof_advise::{Operation, Work};

/// CPU seconds after which the kernel ends it, whatever the library does.
const CPU_SECONDS: u64 = 2;
/// CPU time for one operation with keys.
const SHARE: Duration = Duration::from_millis(30);
/// CPU time for one way to encrypt, of which there are more.
const SHARE_OF_ENCRYPTION: Duration = Duration::from_millis(25);
/// Enough for a median and its spread.
const REPEATS: usize = 300;
/// Fewer make no figure.
const FEWEST: usize = 5;
/// Repeats before the first that counts: caches and the library's own set-up.
const WARM_UP: usize = 2;

/// Bytes of the unit in which encryption is reported.
const MEGABYTE: i64 = 1_000_000;

/// Times these operations of the library at `path` and prints name, 10th percentile,
/// median and 90th percentile in nanoseconds, each operation as soon as it is done.
pub fn run(path: &Path, work: Work) -> ExitCode {
    bound();
    let Some(library) = Libcrypto::open(path) else {
        return ExitCode::FAILURE;
    };
    for (name, operation) in operations(work) {
        let Some(mut once) = library.prepare(operation) else {
            continue;
        };
        let Some(times) = quantiles(timed(&mut *once, share(operation))) else {
            continue;
        };
        let [low, likely, high] = times.map(|nanos| of_unit(operation, nanos));
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{name} {low} {likely} {high}");
        if written.and_then(|()| out.flush()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

const fn share(operation: Operation) -> Duration {
    match operation {
        Operation::Encryption(..) => SHARE_OF_ENCRYPTION,
        _ => SHARE,
    }
}

/// What one of the operation's units takes, in nanoseconds.
const fn of_unit(operation: Operation, nanos: i64) -> i64 {
    match operation {
        Operation::Encryption(..) => nanos * MEGABYTE / BYTES as i64,
        _ => nanos,
    }
}

/// Takes from this process what it does not need. Failure is no error: it has no
/// privileges anyway, and the parent waits for a bounded time.
fn bound() {
    let limit = |number| Rlimit {
        current: Some(number),
        maximum: Some(number),
    };
    let _ = setrlimit(Resource::Cpu, limit(CPU_SECONDS));
    let _ = setrlimit(Resource::Core, limit(0));
    let _ = rustix::thread::set_no_new_privs(true);
    be_idle();
}

/// CPU time of this thread in nanoseconds.
fn cpu() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CPU time of each repeat in nanoseconds; none if the operation fails.
fn timed(once: &mut dyn FnMut() -> bool, share: Duration) -> Vec<i64> {
    let mut times = Vec::new();
    for _ in 0..WARM_UP {
        if !once() {
            return Vec::new();
        }
    }
    let share = i64::try_from(share.as_nanos()).unwrap_or(i64::MAX);
    let end = cpu() + share;
    while times.len() < REPEATS && (times.len() < FEWEST || cpu() < end) {
        let before = cpu();
        if !once() {
            return Vec::new();
        }
        times.push(cpu() - before);
    }
    times
}

/// 10th percentile, median and 90th percentile.
fn quantiles(mut times: Vec<i64>) -> Option<[i64; 3]> {
    if times.len() < FEWEST {
        return None;
    }
    times.sort_unstable();
    let at = |tenths: usize| times.get((times.len() - 1) * tenths / 10).copied();
    Some([at(1)?, at(5)?, at(9)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times: Vec<i64> = (1..=101).rev().collect();
        assert_eq!(quantiles(times), Some([11, 51, 91]));
        assert_eq!(quantiles(vec![1, 2, 3, 4]), None);
    }

    #[test]
    fn an_operation_that_fails_has_no_time() {
        let mut left = 10;
        let mut once = || {
            left -= 1;
            left > 0
        };
        assert_eq!(timed(&mut once, SHARE), Vec::<i64>::new());
    }
}
