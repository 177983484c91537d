#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use super::*;
use tlsprof_common::{Opening, Owner, Role};
use tlsprof_evidence::hello::Facts;
use tlsprof_evidence::hello::fixture::{fed, read};
use tlsprof_evidence::{Handshake, sample};
use tlsprof_ledger::Limits;

const NOW: Duration = Duration::from_secs(100);

/// Enters evidence as of one window. Returns the accounts, what `see` got, and for how many services
/// and roles cohorts are kept.
fn entered(mut ready: Vec<Evidence>, limits: Limits) -> (Ledger, Vec<Evidence>, usize) {
    let mut window = Window::default();
    window.begin(Duration::ZERO);
    let mut cohorts = Cohorts::new(true);
    let mut ledger = Ledger::new(limits);
    let mut seen = Vec::new();
    let mut books = Books {
        window: &mut window,
        signatures: &mut Signatures::default(),
        cohorts: &mut cohorts,
        table: &mut ProcessTable::new(ProcRoot::default()),
        ledger: &mut ledger,
    };
    books.enter(ready.drain(..), NOW, &mut |_, evidence: &Evidence| {
        seen.push(evidence.clone());
    });
    (ledger, seen, cohorts.count())
}

#[test]
fn services_beyond_the_limit_have_one_cohort() {
    let limits = Limits {
        services: 10,
        ..Limits::default()
    };
    let openings = (0..10_000).map(|id| {
        Evidence::Opened(Opening {
            id,
            owner: Owner {
                process: u32::MAX,
                comm: format!("job-{id}"),
            },
            ..sample::opening(Role::Server)
        })
    });
    let (ledger, _, cohorts) = entered(openings.collect(), limits);
    assert_eq!(ledger.services().count(), 11);
    assert_eq!(cohorts, 11);
    // So that their CPU time is booked as well.
    assert!(ledger.booked_services().any(|one| one == "job-9999"));
}

#[test]
fn what_a_client_asked_for_is_dropped_before_its_handshake_is_kept() {
    let facts = fed(read("openssl30-tls13-full").whole()).into_facts();
    let handshake = Handshake {
        process: u32::MAX,
        hello: facts.clone(),
        ..sample::handshake()
    };
    let (_, seen, _) = entered(
        vec![Evidence::Handshake(Box::new(handshake))],
        Limits::default(),
    );
    let Some(Evidence::Handshake(seen)) = seen.first() else {
        unreachable!("one handshake was entered");
    };
    let request = |facts: &Facts| facts.certificate_request().unwrap();
    let before = facts.unwrap();
    let mut forgotten = before.clone();
    forgotten.forget_certificate_request();
    let after = request(seen.hello.as_ref().unwrap());
    assert_eq!(after, request(&forgotten));
    assert_ne!(after, request(&before));
}
