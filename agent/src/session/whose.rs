//! Whose evidence is.

use tlsprof_common::Pid;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::ProcessTable;
use tlsprof_evidence::Evidence;
use tlsprof_evidence::hello::Giver;

/// Who gave the session that a client brought may be of another service.
pub(super) fn mark_foreign_issuers(table: &ProcessTable<ProcRoot>, evidence: &mut Evidence) {
    let Evidence::Handshake(handshake) = evidence else {
        return;
    };
    let process = handshake.process;
    let origin = handshake.hello.as_mut().and_then(|it| it.origin.as_mut());
    if let Some(origin) = origin
        && origin.giver == Giver::Sibling
        && table.service_of(origin.process) != table.service_of(process)
    {
        origin.giver = Giver::Stranger;
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
