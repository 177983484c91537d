use super::*;

const NOW: Duration = Duration::from_secs(1000);

fn learn(ports: &mut Ports, service: &str, port: u16, finding: Finding) {
    ports.seen(service, port, NOW);
    let (_, asked, number) = ports.next(NOW).unwrap_or_default();
    assert_eq!(asked, port);
    ports.answered(answer(number, finding), Timestamp::UNIX_EPOCH);
}

fn answer(number: u64, finding: Finding) -> Answer {
    Answer {
        number,
        finding,
        connections: 2,
        counted: 0,
    }
}

fn next_port(ports: &mut Ports, now: Duration) -> Option<u16> {
    ports.next(now).map(|(_, port, _)| port)
}

#[test]
fn nothing_is_asked_without_evidence() {
    let mut ports = Ports::default();
    ports.main_process("nginx", 1);
    assert_eq!(ports.next(NOW), None);
    assert_eq!(ports.signature("nginx", Some(443)), None);
}

#[test]
fn a_port_is_asked_once_and_again_after_an_hour() {
    let mut ports = Ports::default();
    learn(&mut ports, "nginx", 443, Finding::Key("ed25519"));
    for (later, asked) in [
        (Duration::ZERO, None),
        (RENEWAL - Duration::from_nanos(1), None),
        (RENEWAL, Some(443)),
        (RENEWAL, None),
    ] {
        ports.seen("nginx", 443, NOW + later);
        assert_eq!(next_port(&mut ports, NOW + later), asked, "{later:?}");
    }
    // What was learned holds until the answer.
    assert_eq!(ports.signature("nginx", Some(443)), Some("ed25519"));
}

#[test]
fn a_service_that_began_anew_is_asked_anew_but_not_at_once() {
    let mut ports = Ports::default();
    learn(&mut ports, "nginx", 443, Finding::Key("ed25519"));
    ports.main_process("nginx", 7);
    assert_eq!(ports.signature("nginx", Some(443)), Some("ed25519"));
    ports.main_process("nginx", 8);
    assert_eq!(ports.signature("nginx", Some(443)), None);
    assert!(ports.notes().is_empty());
    ports.seen("nginx", 443, NOW);
    assert_eq!(next_port(&mut ports, NOW), None);
    ports.seen("nginx", 443, NOW + AFRESH);
    assert_eq!(next_port(&mut ports, NOW + AFRESH), Some(443));
}

#[test]
fn an_answer_of_the_service_before_is_dropped() {
    let mut ports = Ports::default();
    ports.seen("nginx", 443, NOW);
    ports.main_process("nginx", 7);
    let number = ports.next(NOW).map_or(0, |(_, _, number)| number);
    ports.main_process("nginx", 8);
    ports.answered(
        answer(number, Finding::Key("ed25519")),
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(ports.signature("nginx", Some(443)), None);
}

#[test]
fn few_are_asked_in_a_minute() {
    let mut ports = Ports::default();
    for port in 1..=20 {
        ports.seen("many", port, NOW);
    }
    let mut asked = |now| std::iter::from_fn(|| next_port(&mut ports, now)).count();
    assert_eq!(asked(NOW), MOST_AT_ONCE);
    assert_eq!(asked(NOW + AFRESH / 2), 0);
    assert_eq!(asked(NOW + AFRESH), MOST_AT_ONCE);
}

#[test]
fn ports_are_bounded() {
    let mut ports = Ports::default();
    for port in 0..u16::MAX {
        ports.seen("many", port, NOW);
    }
    assert_eq!(ports.known.len(), MOST_PORTS);
}

#[test]
fn without_a_port_all_of_the_service_must_agree() {
    let mut ports = Ports::default();
    learn(&mut ports, "nginx", 443, Finding::Key("rsa_2048"));
    learn(&mut ports, "other", 443, Finding::Key("ed25519"));
    assert_eq!(ports.signature("nginx", None), Some("rsa_2048"));
    assert_eq!(ports.signature("nginx", Some(444)), None);
    ports.seen("nginx", 8443, NOW);
    assert_eq!(ports.signature("nginx", None), None, "not asked yet");
    learn(&mut ports, "nginx", 8443, Finding::Key("ecdsa_p256"));
    assert_eq!(ports.signature("nginx", None), None);
    assert_eq!(ports.signature("nginx", Some(443)), Some("rsa_2048"));
    assert_eq!(ports.signature("nginx", Some(8443)), Some("ecdsa_p256"));
}

#[test]
fn what_was_not_learned_is_said_and_not_used() {
    let mut ports = Ports::default();
    let both = Finding::Ambiguous(["ecdsa_p256", "rsa_2048"].into());
    learn(&mut ports, "a", 1, both);
    learn(&mut ports, "b", 2, Finding::Nothing("silence".to_owned()));
    assert_eq!(ports.signature("a", Some(1)), None);
    assert_eq!(ports.signature("b", Some(2)), None);
    let notes = ports.notes().join("\n");
    assert!(notes.contains("it has keys of several types (ecdsa_p256, rsa_2048)"));
    assert!(notes.contains("b on port 2 (tried at 1970-01-01T00:00:00Z): silence"));
    assert!(!notes.contains("count as"));
}

#[test]
fn connections_that_count_are_said() {
    let mut ports = Ports::default();
    ports.seen("a", 1, NOW);
    let number = ports.next(NOW).map_or(0, |(_, _, number)| number);
    let counted = Answer {
        counted: 1,
        ..answer(number, Finding::Key("ed25519"))
    };
    ports.answered(counted, Timestamp::UNIX_EPOCH);
    assert!(
        ports
            .notes()
            .concat()
            .contains("1 of its 2 connections could not")
    );
}
