//! What this process may do: which of Linux's capabilities (capabilities(7)) it needs and
//! what for, and how it gives up the rest.
//!
//! Capabilities belong to threads; a new thread has those of the thread that starts it.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// A capability that is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// Its name in capabilities(7).
    pub name: &'static str,
    /// What is not possible without it.
    pub without: &'static str,
    /// Whether nothing works without it.
    pub(crate) required: bool,
    capability: CapabilitySet,
}

/// What is used as long as the program runs.
const NEEDED: [Privilege; 7] = [
    Privilege {
        name: "CAP_BPF",
        without: "no BPF program can be loaded",
        required: true,
        capability: CapabilitySet::BPF,
    },
    Privilege {
        name: "CAP_PERFMON",
        without: "BPF programs can neither read kernel memory nor be attached to processes",
        required: true,
        capability: CapabilitySet::PERFMON,
    },
    Privilege {
        name: "CAP_SYS_PTRACE",
        without: "processes of other users cannot be inspected",
        required: true,
        capability: CapabilitySet::SYS_PTRACE,
    },
    Privilege {
        name: "CAP_DAC_READ_SEARCH",
        without: "sockets and files of other users' processes cannot be found",
        required: true,
        capability: CapabilitySet::DAC_READ_SEARCH,
    },
    Privilege {
        name: "CAP_SYSLOG",
        without: "the kernel hides the addresses of its functions: system time is not divided by activity",
        required: false,
        capability: CapabilitySet::SYSLOG,
    },
    Privilege {
        name: "CAP_CHECKPOINT_RESTORE",
        without: "a library that was replaced on disk after its process had loaded it is not found",
        required: false,
        capability: CapabilitySet::CHECKPOINT_RESTORE,
    },
    Privilege {
        name: "CAP_SYS_ADMIN",
        without: "accept queues in other network namespaces (containers) cannot be read",
        required: false,
        capability: CapabilitySet::SYS_ADMIN,
    },
];

/// What is used at the start alone: locked memory for the maps of kernels before 5.11, and
/// ports below 1024.
const AT_START: CapabilitySet = CapabilitySet::SYS_RESOURCE.union(CapabilitySet::NET_BIND_SERVICE);

/// What CAP_SYS_ADMIN stands for, as far as it is of use (capabilities(7)).
const OF_SYS_ADMIN: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Those that this thread has, with what they stand for.
pub(crate) fn held() -> CapabilitySet {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    implied(effective)
}

fn implied(held: CapabilitySet) -> CapabilitySet {
    if held.contains(CapabilitySet::SYS_ADMIN) {
        held | OF_SYS_ADMIN
    } else {
        held
    }
}

/// Those of use that are not in `held`, required ones first.
pub fn missing(held: CapabilitySet) -> impl Iterator<Item = &'static Privilege> {
    NEEDED
        .iter()
        .filter(move |one| !held.contains(one.capability))
}

/// Which required ones are missing, what that means, and what to do; None if none is.
pub fn explanation() -> Option<String> {
    explain(held())
}

/// Why the kernel refused something for lack of permission, as the end of a sentence.
pub fn refusal() -> String {
    explanation().unwrap_or_else(|| {
        "no capability is missing: the cause must be a security module (SELinux, AppArmor), a \
         seccomp filter, a container or kernel lockdown"
            .to_owned()
    })
}

/// The error, and the privileges that are missing as its likely reason.
pub fn because(error: anyhow::Error) -> anyhow::Error {
    match explanation() {
        Some(explanation) => anyhow::anyhow!("{error:#}. {explanation}"),
        None => error,
    }
}

fn explain(held: CapabilitySet) -> Option<String> {
    let missing: Vec<_> = missing(held).filter(|one| one.required).collect();
    let first = missing.first()?;
    let names: Vec<_> = missing.iter().map(|one| one.name).collect();
    let what = match names.len() {
        1 => first.without.to_owned(),
        _ => "services of other users cannot be profiled".to_owned(),
    };
    Some(format!(
        "tlsprof lacks {}: {what}. Run it as root (sudo), or grant what it lacks",
        names.join(", ")
    ))
}

/// What is held of all that is of use, for people.
pub fn describe() -> String {
    summary(held())
}

fn summary(held: CapabilitySet) -> String {
    let missing: Vec<_> = missing(held).map(|one| one.name).collect();
    if missing.is_empty() {
        "all that tlsprof uses".to_owned()
    } else if missing.len() == NEEDED.len() {
        "none".to_owned()
    } else {
        format!("without {}", missing.join(", "))
    }
}

fn needed() -> CapabilitySet {
    NEEDED
        .iter()
        .fold(CapabilitySet::empty(), |all, one| all | one.capability)
}

/// Keeps `now`; what this process starts can have `later`.
fn keep(now: CapabilitySet, later: CapabilitySet) -> Result<()> {
    set_no_new_privs(true)?;
    if capabilities(None)?
        .effective
        .contains(CapabilitySet::SETPCAP)
    {
        bound(later)?;
    }
    limit(now)?;
    clear_ambient_capability_set()
}

