use super::*;
use tlsprof_evidence::activity::{Basis, Mode};

fn network(activity: Activity) -> Verdict {
    Verdict {
        activity,
        mode: Mode::Softirq,
        basis: Basis::KernelFunction,
        traced: false,
        upkeep: None,
        packets: None,
    }
}

fn passing(packets: Packets) -> Verdict {
    Verdict {
        packets: Some(packets),
        ..network(match packets {
            Packets::Any => Activity::SocketIo,
            Packets::NotTcp => Activity::Application,
        })
    }
}

fn events(opened: u64, closed: u64, bytes: u64) -> NetworkEvents {
    NetworkEvents {
        opened,
        closed,
        bytes,
    }
}

fn host(all: [(&str, NetworkEvents); 3]) -> BTreeMap<Option<String>, NetworkEvents> {
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    all.into_iter().map(|(n, e)| (name(n), e)).collect()
}

fn by_events(service: &str, activity: Activity, samples: u64) -> Share {
    Share {
        service: service.to_owned(),
        activity,
        samples,
    }
}

#[test]
fn each_activity_is_divided_by_its_own_events() {
    let mut softirqs = Softirqs::default();
    softirqs.add(network(Activity::TcpOpen), 10);
    softirqs.add(network(Activity::TcpClose), 10);
    softirqs.add(network(Activity::SocketIo), 10);
    let shares = softirqs.divide(&host([
        ("", events(0, 0, 0)),
        ("a", events(3, 1, 500)),
        ("b", events(1, 1, 500)),
    ]));
    let expected = [
        ("a", Activity::TcpOpen, 7),
        ("b", Activity::TcpOpen, 2),
        ("a", Activity::TcpClose, 5),
        ("b", Activity::TcpClose, 5),
        ("a", Activity::SocketIo, 5),
        ("b", Activity::SocketIo, 5),
    ];
    assert_eq!(
        shares,
        expected.map(|(name, activity, count)| by_events(name, activity, count))
    );
}

#[test]
fn as_much_of_unknown_packets_is_tcp_as_of_known_ones() {
    let all = |opened| {
        host([
            ("", events(0, 0, 0)),
            ("a", events(0, 0, opened)),
            ("b", events(0, 0, 0)),
        ])
    };
    for (tcp, other, expected) in [(10, 30, 10 + 25), (10, 0, 10 + 100), (0, 0, 100)] {
        let mut softirqs = Softirqs::default();
        softirqs.add(network(Activity::SocketIo), tcp);
        softirqs.add(passing(Packets::NotTcp), other);
        softirqs.add(passing(Packets::Any), 100);
        // Upkeep of the kernel says nothing about packets.
        softirqs.add(network(Activity::Application), 1000);
        let shares = softirqs.divide(&all(1));
        assert!(shares.iter().all(|one| one.service == "a"));
        let samples: u64 = shares.iter().map(|one| one.samples).sum();
        assert_eq!(samples, expected);
    }
    let mut softirqs = Softirqs::default();
    softirqs.add(passing(Packets::NotTcp), 30);
    softirqs.add(passing(Packets::Any), 100);
    assert_eq!(
        softirqs.divide(&all(1)),
        [],
        "a flood of UDP is no connection's"
    );
}

#[test]
fn what_cannot_be_divided_waits_and_nothing_is_counted_twice() {
    let mut softirqs = Softirqs::default();
    let idle = host([
        ("", events(0, 0, 0)),
        ("a", events(0, 0, 0)),
        ("b", events(0, 0, 0)),
    ]);
    softirqs.add(network(Activity::TcpClose), 4);
    assert_eq!(softirqs.divide(&idle), []);
    let busy = host([
        ("", events(0, 0, 0)),
        ("a", events(0, 1, 0)),
        ("b", events(0, 0, 0)),
    ]);
    assert_eq!(
        softirqs.divide(&busy),
        [by_events("a", Activity::TcpClose, 4)]
    );
    softirqs.add(network(Activity::TcpClose), 4);
    assert_eq!(softirqs.divide(&busy), [], "no event since");
}

#[test]
fn what_waited_long_is_nobodys() {
    let idle = host([
        ("", events(0, 0, 0)),
        ("a", events(0, 0, 0)),
        ("b", events(0, 0, 0)),
    ]);
    let busy = host([
        ("", events(0, 0, 0)),
        ("a", events(1, 0, 0)),
        ("b", events(0, 0, 0)),
    ]);
    for (divisions, expected) in [(MOST_WAITED, 1), (MOST_WAITED + 1, 0)] {
        let mut softirqs = Softirqs::default();
        assert_eq!(softirqs.divide(&idle), [], "nothing waits yet");
        softirqs.add(network(Activity::TcpOpen), 100);
        for _ in 0..divisions {
            assert_eq!(softirqs.divide(&idle), []);
        }
        assert_eq!(softirqs.divide(&busy).len(), expected);
    }
}

#[test]
fn the_work_of_services_that_are_not_profiled_is_not_given_to_others() {
    let mut softirqs = Softirqs::default();
    softirqs.add(network(Activity::TcpOpen), 100);
    let shares = softirqs.divide(&host([
        ("", events(9, 0, 0)),
        ("a", events(1, 0, 0)),
        ("b", events(0, 0, 0)),
    ]));
    assert_eq!(shares, [by_events("a", Activity::TcpOpen, 10)]);
}

#[test]
fn work_that_belongs_to_no_connection_stays_out() {
    let mut softirqs = Softirqs::default();
    softirqs.add(network(Activity::Application), 100);
    let all = events(1, 1, 1);
    assert_eq!(
        softirqs.divide(&host([("", all), ("a", all), ("b", all)])),
        []
    );
}
