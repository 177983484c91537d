//! Where sessions came from that clients bring, and how old they are.

use super::*;
use crate::hello::{Attempt, Giver};
use tlsprof_common::LifetimeCpu;

const ISSUED: &str = "openssl30-tls12-session-id-refused";
/// The session id of a hello of TLS 1.2, after record, message, version and random.
const SESSION: std::ops::Range<usize> = 44..76;

const A: Pid = 21;
const B: Pid = 22;

impl Bench {
    /// What the last handshake says of the session that was brought.
    fn origin(&self) -> Option<(Giver, Option<Duration>)> {
        let hello = self.handshakes().pop().unwrap().hello.as_ref().unwrap();
        hello.origin.map(|origin| (origin.giver, origin.age))
    }

    fn resumes(&mut self, process: Pid, connection: ConnectionId) -> &mut Self {
        self.hears(process, connection, RESUMED)
            .ends(of(process, socket(connection)))
    }

    /// The id that was issued is brought to that process, which gives another.
    fn refuses_id(&mut self, process: Pid, connection: ConnectionId) -> &mut Self {
        let chunks = fixture::read(ISSUED).chunks;
        let (mut hello, mut answer) = (chunks[0].1.clone(), chunks[1].1.clone());
        hello[SESSION].copy_from_slice(&answer[SESSION]);
        answer[SESSION].fill(u8::try_from(connection).unwrap());
        self.take(chunk(process, connection, chunks[0].0, 0, hello));
        self.take(chunk(process, connection, chunks[1].0, 0, answer));
        self.ends(of(process, socket(connection)))
    }

    fn happens(&mut self, event: ProcessEvent) -> &mut Self {
        self.take(Evidence::Process(event))
    }
}

fn exit(process: Pid) -> ProcessEvent {
    ProcessEvent::Exit {
        process,
        cpu: LifetimeCpu::default(),
    }
}

#[test]
fn the_giver_of_a_session_id_and_its_age_are_known() {
    let mut bench = Bench::new();
    bench.hears(A, 1, ISSUED).ends(of(A, socket(1)));
    assert_eq!(bench.origin(), None, "made up");
    bench.waits(Duration::from_secs(7)).refuses_id(A, 2);
    let (giver, age) = bench.origin().unwrap();
    assert_eq!(giver, Giver::Same);
    assert_eq!(age.unwrap().as_secs(), 7);
    assert_eq!(bench.refuses_id(B, 3).origin().unwrap().0, Giver::Sibling);
    bench.happens(exit(A)).refuses_id(B, 4);
    assert_eq!(bench.origin().unwrap().0, Giver::Ended);
    let attempts = bench.handshakes().into_iter().skip(1);
    let attempts = attempts.map(|one| one.hello.as_ref().unwrap().attempt());
    assert!(attempts.into_iter().all(|it| it == Attempt::Refused));
}

#[test]
fn the_key_of_a_ticket_is_known_by_who_accepts_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.resumes(A, 1).origin(), None, "never seen before");
    assert_eq!(bench.resumes(A, 2).origin(), Some((Giver::Same, None)));
    assert_eq!(bench.resumes(B, 3).origin(), Some((Giver::Sibling, None)));
    assert_eq!(bench.resumes(B, 4).origin(), Some((Giver::Same, None)));
    bench.happens(exit(A));
    assert_eq!(bench.resumes(23, 5).origin(), Some((Giver::Sibling, None)));
    bench.happens(exit(B)).happens(exit(23));
    assert_eq!(bench.resumes(24, 6).origin(), Some((Giver::Ended, None)));
}

/// All processes of the host: shells, cron jobs.
#[test]
fn ends_of_others_do_not_hide_that_a_giver_has_ended() {
    let mut bench = Bench::new();
    bench.hears(A, 1, ISSUED).ends(of(A, socket(1)));
    bench.resumes(A, 2).happens(exit(A));
    for other in 1000..6000 {
        bench.happens(exit(other));
    }
    assert_eq!(bench.refuses_id(B, 3).origin().unwrap().0, Giver::Ended);
    assert_eq!(bench.resumes(B, 4).origin(), Some((Giver::Ended, None)));
}

#[test]
fn a_number_that_comes_again_is_another_process() {
    let mut bench = Bench::new();
    bench.hears(A, 1, ISSUED).ends(of(A, socket(1)));
    bench.resumes(A, 2).happens(exit(A));
    // Its last handshake may come after its end.
    assert_eq!(bench.resumes(A, 3).origin(), Some((Giver::Same, None)));
    bench.waits(Duration::from_secs(5)).refuses_id(A, 4);
    assert_eq!(bench.origin().unwrap().0, Giver::Ended);
    assert_eq!(bench.resumes(A, 5).origin(), Some((Giver::Ended, None)));
    assert_eq!(bench.resumes(A, 6).origin(), Some((Giver::Same, None)));
    assert_eq!(bench.resumes(B, 7).origin(), Some((Giver::Sibling, None)));
}

/// A process for each connection.
#[test]
fn a_giver_may_end_while_its_only_handshake_waits_for_its_twin() {
    let mut bench = Bench::new();
    bench.hears(PROBED, 1, ISSUED).ends(socket(1));
    bench.happens(exit(PROBED));
    assert!(bench.handshakes().is_empty());
    bench.waits(millis(1100)).waits(Duration::from_secs(3));
    assert_eq!(bench.refuses_id(B, 2).origin().unwrap().0, Giver::Ended);
}

#[test]
fn workers_that_have_ended_leave_room_for_those_that_live() {
    let mut bench = Bench::new();
    for worker in 1000..1300 {
        let id = worker.into();
        bench.resumes(worker, id).happens(exit(worker));
    }
    assert_eq!(bench.resumes(A, 1).origin(), Some((Giver::Ended, None)));
    assert_eq!(bench.resumes(A, 2).origin(), Some((Giver::Same, None)));
}

#[test]
fn a_client_on_the_same_host_gives_no_sessions() {
    let mut bench = Bench::new();
    let client = Handshake {
        role: Role::Client,
        ..of(B, socket(1))
    };
    bench.hears(B, 1, ISSUED).ends(client);
    assert_eq!(bench.refuses_id(A, 2).origin(), None);
}
