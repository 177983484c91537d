//! What people call a server.

use std::borrow::Borrow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::container::{Containers, Name, is_id};

/// Length of a container's id in a cgroup path, in hexadecimal digits.
const CONTAINER_ID: usize = 64;
/// How much of it is shown, as `docker ps` does.
const CONTAINER_ID_SHOWN: usize = 12;

/// Units that start other people's programs: what runs in them is not named
/// after them, but by its executable. Their own daemons then are, too (`sshd`,
/// `dockerd`), which names them just as well.
const LAUNCHERS: [&str; 18] = [
    "anacron",
    "atd",
    "containerd",
    "cri-docker",
    "cron",
    "crond",
    "crio",
    "docker",
    "gitlab-runsvdir",
    "k3s",
    "kubelet",
    "podman",
    "rc-local",
    "runit",
    "ssh",
    "sshd",
    "supervisor",
    "supervisord",
];

/// Template units of the same kind: any instance.
const LAUNCHER_TEMPLATES: [&str; 6] = [
    "autovt@",
    "getty@",
    "serial-getty@",
    "ssh@",
    "sshd@",
    "user@",
];

/// Name of a service: systemd unit, container or executable. Cheap to clone.
///
/// Never empty, and without control characters: it is shown on terminals and
/// used as the label `service_name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName(Arc<str>);

impl ServiceName {
    /// Makes a name of foreign text; `unknown` of empty text.
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self("unknown".into());
        }
        let clean = |c: char| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        };
        Self(text.chars().map(clean).collect::<String>().into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for ServiceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What a process's place in the tree of control groups says about its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// It is in this systemd service unit (without `.service`).
    Unit(Arc<str>),
    /// It is in this container: its id, or its name.
    Container(Arc<str>),
    /// It is in this container of a pod of Kubernetes: `NAMESPACE/OWNER/CONTAINER`.
    Pod(Arc<str>),
    /// In none: a login session, a scope, the root, or a unit that starts other
    /// people's programs, such as cron.
    Other,
}

impl Cgroup {
    /// Reads /proc/PID/cgroup (cgroups(7)): lines `number:controllers:path`.
    ///
    /// The first hierarchy that names a unit or container counts: version 2
    /// (`0::`), then systemd's own of version 1, then the others.
    pub fn parse(text: &str) -> Self {
        let mut paths: Vec<(u8, &str)> = text.lines().filter_map(ranked_path).collect();
        paths.sort_by_key(|&(rank, _)| rank);
        paths
            .into_iter()
            .map(|(_, path)| place(path))
            .find(|p| *p != Self::Other)
            .unwrap_or(Self::Other)
    }

    /// The same, with a container's id replaced by its name where the host knows it.
    #[must_use]
    pub fn named(self, containers: &Containers) -> Self {
        let Self::Container(id) = &self else {
            return self;
        };
        match containers.name(id) {
            Some(Name::Pod(name)) => Self::Pod(name),
            Some(Name::Given(name)) => Self::Container(name),
            None => self,
        }
    }
}

fn ranked_path(line: &str) -> Option<(u8, &str)> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let rank = match (number, controllers) {
        ("0", "") => 0,
        (_, "name=systemd") => 1,
        _ => 2,
    };
    Some((rank, path))
}

/// A container anywhere in the path comes first: units inside it are its own
/// affair, and units around it are those of the container runtime. The deepest
/// part wins, as the innermost container and unit is what people mean.
fn place(path: &str) -> Cgroup {
    let parts = || path.split('/').filter(|part| !part.is_empty()).rev();
    if let Some(container) = parts().find_map(container) {
        return Cgroup::Container(container.into());
    }
    match parts().find_map(unit) {
        Some(name) if !is_launcher(name) => Cgroup::Unit(name.into()),
        _ => Cgroup::Other,
    }
}

/// The container that a part of a cgroup path belongs to.
///
/// Docker, containerd, CRI-O and podman write the full id, alone, or after a
/// prefix, with or without `.scope`: `docker-ID.scope`, `cri-containerd-ID.scope`,
/// `crio-ID.scope`, `libpod-ID.scope`, `SLICE:cri-containerd:ID`. LXC and
/// systemd-nspawn write the container's name.
fn container(part: &str) -> Option<&str> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(name).filter(|name| !name.is_empty());
    }
    if let Some(name) = part.strip_prefix("systemd-nspawn@") {
        return name
            .strip_suffix(".service")
            .filter(|name| !name.is_empty());
    }
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let (prefix, id) = part.split_at_checked(part.len().checked_sub(CONTAINER_ID)?)?;
    let separated = prefix.is_empty() || prefix.ends_with(['-', ':']);
    // conmon watches a container from outside. A "payload" is a container that
    // podman runs in a unit of its own (quadlet): people know it by the unit.
    let outside = prefix.ends_with("conmon-") || prefix == "libpod-payload-";
    (is_id(id) && separated && !outside).then_some(id)
}

/// The service unit that a part of a cgroup path is of. Scopes are none: they
/// hold what somebody else started (sessions, virtual machines, desktop
/// applications), under names that are made up for the moment.
fn unit(part: &str) -> Option<&str> {
    // systemd puts "_" before names that would clash with the kernel's files.
    let part = part.strip_prefix('_').unwrap_or(part);
    part.strip_suffix(".service")
        .filter(|name| !name.is_empty())
}

fn is_launcher(unit: &str) -> bool {
    LAUNCHERS.contains(&unit)
        || LAUNCHER_TEMPLATES
            .iter()
            .any(|template| unit.starts_with(template))
}

/// The service of a process.
///
/// In a unit it is the unit's name; instances of templates keep it
/// (`postgresql@15-main`). In a pod it is `NAMESPACE/OWNER/CONTAINER`, in another container
/// `EXECUTABLE@CONTAINER`, with 12 digits of its id where its name is not known, else it is the
/// name of the executable file; a program run by an interpreter is named after
/// that (`node`, `java`). The process's own name (comm), which it can change at
/// will, counts only where the kernel hides the executable.
pub fn service_name(cgroup: &Cgroup, executable: &Path, comm: &str) -> ServiceName {
    let program = || {
        let name = base_name(executable);
        let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
        if name.is_empty() {
            comm.to_owned()
        } else {
            name.to_owned()
        }
    };
    match cgroup {
        Cgroup::Unit(name) => ServiceName::new(name),
        Cgroup::Pod(name) => ServiceName::new(name),
        Cgroup::Container(container) => {
            let shown = Some(container.as_ref())
                .filter(|id| is_id(id))
                .and_then(|id| id.get(..CONTAINER_ID_SHOWN))
                .unwrap_or(container);
            ServiceName::new(&format!("{}@{shown}", ServiceName::new(&program())))
        }
        Cgroup::Other => ServiceName::new(&program()),
    }
}

/// Last part of a path, for people; empty if there is none.
fn base_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
