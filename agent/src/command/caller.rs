//! The user who called sudo: a load test has no use for root.

use std::env;
use std::ffi::{CString, OsStr};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

use anyhow::{Context as _, Result};
use nix::unistd::{User, getgrouplist};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user, as whom a command is run.
pub(super) struct Caller {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    /// None where there is a number but no such user.
    known: Option<(String, PathBuf)>,
}

impl Caller {
    /// None where this program was not started by sudo, or is not root (sudo(8), ENVIRONMENT).
    ///
    /// # Errors
    ///
    /// sudo started it, and does not say for whom: nothing is run as root by mistake.
    pub(crate) fn of_sudo() -> Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let Some(uid) = env::var_os("SUDO_UID") else {
            return Ok(None);
        };
        let uid = number("SUDO_UID", &uid)?;
        let gid = number("SUDO_GID", &env::var_os("SUDO_GID").unwrap_or_default())?;
        Ok((uid != 0).then(|| Self::new(uid, gid)))
    }

    fn new(uid: u32, gid: u32) -> Self {
        let group = nix::unistd::Gid::from_raw(gid);
        let user = User::from_uid(uid.into()).ok().flatten();
        let groups = user.as_ref().and_then(|user| {
            let name = CString::new(user.name.as_str()).ok()?;
            getgrouplist(&name, group).ok()
        });
        let groups = groups.unwrap_or_else(|| vec![group]);
        Self {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: groups
                .into_iter()
                .map(|one| Gid::from_raw(one.as_raw()))
                .collect(),
            known: user.map(|user| (user.name, user.dir)),
        }
    }

    /// Starts a process as this user.
    ///
    /// A thread becomes that user, and its child is what it is: these system calls are for the
    /// calling thread alone, other than the functions of the C library (credentials(7)). It loses
    /// its capabilities with that.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        match &self.known {
            Some((name, home)) => command
                .env("HOME", home)
                .env("USER", name)
                .env("LOGNAME", name),
            // As login(1) has it: the home of root is no place for anyone else.
            None => command
                .env("HOME", "/")
                .env_remove("USER")
                .env_remove("LOGNAME"),
        };
        let spawn = || {
            set_thread_groups(&self.groups)?;
            set_thread_res_gid(self.gid, self.gid, self.gid)?;
            set_thread_res_uid(self.uid, self.uid, self.uid)?;
            command.spawn()
        };
        thread::scope(|scope| {
            let started = scope.spawn(spawn).join();
            started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
        })
    }
}

/// A user or a group by its number.
fn number(name: &str, value: &OsStr) -> Result<u32> {
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.with_context(|| {
        format!(
            "cannot run the command as the user who called sudo: {name} is {value:?}, not a number \
             (--as-root: run it as root)"
        )
    })
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.known {
            Some((name, _)) => write!(f, "{name}, who called sudo (--as-root: as root)"),
            None => write!(f, "user {} (--as-root: as root)", self.uid.as_raw()),
        }
    }
}
