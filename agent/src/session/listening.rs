//! The ports of services as long as a session goes on: read now and then, in a thread of
//! its own.
//!
//! To tell who listens where, all open files of all processes are looked through. With
//! 500 workers of an nginx that takes a second, in which evidence would be waiting.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::discover::ProcRoot;
use crate::discover::ports::ListeningPorts;
use crate::evidence::Pid;

/// Time between two readings, at least.
const PERIOD: Duration = Duration::from_secs(5);
/// So many times as long as it took must pass before it is done again: it may use half a
/// percent of a CPU.
const REST: u32 = 200;

/// What was read last, and the reading that is under way.
#[derive(Debug)]
pub(super) struct Listening {
    known: ListeningPorts,
    reading: Option<JoinHandle<(ListeningPorts, Duration)>>,
    next: Instant,
}

impl Listening {
    pub(super) fn new(known: ListeningPorts) -> Self {
        Self {
            known,
            reading: None,
            next: Instant::now(),
        }
    }

    /// What is known of all processes' ports.
    pub(super) const fn known(&self) -> &ListeningPorts {
        &self.known
    }

    /// Takes what was read, or begins to read again if it is time. Never waits.
    pub(super) fn turn(&mut self, proc: &ProcRoot, processes: impl Iterator<Item = Pid>) {
        match self.reading.take() {
            Some(reading) if !reading.is_finished() => self.reading = Some(reading),
            Some(reading) => {
                // An error: it panicked. What was known before is good enough.
                if let Ok((known, took)) = reading.join() {
                    self.known = known;
                    self.next = Instant::now() + (took * REST).max(PERIOD);
                }
            }
            None if Instant::now() >= self.next => self.read(proc.clone(), processes.collect()),
            None => {}
        }
    }

    fn read(&mut self, proc: ProcRoot, processes: Vec<Pid>) {
        self.next = Instant::now() + PERIOD;
        let thread = thread::Builder::new().name("tlsprof-ports".to_owned());
        let reading = thread.spawn(move || {
            let began = Instant::now();
            let known = ListeningPorts::read(&proc, processes);
            (known, began.elapsed())
        });
        // Without a thread what is known gets older.
        self.reading = reading.ok();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_is_known_some_turns_later() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (proc, own) = (ProcRoot::default(), std::process::id());
        let mut listening = Listening::new(ListeningPorts::default());
        let began = Instant::now();
        while !listening.known().of([own]).contains(&port) {
            assert!(began.elapsed() < Duration::from_secs(30));
            listening.turn(&proc, [own].into_iter());
            thread::yield_now();
        }
        // It rests now.
        listening.turn(&proc, [own].into_iter());
        assert!(listening.reading.is_none());
    }
}
