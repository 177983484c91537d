//! What public-key operations and encryption cost in a service's own libcrypto, timed outside its
//! processes: where a prediction needs a cost that nothing on this host showed.
//!
//! The library is loaded by a process of its own, this program started again without
//! privileges (`nobody`, no new privileges, an empty environment), at idle priority,
//! with a second of CPU time at most. Loading a library runs its code: so it must be one
//! that only root can have put there ([`trust`]), never one from a container.

mod child;
mod libcrypto;
mod operations;
pub(crate) mod trust;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use operations::operations;
use tlsprof_advise::{Calibration, Operation, Range, Work};

pub use child::run as run_child;

/// The hidden command with which this program is started again.
pub(crate) const COMMAND: &str = "calibrate-internal";
/// `nobody` of every Linux distribution.
const NOBODY: u32 = 65_534;
/// At idle priority a busy host may leave it no time: what was measured until then is
/// taken.
const PATIENCE: Duration = Duration::from_secs(4);

/// Times these operations in the library at `path`; takes some seconds at most.
///
/// # Errors
/// In a few words, why there is nothing: this program is static, the child could not be
/// started, or not one operation could be timed.
pub fn calibrate(path: &Path, work: Work) -> Result<Calibration, String> {
    // The C library of a static program loads no other libraries.
    if cfg!(target_feature = "crt-static") {
        return Err("the static tlsprof cannot load it, the packaged one can".to_owned());
    }
    let child =
        start(path, work).map_err(|error| format!("a child could not be started: {error}"))?;
    let mut child = Guard(child);
    child.wait();
    let mut output = String::new();
    if let Some(mut stdout) = child.0.stdout.take() {
        // What cannot be read is missing, like what was not measured.
        let _ = stdout.read_to_string(&mut output);
    }
    let calibration = parse(&output, work);
    if calibration.is_empty() {
        return Err("its operations could not be timed".to_owned());
    }
    Ok(calibration)
}

fn start(path: &Path, work: Work) -> std::io::Result<Child> {
    // The program that runs, also if its file was replaced.
    Command::new("/proc/self/exe")
        .arg(COMMAND)
        .arg(path)
        .arg(work.label())
        .env_clear()
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Ends the child, whatever happens here.
struct Guard(Child);

impl Guard {
    /// Until the child has ended, or patience has.
    fn wait(&mut self) {
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lines of a name and three times in nanoseconds. Others are left out.
fn parse(output: &str, work: Work) -> Calibration {
    let names: BTreeMap<String, Operation> = operations(work).into_iter().collect();
    let line = |line: &str| -> Option<(Operation, Range)> {
        let mut words = line.split(' ');
        let operation = *names.get(words.next()?)?;
        let mut seconds = || -> Option<f64> {
            let nanos: f64 = words.next()?.parse().ok()?;
            (nanos.is_finite() && nanos > 0.0).then_some(nanos / 1e9)
        };
        let (low, likely, high) = (seconds()?, seconds()?, seconds()?);
        (low <= likely && likely <= high).then_some((operation, Range { low, likely, high }))
    };
    output.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_child_says_is_not_trusted() {
        let text = "x25519 90000 100000 110000\nsecp256r1 1 2\nsecp384r1 3 2 1\nmystery 1 2 3\n\
                    ecdsa_p256 nan 1 2\nrsa_2048 -1 1 2\n\nx448 inf inf inf\n";
        let calibration = parse(text, Work::PublicKeys);
        assert_eq!(calibration.len(), 1);
        let x25519 = calibration.get(&Operation::KeyExchange("x25519"));
        let likely = x25519.map(|range| range.likely);
        assert!(likely.is_some_and(|likely| (likely - 1e-4).abs() < 1e-12));
    }
}
