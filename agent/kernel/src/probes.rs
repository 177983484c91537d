//! Places probes in images, and takes them out again.

use std::path::Path;
use std::thread;

use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeScope};
use aya::programs::{ProgramError, UProbe};
use thiserror::Error;

use super::cookies::{Point, by_substitute};
use super::error::LoadError;
use super::loaded::Loaded;
use super::object::program;
use tlsprof_common::privilege;

/// Probes that are released at once; each takes a thread meanwhile.
const RELEASED_AT_ONCE: usize = 64;

/// Why probes could not be placed.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The program is not there.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel refused the sites.
    #[error("the kernel refused the probes of {program}")]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// aya's error.
        source: anyhow::Error,
    },
}

/// Attached probes; dropping takes them out of all processes, the last attached
/// first: what begins a call must not outlive what ends it.
#[derive(Debug, Default)]
pub struct Links(Vec<UProbeLink>);

impl Drop for Links {
    fn drop(&mut self) {
        while let Some(link) = self.0.pop() {
            drop(link);
        }
    }
}

impl Links {
    /// Adds `other`'s probes.
    pub fn merge(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// True when nothing is attached.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Releases probes in no particular order, as the kernel side ends: for each the kernel waits
/// until nobody is inside, some 40 ms, and for many at once no longer.
pub fn release_all(links: impl IntoIterator<Item = Links>) {
    let mut links: Vec<UProbeLink> = links
        .into_iter()
        .flat_map(|mut links| std::mem::take(&mut links.0))
        .collect();
    while !links.is_empty() {
        let some = links.split_off(links.len().saturating_sub(RELEASED_AT_ONCE));
        thread::scope(|scope| {
            for link in some {
                // Without a thread it is released here.
                let _ = thread::Builder::new().spawn_scoped(scope, move || drop(link));
            }
        });
    }
}

/// Releases probes without waiting for it.
pub(super) fn release_beside<const N: usize>(links: [Links; N]) {
    // Without a thread they are released here.
    let _ = thread::Builder::new().spawn(move || {
        // It needs none. Where they cannot be given up, this thread ends soon all the same.
        let _ = privilege::give_up_all();
        release_all(links);
    });
}

impl Loaded {
    /// Attaches `program` at `points` of the file at `path`, for all processes
    /// that map it, now and later. All points or none.
    ///
    /// # Errors
    ///
    /// When the kernel refuses a point; nothing is left attached then.
    pub fn attach(
        &mut self,
        name: &'static str,
        path: &Path,
        points: &[Point],
    ) -> Result<Links, AttachError> {
        if self.has_cookies {
            return self.attach_program(name, path, points);
        }
        let mut links = Links::default();
        for (substitute, points) in by_substitute(name, points) {
            links.merge(self.attach_program(substitute, path, &points)?);
        }
        Ok(links)
    }

    fn attach_program(
        &mut self,
        name: &'static str,
        path: &Path,
        points: &[Point],
    ) -> Result<Links, AttachError> {
        let refused = |error: ProgramError| AttachError::Refused {
            program: name,
            source: error.into(),
        };
        let has_cookies = self.has_cookies;
        let uprobe: &mut UProbe = program(&mut self.bpf, name)?;
        let points = points.iter().map(|point| UProbeAttachPoint {
            location: UProbeAttachLocation::AbsoluteOffset(point.file_offset),
            cookie: has_cookies.then(|| point.whole_cookie()),
        });
        let id = uprobe
            .attach(points, path, UProbeScope::AllProcesses)
            .map_err(refused)?;
        let link = uprobe.take_link(id).map_err(refused)?;
        Ok(Links(vec![link]))
    }
}
