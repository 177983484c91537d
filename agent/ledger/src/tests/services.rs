//! More services than there is room for.

use super::*;

#[test]
fn services_beyond_the_limit_count_under_other() {
    let mut ledger = Ledger::new(Limits {
        services: 1,
        label_sets: 10,
    });
    for service in ["a", "b", "c", "a"] {
        ledger.record(service, &handshake());
    }
    assert_eq!(ledger.service("a").unwrap().handshake_count(), 2);
    assert_eq!(ledger.service(OTHER).unwrap().handshake_count(), 2);
    assert_eq!(ledger.booked_name("z"), OTHER);
    let booked: Vec<&str> = ledger.booked_services().collect();
    assert_eq!(booked, ["a", "b", "c"]);
}

#[test]
fn the_names_of_services_beyond_the_limit_are_bounded() {
    let mut ledger = Ledger::new(Limits {
        services: 1,
        label_sets: 10,
    });
    for number in 0..10_000 {
        let service = format!("service{number}");
        ledger.record(&service, &handshake());
        assert!(ledger.booked_services().any(|one| one == service));
        assert!(ledger.booked_services().count() <= 1 + 1024);
    }
}
