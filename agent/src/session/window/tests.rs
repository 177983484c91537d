#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use super::*;
use tlsprof_common::{Opening, Owner, Role, Whole};
use tlsprof_evidence::{Comparison, Handshake, sample};

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// From 100 s to 110 s.
fn window() -> Window {
    let mut window = Window::default();
    window.begin(seconds(100));
    window.end(seconds(110));
    window
}

fn handshake(began: u64, connection: ConnectionId) -> Evidence {
    Evidence::Handshake(Box::new(Handshake {
        began: seconds(began),
        connection: Some(connection),
        ..sample::handshake()
    }))
}

fn opening(id: ConnectionId) -> Evidence {
    let owner = Owner {
        process: 1,
        comm: "nginx".into(),
    };
    Evidence::Opened(Opening {
        id,
        owner,
        role: Role::Server,
        port: 443,
        remote: None,
        accept_wait: None,
        followed: true,
    })
}

/// A connection that was open from one second to another.
fn connection(opened: u64, ended: u64) -> Connection {
    let template = sample::connection();
    let whole = template.whole.map(|whole| Whole {
        duration: seconds(ended - opened),
        ..whole
    });
    Connection {
        whole,
        ended: seconds(ended),
        ..template
    }
}

fn admits(window: &mut Window, mut evidence: Evidence) -> bool {
    // Handshakes and ends of connections know their time themselves.
    window.admits(&mut evidence, seconds(1_000_000))
}

#[test]
fn a_handshake_counts_where_it_began() {
    let mut window = window();
    let counted: Vec<u64> = (97..115)
        .filter(|began| admits(&mut window, handshake(*began, 1)))
        .collect();
    assert_eq!(counted, (100..110).collect::<Vec<_>>());
}

#[test]
fn the_sources_are_compared_where_the_handshake_counts() {
    let compared = |began| {
        Evidence::Compared(Box::new(Comparison {
            process: 1,
            comm: "nginx".into(),
            role: Role::Server,
            began: seconds(began),
            connection: None,
            library: seconds(1),
            socket: seconds(1),
        }))
    };
    let mut window = window();
    let admitted = [99, 100, 109, 110].map(|began| admits(&mut window, compared(began)));
    assert_eq!(admitted, [false, true, true, false]);
}

#[test]
fn a_connection_that_waited_at_an_end_takes_its_handshake_along() {
    let mut window = Window::default();
    window.begin(seconds(100));
    assert!(!window.admits(&mut opening(1), seconds(99)));
    assert!(window.admits(&mut opening(2), seconds(105)));
    window.end(seconds(110));
    assert!(window.admits(&mut opening(3), seconds(109)));
    assert!(!window.admits(&mut opening(4), seconds(111)));
    assert!(!admits(&mut window, handshake(101, 1)), "opened before");
    assert!(!admits(&mut window, handshake(111, 2)), "was open for long");
    assert!(admits(&mut window, handshake(111, 3)), "had to wait");
    assert!(!admits(&mut window, handshake(111, 4)), "opened after");
}

#[test]
fn a_connection_counts_whole_where_it_was_opened() {
    let mut window = window();
    for (opened, ended, expected) in [
        (98, 99, None),
        (98, 105, Some(false)),
        (98, 111, None),
        (101, 105, Some(true)),
        (101, 111, Some(true)),
        (111, 112, None),
    ] {
        let mut evidence = Evidence::Closed(Box::new(connection(opened, ended)));
        let admitted = window.admits(&mut evidence, seconds(ended));
        let Evidence::Closed(kept) = evidence else {
            unreachable!()
        };
        let seen = admitted.then_some(kept.whole.is_some());
        assert_eq!(seen, expected, "{opened} to {ended}");
    }
}

#[test]
fn a_process_that_ends_or_execs_outside_adds_no_cpu_time() {
    let cpu = LifetimeCpu {
        total: seconds(1),
        ..LifetimeCpu::default()
    };
    let (path, comm) = (String::new(), String::new());
    let exec = ProcessEvent::Exec {
        process: 1,
        path,
        comm,
        cpu,
    };
    let mut window = window();
    for event in [ProcessEvent::Exit { process: 1, cpu }, exec] {
        for (at, expected) in [(99, 0), (105, 1), (110, 0)] {
            let mut evidence = Evidence::Process(event.clone());
            window.admits(&mut evidence, seconds(at));
            let (Evidence::Process(ProcessEvent::Exit { cpu, .. })
            | Evidence::Process(ProcessEvent::Exec { cpu, .. })) = evidence
            else {
                unreachable!()
            };
            assert_eq!(cpu.total, seconds(expected), "{at}");
        }
    }
}

#[test]
fn nothing_counts_before_the_window_and_it_has_no_length() {
    let mut window = Window::default();
    assert!(!admits(&mut window, handshake(100, 1)));
    assert_eq!(window.length(seconds(100)), Duration::ZERO);
    window.begin(seconds(100));
    assert_eq!(window.length(seconds(103)), seconds(3));
    window.end(seconds(110));
    assert_eq!(window.length(seconds(200)), seconds(10));
    assert_eq!(window.clock(seconds(200)), seconds(110));
}

#[test]
fn what_is_kept_of_an_end_is_bounded() {
    let mut window = window();
    for id in 0..MOST_AT_AN_EDGE as u64 + 10 {
        window.admits(&mut opening(id), seconds(99));
        window.admits(&mut opening(id), seconds(101));
    }
    assert_eq!(window.waited_at_begin.len(), MOST_AT_AN_EDGE);
    assert_eq!(window.waited_at_end.len(), MOST_AT_AN_EDGE);
}
