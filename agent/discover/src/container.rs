//! Names of containers, from what their runtimes keep on this host: nothing is asked.
//!
//! The files belong to root. What they hold was chosen by whoever may start containers, so that
//! reading is bounded, and what is not understood is left out: the container's id then has to do.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

mod parse;

pub use parse::Name;

/// The largest file that is read: a runtime's own take some 100 kB.
const MAX_FILE: u64 = 4 << 20;
/// Containers whose names are remembered; with more, all are read anew.
const MAX_KNOWN: usize = 4096;

/// What a runtime's file says.
type Parser = fn(text: &[u8], id: &str) -> Option<Name>;

/// Where the runtimes have what they know of a container, with its id in place of `ID`.
///
/// containerd: the bundle of its v2 runtime, in the state folder of itself, k3s and MicroK8s.
/// CRI-O and podman: the folders of containers/storage, which both use.
const PLACES: [(&str, Parser); 6] = [
    (
        "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        parse::oci,
    ),
    (
        "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        parse::oci,
    ),
    (
        "var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        parse::oci,
    ),
    (
        "run/containers/storage/overlay-containers/ID/userdata/config.json",
        parse::oci,
    ),
    ("var/lib/docker/containers/ID/config.v2.json", parse::docker),
    (
        "var/lib/containers/storage/overlay-containers/containers.json",
        parse::storage,
    ),
];

/// The containers of a host.
#[derive(Debug)]
pub struct Containers {
    /// The host's root folder, by paths of which the first that works will do.
    roots: Vec<PathBuf>,
    known: Mutex<HashMap<Box<str>, Option<Name>>>,
}

impl Containers {
    /// Those of the host with this root folder.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            known: Mutex::default(),
        }
    }

    /// The name of the container with this id, 64 hexadecimal digits; None if no runtime knows it.
    pub fn name(&self, id: &str) -> Option<Name> {
        if !is_id(id) {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(id) {
            return name.clone();
        }
        let name = self.look_up(id);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(id.into(), name.clone());
        name
    }

    fn look_up(&self, id: &str) -> Option<Name> {
        self.roots.iter().find_map(|root| {
            PLACES.iter().find_map(|(place, parse)| {
                let text = read(&root.join(place.replace("ID", id)))?;
                parse(&text, id)
            })
        })
    }
}

/// True for a container's id: it becomes a part of a path.
pub(crate) fn is_id(text: &str) -> bool {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_digit)
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let file = OpenOptions::new()
        .read(true)
        // A FIFO or a link would be nobody's runtime.
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