/// What is kept besides what is used as long as the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What only the start uses. Programs that this one starts get it in no case.
    pub to_start: bool,
    /// Being somebody else: libraries are calibrated as nobody.
    pub to_calibrate: bool,
    /// Files where this user may write, but root without privileges may not.
    pub to_write_files: bool,
    /// Processes of another user.
    pub to_end_commands: bool,
}

/// Gives up everything else, for good, for this thread and those that it starts from now on. To be
/// called before there are others, or where those see to themselves; again, with less, after the start.
///
/// # Errors
///
/// When the kernel refuses: nothing is known that makes it.
pub fn keep_only(kept: Kept) -> Result<()> {
    let more = [
        (kept.to_start, AT_START),
        (
            kept.to_calibrate,
            CapabilitySet::SETUID | CapabilitySet::SETGID,
        ),
        (kept.to_write_files, CapabilitySet::DAC_OVERRIDE),
        (kept.to_end_commands, CapabilitySet::KILL),
    ];
    let more = more.into_iter().filter(|(wanted, _)| *wanted);
    let all = more.fold(needed(), |all, (_, one)| all | one);
    keep(all, all - AT_START)
}

/// Gives up all for this thread, and for those that it starts.
///
/// # Errors
///
/// As for [`keep_only`].
pub fn give_up_all() -> Result<()> {
    limit(CapabilitySet::empty())?;
    clear_ambient_capability_set()
}

/// Does something as a thread without privileges would: what only they allow fails.
pub fn without<T>(work: impl FnOnce() -> T) -> Result<T> {
    let before = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            ..before
        },
    )?;
    let done = work();
    set_capabilities(None, before)?;
    Ok(done)
}

fn limit(kept: CapabilitySet) -> Result<()> {
    let before = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: before.effective & kept,
            permitted: before.permitted & kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Takes all others out of the bounding set: no program that is started could get them
/// back. Newer kernels have more than this program knows.
fn bound(kept: CapabilitySet) -> Result<()> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // The kernel's last one was before.
            Err(Errno::INVAL) => break,
            done => done?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_it_is_for() {
        assert_eq!(explain(CapabilitySet::all()), None);
        let text = explain(needed() - CapabilitySet::SYS_PTRACE - CapabilitySet::SYS_ADMIN);
        let text = text.unwrap();
        assert!(
            text.contains("CAP_SYS_PTRACE: processes of other users"),
            "{text}"
        );
        let text = explain(CapabilitySet::CHOWN).unwrap();
        assert!(text.contains("CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH"));
    }

    #[test]
    fn cap_sys_admin_stands_for_the_newer_ones() {
        let held = implied(CapabilitySet::SYS_ADMIN);
        let names: Vec<_> = missing(held).map(|one| one.name).collect();
        assert_eq!(names, ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]);
    }

    #[test]
    fn optional_ones_alone_are_no_error() {
        let held = needed() - CapabilitySet::SYS_ADMIN - CapabilitySet::SYSLOG;
        assert_eq!(explain(held), None);
        assert_eq!(summary(held), "without CAP_SYSLOG, CAP_SYS_ADMIN");
    }

    /// In a thread of its own: what is given up does not come back.
    fn in_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn a_thread_gives_up_all_and_its_parent_nothing() {
        let before = capabilities(None).unwrap();
        let there = in_a_thread(|| {
            give_up_all().unwrap();
            capabilities(None).unwrap()
        });
        assert!(there.effective.is_empty() && there.permitted.is_empty());
        assert!(there.inheritable.is_empty());
        assert_eq!(capabilities(None).unwrap().permitted, before.permitted);
    }

    #[test]
    fn what_is_needed_is_kept_and_nothing_else() {
        let (before, after) = in_a_thread(|| {
            let before = capabilities(None).unwrap();
            let to_start = true;
            keep_only(Kept {
                to_start,
                ..Kept::default()
            })
            .unwrap();
            keep_only(Kept::default()).unwrap();
            (before, capabilities(None).unwrap())
        });
        assert_eq!(after.permitted, before.permitted & needed());
        assert_eq!(after.effective, before.effective & needed());
        assert!(!after.permitted.contains(CapabilitySet::DAC_OVERRIDE));
    }

    #[test]
    fn a_report_keeps_what_it_writes_and_ends_with() {
        for (kept, more) in [
            (Kept::default(), CapabilitySet::empty()),
            (
                Kept {
                    to_start: false,
                    to_calibrate: true,
                    to_write_files: true,
                    to_end_commands: true,
                },
                CapabilitySet::SETUID
                    | CapabilitySet::SETGID
                    | CapabilitySet::DAC_OVERRIDE
                    | CapabilitySet::KILL,
            ),
        ] {
            let (before, after) = in_a_thread(move || {
                let before = capabilities(None).unwrap();
                keep_only(kept).unwrap();
                (before, capabilities(None).unwrap())
            });
            assert_eq!(after.permitted, before.permitted & (needed() | more));
        }
    }

    #[test]
    fn privileges_are_back_after_work_without() {
        let (inside, outside) = in_a_thread(|| {
            let before = capabilities(None).unwrap();
            let inside = without(|| capabilities(None).unwrap().effective).unwrap();
            (
                inside,
                before.effective == capabilities(None).unwrap().effective,
            )
        });
        assert!(inside.is_empty());
        assert!(outside);
    }
}
