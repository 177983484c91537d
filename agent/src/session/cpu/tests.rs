//! What is booked of services whose processes come and go.

use super::*;
use tlsprof_common::{LifetimeCpu, ProcessEvent};
use tlsprof_discover::ProcRoot;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_ledger::{Limits, OTHER};

/// No kernel has that number: the process is gone before it can be read.
const GONE: Pid = u32::MAX;
const EACH: Duration = Duration::from_millis(10);

/// A process of a service begins, computes for [`EACH`], and ends.
fn run(table: &mut ProcessTable<ProcRoot>, service: &str) {
    table.apply(&ProcessEvent::Exec {
        process: GONE,
        path: format!("/usr/bin/{service}"),
        comm: service.to_owned(),
        cpu: LifetimeCpu::default(),
    });
    let total = EACH;
    table.apply(&ProcessEvent::Exit {
        process: GONE,
        cpu: LifetimeCpu {
            total,
            ..LifetimeCpu::default()
        },
    });
}

/// Books evidence of a service.
fn note(ledger: &mut Ledger, service: &str) {
    ledger.add_samples(service, Activity::Handshake, Mode::User, 1);
}

/// A booking, none of whose services has a live process.
fn book(table: &mut ProcessTable<ProcRoot>, all: bool, ledger: &mut Ledger) {
    let mut services = BTreeSet::new();
    for (service, new) in take_used(table, all, &mut services, ledger) {
        assert!(services.contains(service.as_str()));
        ledger.add_cpu(service.as_str(), new.user, new.system);
    }
}

fn cpu(ledger: &Ledger, service: &str) -> Option<Duration> {
    let account = ledger.service(service)?;
    Some(account.cpu_user + account.cpu_system)
}

#[test]
fn a_process_for_each_connection_is_booked_whole_beside_many_others() {
    let (mut table, mut ledger) = (
        ProcessTable::new(ProcRoot::default()),
        Ledger::new(Limits::default()),
    );
    for number in 0..1024 {
        run(&mut table, &format!("job{number}"));
    }
    for _ in 0..50 {
        run(&mut table, "server");
        // Evidence of the first one comes after it was looked at.
        book(&mut table, false, &mut ledger);
        note(&mut ledger, "server");
    }
    book(&mut table, false, &mut ledger);
    assert_eq!(cpu(&ledger, "server"), Some(EACH * 50));
    assert_eq!(ledger.cpu(), EACH * 50);
}

#[test]
fn all_that_the_user_named_is_booked() {
    let (mut table, mut ledger) = (
        ProcessTable::new(ProcRoot::default()),
        Ledger::new(Limits::default()),
    );
    for number in 0..5000 {
        run(&mut table, &format!("job{number}"));
    }
    book(&mut table, true, &mut ledger);
    assert_eq!(ledger.cpu(), EACH * 5000);
}

#[test]
fn a_service_beyond_the_limit_has_its_time_where_its_evidence_is() {
    let (mut table, mut ledger) = (
        ProcessTable::new(ProcRoot::default()),
        Ledger::new(Limits {
            services: 1,
            label_sets: 10,
        }),
    );
    for service in ["first", "second"] {
        note(&mut ledger, service);
    }
    for service in ["first", "second", "without-evidence"] {
        run(&mut table, service);
    }
    book(&mut table, false, &mut ledger);
    assert_eq!(cpu(&ledger, "first"), Some(EACH));
    assert_eq!(cpu(&ledger, OTHER), Some(EACH));
}
