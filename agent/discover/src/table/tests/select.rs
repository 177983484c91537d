//! What the user named.

use super::*;
use crate::selection::SelectionError;

#[test]
fn a_pid_selects_the_process_and_its_descendants() {
    let (fake, mut table) = nginx();
    fake.run(20, 1, 80, "/usr/sbin/nginx", &[400]);
    table.scan().unwrap();
    changes(&mut table);
    table
        .select(&Selection::Pid(10), &ListeningPorts::default())
        .unwrap();
    assert_eq!(changes(&mut table), ["-400"]);
    table.apply(&fork(11, 12));
    table.apply(&exit(11, 0));
    table.apply(&fork(12, 13));
    table.apply(&fork(20, 21));
    let selected: Vec<Pid> = (0..30).filter(|&pid| table.is_selected(pid)).collect();
    assert_eq!(selected, [10, 11, 12, 13]);
    let services: Vec<_> = table.services().into_iter().map(|s| s.processes).collect();
    assert_eq!(services, [[10, 12, 13]]);

    fake.use_cpu(20, 100, 100);
    fake.use_cpu(10, 10, 0);
    table.read_cpu(|_| true);
    let used = table.take_cpu(|_| true);
    let nginx = ServiceName::new("nginx");
    assert_eq!(used, BTreeMap::from([(nginx, cpu(10, 0))]));
}

#[test]
fn a_service_selects_by_name_whatever_becomes_it() {
    let (fake, mut table) = nginx();
    table
        .select(
            &Selection::Service("nginx".into()),
            &ListeningPorts::default(),
        )
        .unwrap();
    assert_eq!(changes(&mut table), ["+100@10", "+200@10"]);
    table.apply(&fork(1, 12));
    assert!(!table.is_selected(12));
    fake.run(12, 1, 70, "/usr/sbin/nginx", &[300]);
    table.apply(&exec(12, "/usr/sbin/nginx"));
    assert!(table.is_selected(12));
    assert_eq!(changes(&mut table), ["+300@12"]);
    fake.run(12, 1, 70, "/usr/bin/node", &[300]);
    table.apply(&exec(12, "/usr/bin/node"));
    assert_eq!(changes(&mut table), ["-300"]);
}

#[test]
fn what_selects_nothing_is_an_error_and_changes_nothing() {
    let (_fake, mut table) = nginx();
    let ports = ListeningPorts::default();
    let error = table.select(&Selection::Pid(4), &ports).unwrap_err();
    assert_eq!(error, SelectionError::NoProcess(4));
    let error = table
        .select(&Selection::Service("ngnx".into()), &ports)
        .unwrap_err();
    assert!(
        error.to_string().contains("did you mean `nginx`?"),
        "{error}"
    );
    let error = table.select(&Selection::Port(443), &ports).unwrap_err();
    assert_eq!(error, SelectionError::NoListener(443));
    assert!(table.is_selected(1));
}
