//! The ports of services as long as a session goes on: read now and then, in a thread of
//! its own.
//!
//! With 500 workers of an nginx that may take a second, in which evidence would be waiting.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tlsprof_discover::ProcRoot;
use tlsprof_discover::ports::{Life, ListeningPorts, PortReader};

/// Time between two readings, at least.
const PERIOD: Duration = Duration::from_secs(5);
/// So many times as long as it took must pass before it is done again: it may use half a
/// percent of a CPU, which it does only where processes come and go all the time.
const REST: u32 = 200;
/// The same for looking through all processes, known ones too.
const REST_OF_ALL: u32 = 2000;

/// What comes out of the thread.
#[derive(Debug)]
struct Reading {
    reader: PortReader,
    known: ListeningPorts,
    took: Duration,
}

/// What was read last, and the reading that is under way.
#[derive(Debug)]
pub(super) struct Listening {
    known: ListeningPorts,
    /// Empty while it is in the thread.
    reader: PortReader,
    reading: Option<JoinHandle<Reading>>,
    next: Instant,
    all_next: Instant,
    /// How long it takes to look through all processes.
    all_took: Duration,
    news: bool,
    /// What is being read is out of date already.
    again: bool,
}

impl Listening {
    /// `known` was read by that reader.
    pub(super) fn new(reader: PortReader, known: ListeningPorts, took: Duration) -> Self {
        let now = Instant::now();
        Self {
            known,
            reader,
            reading: None,
            next: now,
            all_next: now + (took * REST_OF_ALL).max(PERIOD),
            all_took: took,
            news: false,
            again: false,
        }
    }

    /// Has all processes read again at once: it is known that something has changed.
    pub(super) fn hurry(&mut self) {
        self.next = Instant::now();
        self.all_next = self.next;
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
    pub(super) fn turn(&mut self, proc: &ProcRoot, processes: impl Iterator<Item = Life>) {
        match self.reading.take() {
            Some(reading) if !reading.is_finished() => self.reading = Some(reading),
            Some(reading) => {
                // An error: it panicked. What was known before is good enough.
                if let Ok(read) = reading.join() {
                    self.finish(read);
                }
            }
            None if Instant::now() >= self.next => self.read(proc.clone(), processes.collect()),
            None => {}
        }
    }

    /// Reads what is new, at once.
    pub(super) fn read_now(&mut self, proc: &ProcRoot, processes: impl Iterator<Item = Life>) {
        if let Some(Ok(read)) = self.reading.take().map(JoinHandle::join) {
            self.finish(read);
        }
        self.known = self.reader.read(proc, processes);
    }

    fn finish(&mut self, read: Reading) {
        let now = Instant::now();
        if !std::mem::take(&mut self.again) {
            self.next = now + (read.took * REST).max(PERIOD);
        }
        self.news = true;
        self.all_took = self.all_took.max(read.took);
        (self.known, self.reader) = (read.known, read.reader);
    }

    fn read(&mut self, proc: ProcRoot, processes: Vec<Life>) {
        let now = Instant::now();
        self.next = now + PERIOD;
        let mut reader = std::mem::take(&mut self.reader);
        if now >= self.all_next {
            reader.forget();
            self.all_next = now + (self.all_took * REST_OF_ALL).max(PERIOD);
        }
        let thread = thread::Builder::new().name("tlsprof-ports".to_owned());
        let reading = thread.spawn(move || {
            let began = Instant::now();
            let known = reader.read(&proc, processes);
            let took = began.elapsed();
            Reading {
                reader,
                known,
                took,
            }
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
        let (reader, known) = (PortReader::default(), ListeningPorts::default());
        let mut listening = Listening::new(reader, known, Duration::ZERO);
        let began = Instant::now();
        while !listening.known().of([own]).contains(&port) {
            assert!(began.elapsed() < Duration::from_secs(30));
            listening.turn(&proc, [(own, 0)].into_iter());
            thread::yield_now();
        }
        // It rests now.
        listening.turn(&proc, [(own, 0)].into_iter());
        assert!(listening.reading.is_none());
    }
}
