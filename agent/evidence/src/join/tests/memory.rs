//! A client over memory that breaks off: its socket handshake is over when it ends the
//! connection, its library's when the object is freed, before or long after.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct BrokenOff {
    /// When its hello is made, sent and the connection ended, in µs.
    made: u64,
    sent_after: u64,
    socket: u64,
    /// When the object is freed, in µs after the hello was sent.
    freed_after: u64,
    /// The bytes are sent without a library.
    garbage: bool,
}

prop_compose! {
    fn broken_off()(
        made in 0_u64..20_000,
        sent_after in 20_u64..80,
        // The client ends the connection at once, or after the server's answer.
        socket in prop_oneof![2_u64..6, 500_u64..15_000],
        freed_after in 1_u64..30_000,
        garbage in prop::bool::weighted(0.1),
    ) -> BrokenOff {
        BrokenOff { made, sent_after, socket, freed_after, garbage }
    }
}

impl BrokenOff {
    fn events(&self, id: ConnectionId) -> Vec<(u64, Evidence)> {
        let sent = self.made + self.sent_after;
        let freed = sent + self.freed_after;
        let gone = |began: u64, ended: u64, handshake| {
            let handshake = Handshake {
                role: Role::Client,
                outcome: Outcome::Abandoned,
                duration: micros(ended - began),
                ..handshake
            };
            (ended, Evidence::Handshake(Box::new(handshake)))
        };
        let named = Handshake {
            named: !self.garbage,
            ..socket(id)
        };
        let mut events = vec![gone(sent, sent + self.socket, named)];
        if !self.garbage {
            events.push(gone(self.made, freed, library(Some(id))));
        }
        let (direction, hello) = fixture::read(FULL).chunks.swap_remove(0);
        events.push((sent, chunk(PROBED, id, direction, 0, hello)));
        let closes = freed.max(sent + self.socket) + 10;
        events.push((closes, Evidence::Closed(Box::new(closed(id)))));
        events
    }
}

proptest! {
    #[test]
    fn hellos_broken_off_in_memory_are_counted_once(
        plans in prop::collection::vec(broken_off(), 1..60)
    ) {
        let numbered = (1..).zip(&plans);
        let mut events: Vec<_> = numbered.flat_map(|(id, plan)| plan.events(id)).collect();
        events.sort_by_key(|(at, _)| *at);
        let mut bench = Bench::new();
        for (at, evidence) in events {
            bench.now = Duration::from_secs(100) + micros(at);
            let ready = bench.joiner.take(evidence, bench.now, |_| true);
            bench.booked.extend(ready);
        }
        bench.waits(Duration::from_secs(2)).assert_idle();
        let mut booked: Vec<_> = bench
            .handshakes()
            .iter()
            .map(|one| (one.connection, one.source, one.hello.is_some()))
            .collect();
        booked.sort();
        let planned: Vec<_> = (1..)
            .zip(&plans)
            .map(|(id, plan)| {
                let source = if plan.garbage { Source::Socket } else { Source::Library };
                (Some(id), source, true)
            })
            .collect();
        prop_assert_eq!(booked, planned);
    }
}
