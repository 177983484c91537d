//! The selected port: who listens there now.

use super::*;
use tlsprof_common::{Opening, Owner, Role};

const PORT: u16 = 443;

/// An nginx with a worker, and something else; the profile is of nginx, by its port.
fn by_port(fake: &Fake) -> ProcessTable<Fake> {
    fake.run(10, 1, 5, "/usr/sbin/nginx", &[LIBSSL]);
    fake.run(11, 10, 6, "/usr/sbin/nginx", &[LIBSSL]);
    fake.run(20, 1, 5, "/usr/bin/other", &[OTHER]);
    let mut table = ProcessTable::new(fake.clone());
    table.scan().unwrap();
    table
        .select(&Selection::Port(PORT), &ListeningPorts::on(PORT, [10, 11]))
        .unwrap();
    table.take_changes();
    table
}

fn opening(process: Pid, role: Role, port: u16) -> Opening {
    Opening {
        id: 7,
        owner: Owner {
            process,
            comm: "nginx".to_owned(),
        },
        role,
        port,
        remote: None,
        accept_wait: None,
        followed: true,
    }
}

/// The service is started anew, beside the old one.
fn restart(fake: &Fake, table: &mut ProcessTable<Fake>) {
    fake.run(30, 1, 50, "/usr/sbin/nginx", &[LIBSSL]);
    fake.run(31, 30, 51, "/usr/sbin/nginx", &[LIBSSL]);
    table.scan().unwrap();
    assert!(!table.is_selected(30) && !table.is_selected(31));
}

#[test]
fn who_accepts_on_the_port_is_selected() {
    let fake = Fake::default();
    let mut table = by_port(&fake);
    restart(&fake, &mut table);
    for (role, port) in [(Role::Client, PORT), (Role::Server, 80)] {
        assert!(!table.follow_connection(&opening(31, role, port)));
    }
    assert!(table.follow_connection(&opening(31, Role::Server, PORT)));
    assert!(!table.follow_connection(&opening(31, Role::Server, PORT)));
    assert!(table.is_selected(31) && !table.is_selected(30));
}

#[test]
fn who_listens_on_the_port_is_selected_with_its_descendants_and_cpu_time() {
    let fake = Fake::default();
    let mut table = by_port(&fake);
    restart(&fake, &mut table);
    fake.use_cpu(31, 700, 300);
    let ports = ListeningPorts::on(PORT, [10, 11, 30]);
    assert_eq!(table.heads_of_listeners(&ports), [10, 30]);
    table.follow_listeners(&ports);
    assert!(table.is_selected(30) && table.is_selected(31) && !table.is_selected(20));
    table.read_cpu(|_| true);
    let used = table.take_cpu(|_| true);
    let nginx = ServiceName::new("nginx");
    assert_eq!(used, BTreeMap::from([(nginx, cpu(700, 300))]));
}

#[test]
fn images_of_new_listeners_are_reported() {
    let fake = Fake::default();
    let mut table = by_port(&fake);
    for pid in [10, 11] {
        fake.end(pid);
    }
    restart(&fake, &mut table);
    assert!(matches!(table.take_changes()[..], [ImageChange::Lost(_)]));
    table.follow_listeners(&ListeningPorts::on(PORT, [30]));
    assert!(matches!(
        table.take_changes()[..],
        [ImageChange::Gained { .. }]
    ));
}
