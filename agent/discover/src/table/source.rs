//! Where the table reads processes.

use crate::image::Mapping;
use crate::process::{Process, Stat};
use crate::{Error, ProcRoot};
use tlsprof_common::Pid;

/// /proc, or a test's idea of it.
pub trait ProcessSource {
    /// See [`ProcRoot::pids`].
    ///
    /// # Errors
    /// If none can be listed.
    fn pids(&self) -> Result<Vec<Pid>, Error>;
    /// See [`ProcRoot::stat`].
    ///
    /// # Errors
    /// If this process cannot be read.
    fn stat(&self, pid: Pid) -> Result<Option<Stat>, Error>;
    /// See [`ProcRoot::process`].
    ///
    /// # Errors
    /// If this process cannot be read.
    fn process(&self, pid: Pid) -> Result<Option<Process>, Error>;
    /// See [`ProcRoot::images`].
    ///
    /// # Errors
    /// If this process cannot be read.
    fn images(&self, pid: Pid) -> Result<Option<Vec<Mapping>>, Error>;
}

impl ProcessSource for ProcRoot {
    fn pids(&self) -> Result<Vec<Pid>, Error> {
        self.pids()
    }

    fn stat(&self, pid: Pid) -> Result<Option<Stat>, Error> {
        self.stat(pid)
    }

    fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
        self.process(pid)
    }

    fn images(&self, pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
        self.images(pid)
    }
}
