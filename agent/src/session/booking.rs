//! Evidence to its service's account.

use std::sync::PoisonError;

use super::Session;
use crate::discover::ProcRoot;
use crate::discover::table::{ProcessTable, ServiceView};
use crate::evidence::Evidence;
use crate::ledger::Ledger;

/// Takes note of a change among processes. Books what happened to one under its
/// service, if that is selected, and hands it to `see` with the name that it is
/// booked under.
pub(super) fn book(
    table: &mut ProcessTable<ProcRoot>,
    ledger: &mut Ledger,
    evidence: &Evidence,
    see: &mut impl FnMut(&str, &Evidence),
) {
    let (process, comm) = match evidence {
        Evidence::Process(event) => return table.apply(event),
        Evidence::Hello(_) => return,
        Evidence::Handshake(handshake) => (handshake.process, &handshake.comm),
        Evidence::Compared(comparison) => (comparison.process, &comparison.comm),
        Evidence::Opened(opening) => (opening.owner.process, &opening.owner.comm),
        Evidence::Closed(connection) => match &connection.owner {
            Some(owner) => (owner.process, &owner.comm),
            None => return ledger.record_ownerless(),
        },
    };
    let service = match table.service_of(process) {
        Some(_) if !table.is_selected(process) => return,
        Some(name) => name.as_str(),
        // A process that the table never saw came and went within one turn: its
        // name is the best there is.
        None => comm,
    };
    match evidence {
        Evidence::Handshake(handshake) => ledger.record(service, handshake),
        Evidence::Opened(opening) => ledger.record_opening(service, opening.role),
        Evidence::Closed(connection) => ledger.record_connection(service, connection),
        Evidence::Compared(_) | Evidence::Process(_) | Evidence::Hello(_) => {}
    }
    see(ledger.booked_name(service), evidence);
}

/// Where socket calls are not seen, no turn is not the same as none.
pub(super) fn forget_turns(evidence: &mut Evidence) {
    if let Evidence::Closed(connection) = evidence
        && let Some(whole) = &mut connection.whole
    {
        whole.turns = None;
    }
}

impl Session {
    /// Asks the kernel how many TIME_WAIT sockets there are where services left some.
    pub(super) fn bound_time_wait(&self) {
        let leaves_some = |service: &ServiceView<'_>| {
            let ledger = self.ledger();
            let account = ledger.service(service.name.as_str());
            account.is_some_and(|account| account.time_wait_created() > 0)
        };
        let services = self.table.services();
        for service in services.iter().filter(|service| leaves_some(service)) {
            let process = service.processes.first();
            let counted = process.and_then(|pid| self.proc.time_wait_sockets(*pid));
            if let Some(sockets) = counted {
                let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
                ledger.bound_time_wait(service.name.as_str(), sockets);
            }
        }
    }
}
