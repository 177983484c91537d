//! Processes that return probes would harm.

use std::collections::BTreeSet;

use crate::attach::registry::Reason;
use crate::discover::ProcRoot;
use crate::discover::image::ImageId;
use crate::discover::table::ProcessTable;
use crate::evidence::Pid;

/// Knows what makes return probes harmful to a process.
pub(super) struct Danger<'a> {
    proc: &'a ProcRoot,
    table: &'a ProcessTable<ProcRoot>,
    seccomp_is_deadly: bool,
}

impl<'a> Danger<'a> {
    pub(super) fn new(proc: &'a ProcRoot, table: &'a ProcessTable<ProcRoot>, kernel: &str) -> Self {
        Self {
            proc,
            table,
            seccomp_is_deadly: seccomp_kills(kernel),
        }
    }

    /// Why an image must have no return probes; None if it may.
    pub(super) fn of(&self, image: ImageId, engines: &[ImageId]) -> Option<Reason> {
        let users: BTreeSet<Pid> = self.users(image).collect();
        if engines
            .iter()
            .flat_map(|engine| self.users(*engine))
            .any(|pid| users.contains(&pid))
        {
            return Some(Reason::SwitchesStacks);
        }
        let filtered = |pid: &Pid| self.proc.is_under_seccomp(*pid);
        (self.seccomp_is_deadly && users.iter().any(filtered)).then_some(Reason::Seccomp)
    }

    fn users(&self, image: ImageId) -> impl Iterator<Item = Pid> {
        self.table.users_of(image).map(|(pid, _)| pid)
    }
}

/// Linux 6.11 made return probes a system call (commit ff474a78cef5), which
/// seccomp filters forbid; 6.14 lets it through (commit cf6cb56ef244). Stable
/// releases of 6.12 and 6.13 carry that fix too, but nothing shows which: they
/// are taken for broken.
fn seccomp_kills(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => major == 6 && (11..=13).contains(&minor),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::seccomp_kills;

    #[test]
    fn only_three_releases_kill() {
        for (release, kills) in [
            ("6.10.14", false),
            ("6.11.0-1-amd64", true),
            ("6.12.90", true),
            ("6.13", true),
            ("6.14.0", false),
            ("5.12.0", false),
            ("7.12.0", false),
            ("nonsense", false),
            ("", false),
        ] {
            assert_eq!(seccomp_kills(release), kills, "{release}");
        }
    }
}
