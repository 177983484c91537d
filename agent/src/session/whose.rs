//! Whose evidence is.

use tlsprof_common::Pid;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::{ProcessSource, ProcessTable};
use tlsprof_evidence::Evidence;
use tlsprof_evidence::hello::Giver;

/// Who gave the session that a client brought may be of another service. One that the table
/// does not know has ended: it forgets no process that lives, unless it is full.
pub(super) fn mark_foreign_issuers<S: ProcessSource>(
    table: &ProcessTable<S>,
    evidence: &mut Evidence,
) {
    let Evidence::Handshake(handshake) = evidence else {
        return;
    };
    let process = handshake.process;
    let origin = handshake.hello.as_mut().and_then(|it| it.origin.as_mut());
    if let Some(origin) = origin
        && origin.giver == Giver::Sibling
    {
        let services = [origin.process, process].map(|one| table.service_of(one));
        origin.giver = match services {
            [None, _] => Giver::Ended,
            [Some(issuer), Some(own)] if issuer != own => Giver::Stranger,
            _ => Giver::Sibling,
        };
    }
}

/// A process that the table knows, and that is not selected; or one that it does not know,
/// where the user has selected some: those had ended before.
pub(super) fn is_ignored(table: &ProcessTable<ProcRoot>, process: Pid) -> bool {
    match table.service_of(process) {
        Some(_) => !table.is_selected(process),
        None => !table.selects_all(),
    }
}

/// Who did it, with the name of the thread.
pub(super) fn actor(evidence: &Evidence) -> Option<(Pid, &str)> {
    let (process, comm) = match evidence {
        Evidence::Process(_) | Evidence::Hello(_) => return None,
        Evidence::Handshake(handshake) => (handshake.process, &handshake.comm),
        Evidence::Compared(comparison) => (comparison.process, &comparison.comm),
        Evidence::Opened(opening) => (opening.owner.process, &opening.owner.comm),
        Evidence::Closed(connection) => {
            let owner = connection.owner.as_ref()?;
            (owner.process, &owner.comm)
        }
    };
    Some((process, comm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_discover::Error;
    use tlsprof_discover::image::Mapping;
    use tlsprof_discover::process::{CpuTime, Process, Stat};
    use tlsprof_discover::service::{Cgroup, service_name};
    use tlsprof_evidence::hello::{Facts, Origin};
    use tlsprof_evidence::{Handshake, sample};

    /// Processes of two services: even and odd numbers.
    #[derive(Debug)]
    struct Host;

    impl ProcessSource for Host {
        fn pids(&self) -> Result<Vec<Pid>, Error> {
            Ok(vec![10, 11, 12])
        }

        fn stat(&self, _pid: Pid) -> Result<Option<Stat>, Error> {
            Ok(None)
        }

        fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
            let executable = if pid.is_multiple_of(2) {
                "/bin/even"
            } else {
                "/bin/odd"
            };
            Ok(Some(Process {
                pid,
                parent: 1,
                start_time: 1,
                name: String::new(),
                executable: executable.into(),
                cgroup: Cgroup::Other,
                service: service_name(&Cgroup::Other, executable.as_ref(), ""),
                cpu: CpuTime::default(),
            }))
        }

        fn images(&self, _pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
            Ok(None)
        }
    }

    /// Whose session it was that a client brought to a process, by the table.
    fn giver(issuer: Pid, process: Pid) -> Option<Giver> {
        let mut table = ProcessTable::new(Host);
        table.scan().ok()?;
        let origin = Origin {
            giver: Giver::Sibling,
            process: issuer,
            age: None,
        };
        let mut facts = Facts::default();
        facts.origin = Some(origin);
        let mut evidence = Evidence::Handshake(Box::new(Handshake {
            process,
            hello: Some(Box::new(facts)),
            ..sample::handshake()
        }));
        mark_foreign_issuers(&table, &mut evidence);
        let Evidence::Handshake(handshake) = evidence else {
            return None;
        };
        Some(handshake.hello?.origin?.giver)
    }

    #[test]
    fn an_issuer_that_the_table_has_forgotten_is_no_stranger() {
        assert_eq!(giver(10, 12), Some(Giver::Sibling));
        assert_eq!(giver(11, 12), Some(Giver::Stranger));
        assert_eq!(giver(4, 12), Some(Giver::Ended));
    }
}
