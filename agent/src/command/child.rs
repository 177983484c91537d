//! The command under which a report profiles.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{self, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::caller::Caller;
use super::setup::TURN;

/// Time between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(10);

/// An error where there is no such program, for before anything is attached. `spawn` reports all
/// that is wrong besides.
pub(super) fn check(arguments: &[OsString]) -> Result<()> {
    let [program, ..] = arguments else {
        bail!("no command given")
    };
    let path = env::var_os("PATH").unwrap_or_default();
    if Path::new(program).components().count() > 1 || is_in(program, &path) {
        return Ok(());
    }
    bail!(
        "the command `{}` is not in PATH, which sudo may have changed: install it, or give its \
         full path",
        program.display()
    )
}

/// As execvp(3) looks for it.
fn is_in(program: &OsStr, path: &OsStr) -> bool {
    env::split_paths(path).any(|folder| folder.join(program).is_file())
}

/// A running command; dropping it ends it, as it was ours to start.
pub(super) struct Child(process::Child);

impl Child {
    /// Starts it as that user, or as this program's own. `is_read`: what it prints goes through
    /// a pipe of ours.
    pub fn start(arguments: &[OsString], is_read: bool, caller: Option<&Caller>) -> Result<Self> {
        let [program, rest @ ..] = arguments else {
            bail!("no command given")
        };
        let stdout = if is_read {
            Stdio::piped
        } else {
            Stdio::inherit
        };
        let mut command = Command::new(program);
        command.args(rest).stdout(stdout());
        match caller {
            Some(caller) => caller.spawn(&mut command),
            None => command.spawn(),
        }
        .map(Self)
        .with_context(|| format!("cannot start the command `{}`", program.to_string_lossy()))
    }

    /// What it prints, if that is read.
    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("cannot wait for the command")
    }

    /// Ends it.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        if self.ended()?.is_none() {
            let pid = i32::try_from(self.0.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let began = Instant::now();
            while self.ended()?.is_none() {
                if began.elapsed() > PATIENCE {
                    self.0.kill()?;
                    break;
                }
                thread::sleep(TURN);
            }
        }
        self.0.wait().context("cannot wait for the command")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// As shells have it: 128 + signal number for a command ended by a signal.
pub(super) fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_program_is_looked_for_in_the_folders_of_path_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ab"), "").unwrap();
        let path = env::join_paths(["/nowhere".as_ref(), folder.path()]).unwrap();
        assert!(is_in("ab".as_ref(), &path));
        assert!(!is_in("wrk".as_ref(), &path));
        assert!(!is_in("ab".as_ref(), "/nowhere".as_ref()));
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_what_to_do() {
        let error = check(&["nosuchcommand".into()]).unwrap_err().to_string();
        assert!(error.starts_with("the command `nosuchcommand` is not in PATH"));
        assert!(check(&["/nowhere/ab".into()]).is_ok());
    }
}
