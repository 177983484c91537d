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
    use tlsprof_common::{LifetimeCpu, ProcessEvent};
    use tlsprof_evidence::hello::{Facts, Origin};
    use tlsprof_evidence::{Handshake, sample};

    /// Processes that cannot be read: no kernel has such numbers. The table knows three of them.
    const SERVER: Pid = u32::MAX;
    const SIBLING: Pid = SERVER - 1;
    const STRANGER: Pid = SERVER - 2;
    const FORGOTTEN: Pid = SERVER - 3;

    /// Whose session it was that a client brought to a process, by the table.
    fn giver(issuer: Pid, process: Pid) -> Option<Giver> {
        let mut table = ProcessTable::new(ProcRoot::default());
        let programs = [(SERVER, "nginx"), (SIBLING, "nginx"), (STRANGER, "curl")];
        for (process, comm) in programs {
            table.apply(&ProcessEvent::Exec {
                process,
                path: format!("/usr/bin/{comm}"),
                comm: comm.to_owned(),
                cpu: LifetimeCpu::default(),
            });
        }
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
        assert_eq!(giver(SIBLING, SERVER), Some(Giver::Sibling));
        assert_eq!(giver(STRANGER, SERVER), Some(Giver::Stranger));
        assert_eq!(giver(FORGOTTEN, SERVER), Some(Giver::Ended));
    }
}
