//! The ports of services as long as a session goes on: read now and then, in a thread of
//! its own.
//!
//! With a million open files that takes half a second, in which evidence would be waiting.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tlsprof_common::Pid;
use tlsprof_common::causes::one_line;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_kernel::listeners::Listeners;

/// Time between two readings, at least.
const PERIOD: Duration = Duration::from_secs(5);
/// So many times as long as it took must pass before it is done again: it uses a fifth of a percent
/// of a CPU at most.
const REST: u32 = 500;

/// Where to read.
pub(super) enum Source {
    /// All processes.
    Kernel(Listeners),
    /// These processes, where the kernel does not tell.
    Proc(ProcRoot, Vec<Pid>),
}

impl Source {
    /// `listeners`: None where the kernel does not tell.
    pub(super) fn new(
        listeners: Option<Listeners>,
        proc: &ProcRoot,
        processes: impl Iterator<Item = Pid>,
    ) -> Self {
        match listeners {
            Some(listeners) => Self::Kernel(listeners),
            None => Self::Proc(proc.clone(), processes.collect()),
        }
    }

    fn read(self) -> ListeningPorts {
        match self {
            Self::Kernel(listeners) => {
                let read = listeners.read().inspect_err(|error| {
                    tracing::debug!(error = one_line(error), "listeners cannot be read");
                });
                ListeningPorts::new(read.unwrap_or_default())
            }
            Self::Proc(proc, processes) => ListeningPorts::read(&proc, processes),
        }
    }
}

/// What was read last, and the reading that is under way.
#[derive(Debug)]
pub(super) struct Listening {
    known: ListeningPorts,
    reading: Option<JoinHandle<(ListeningPorts, Duration)>>,
    next: Instant,
    news: bool,
    /// What is being read is out of date already.
    again: bool,
}

impl Listening {
    /// Reads at once.
    pub(super) fn new(source: Source) -> Self {
        Self {
            known: source.read(),
            reading: None,
            next: Instant::now(),
            news: false,
            again: false,
        }
    }

    /// Has them read again at once: it is known that something has changed.
    pub(super) fn hurry(&mut self) {
        self.next = Instant::now();
        self.again = self.reading.is_some();
    }

    /// Whether the ports were read again since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// What is known of all processes' ports.
    pub(super) const fn known(&self) -> &ListeningPorts {
        &self.known
    }

    /// Takes what was read, or begins to read again if it is time. Never waits.
    pub(super) fn turn(&mut self, source: impl FnOnce() -> Source) {
        match self.reading.take() {
            Some(reading) if !reading.is_finished() => self.reading = Some(reading),
            // An error: it panicked. What was known before is good enough.
            Some(reading) => {
                if let Ok((known, took)) = reading.join() {
                    self.finish(known, took);
                }
            }
            None if Instant::now() >= self.next => self.begin(source()),
            None => {}
        }
    }

    /// Reads at once. What is being read is older.
    pub(super) fn read_now(&mut self, source: Source) {
        self.reading = None;
        self.known = source.read();
    }

    fn finish(&mut self, known: ListeningPorts, took: Duration) {
        if !std::mem::take(&mut self.again) {
            self.next = Instant::now() + (took * REST).max(PERIOD);
        }
        self.news = true;
        self.known = known;
    }

    fn begin(&mut self, source: Source) {
        self.next = Instant::now() + PERIOD;
        let thread = thread::Builder::new().name("tlsprof-ports".to_owned());
        let reading = thread.spawn(move || {
            let began = Instant::now();
            (source.read(), began.elapsed())
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
        let own = std::process::id();
        let source = || Source::Proc(ProcRoot::default(), vec![own]);
        let mut listening = Listening::new(source());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let began = Instant::now();
        while !listening.known().of([own]).contains(&port) {
            assert!(began.elapsed() < Duration::from_secs(30));
            listening.turn(source);
            thread::yield_now();
        }
        // It rests now.
        listening.turn(|| unreachable!());
        assert!(listening.reading.is_none());
        listening.hurry();
        listening.turn(|| Source::Proc(ProcRoot::default(), Vec::new()));
        listening.read_now(source());
        listening.turn(|| unreachable!());
        assert!(listening.known().of([own]).contains(&port));
    }
}
