//! The user who called sudo: a load test has no use for root.

use std::env;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

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
    pub fn of_sudo() -> Option<Self> {
        let number = |name| env::var(name).ok()?.parse::<u32>().ok();
        let uid = number("SUDO_UID")?;
        let gid = number("SUDO_GID")?;
        (geteuid().is_root() && uid != 0).then(|| Self::new(uid, gid))
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
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if let Some((name, home)) = &self.known {
            command
                .env("HOME", home)
                .env("USER", name)
                .env("LOGNAME", name);
        }
        let spawn = || {
            set_thread_groups(&self.groups)?;
            set_thread_res_gid(self.gid, self.gid, self.gid)?;
            set_thread_res_uid(self.uid, self.uid, self.uid)?;
            command.spawn()
        };
        thread::scope(|scope| {
            let started = scope.spawn(spawn).join();
            started
                .unwrap_or_else(|_| Err(io::Error::other("the thread that starts it broke down")))
        })
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.known {
            Some((name, _)) => write!(f, "{name}, who called sudo (--as-root: as root)"),
            None => write!(f, "user {} (--as-root: as root)", self.uid.as_raw()),
        }
    }
}
