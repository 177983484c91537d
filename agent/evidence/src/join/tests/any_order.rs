//! Whatever the order, each handshake is booked once.

use proptest::prelude::*;

use super::*;

/// Who sees a handshake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// Both, and the library knows the connection.
    Both,
    /// Both, and it does not.
    Apart,
    /// The library alone, which knows the connection.
    Library,
    /// The socket alone.
    Socket,
    /// Both; the library after the connection has ended, at its leisure.
    Late,
    /// Both, the library late, and it does not know the connection.
    LateApart,
}

#[derive(Clone, Debug)]
struct Plan {
    seen: Seen,
    process: Pid,
    role: Role,
    began: u64,
    duration: u64,
    /// Library end after the socket's, less 300 µs.
    delta: u64,
    late: u64,
    hello: bool,
    completed: bool,
    closes: bool,
}

prop_compose! {
    fn any_plan()(
        seen in prop::sample::select(vec![
            Seen::Both, Seen::Both, Seen::Apart, Seen::Library, Seen::Socket, Seen::Late, Seen::LateApart,
        ]),
        process in 1_u32..4,
        server in any::<bool>(),
        began in 0_u64..3_000_000,
        duration in 2_000_u64..400_000,
        delta in 0_u64..600,
        late in 0_u64..20_000_000,
        (hello, completed, closes) in any::<(bool, bool, bool)>(),
    ) -> Plan {
        let seen = if process == BARE { Seen::Socket } else { seen };
        let is_late = matches!(seen, Seen::Late | Seen::LateApart);
        Plan {
            seen, process, began, duration, delta, late,
            role: if server { Role::Server } else { Role::Client },
            // Where the socket is not seen either, a name alone is not trusted.
            hello: hello || matches!(seen, Seen::Apart | Seen::Library) || is_late,
            completed: completed && !is_late,
            closes: closes || is_late,
        }
    }
}

impl Plan {
    fn events(&self, id: ConnectionId) -> Vec<(u64, Evidence)> {
        let ended = self.began + self.duration;
        let mut events = Vec::new();
        if self.hello {
            let chunks = fixture::read(FULL).chunks;
            for (n, (direction, bytes)) in chunks.into_iter().take(2).enumerate() {
                let at = self.began + 500 * (1 + n as u64);
                events.push((at, chunk(self.process, id, direction, 0, bytes)));
            }
        }
        let make = |source: Source, at: u64, connection| {
            let base = match source {
                Source::Library => library(connection),
                Source::Socket => Handshake {
                    named: matches!(self.seen, Seen::Both | Seen::Late),
                    ..socket(id)
                },
            };
            let handshake = Handshake {
                process: self.process,
                role: self.role,
                outcome: if self.completed {
                    Outcome::Completed
                } else {
                    Outcome::Abandoned
                },
                duration: micros(at - self.began),
                // Tells which one it is of.
                comm: id.to_string(),
                ..base
            };
            (at, Evidence::Handshake(Box::new(handshake)))
        };
        if self.seen != Seen::Library {
            events.push(make(Source::Socket, ended, None));
        }
        let near = ended + self.delta - 300;
        let late = ended + 2_000 + self.late;
        match self.seen {
            Seen::Both | Seen::Library => events.push(make(Source::Library, near, Some(id))),
            Seen::Apart => events.push(make(Source::Library, near, None)),
            Seen::Late => events.push(make(Source::Library, late, Some(id))),
            Seen::LateApart => events.push(make(Source::Library, late, None)),
            Seen::Socket => {}
        }
        if self.closes {
            events.push((ended + 1_000, Evidence::Closed(Box::new(closed(id)))));
        }
        events
    }
}

proptest! {
    #[test]
    fn each_handshake_is_booked_exactly_once(plans in prop::collection::vec(any_plan(), 1..40)) {
        let numbered = plans.iter().enumerate();
        let mut events: Vec<_> = numbered.flat_map(|(n, plan)| plan.events(n as u64 + 1)).collect();
        events.sort_by_key(|(at, _)| *at);
        let mut bench = Bench::new();
        for (at, evidence) in events {
            let at = Duration::from_secs(100) + micros(at);
            let ready = bench.joiner.take(evidence, at, |pid| pid != BARE);
            bench.booked.extend(ready);
            bench.now = at;
        }
        bench.waits(Duration::from_secs(2)).assert_idle();
        for process in 1..4 {
            for role in [Role::Server, Role::Client] {
                let planned = plans.iter().filter(|plan| plan.process == process && plan.role == role);
                let booked = bench.handshakes().into_iter();
                let booked = booked.filter(|one| one.process == process && one.role == role);
                prop_assert_eq!(planned.count(), booked.count());
            }
        }
        // Where the connection is known, it is the right one.
        for (n, plan) in plans.iter().enumerate() {
            if plan.seen == Seen::Both && plan.completed {
                let name = (n + 1).to_string();
                let handshakes = bench.handshakes();
                let one = handshakes.iter().find(|one| one.comm == name).unwrap();
                prop_assert_eq!(one.source, Source::Library);
                prop_assert_eq!(one.hello.is_some(), plan.hello);
            }
        }
        // What was said is told once.
        let heard = plans.iter().filter(|plan| plan.hello).count();
        let told = bench.handshakes().iter().filter(|one| one.hello.is_some()).count();
        prop_assert_eq!(told, heard);
    }
}
