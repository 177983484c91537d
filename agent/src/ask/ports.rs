//! Which ports are asked when, and what follows for handshakes. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::{Answer, Finding};
use tlsprof_common::Pid;

/// A port is asked again when its answer is so old: certificates are renewed.
pub(crate) const RENEWAL: Duration = Duration::from_secs(3600);
/// A service that began anew may have another certificate; its port is asked
/// again, but no sooner than this.
pub(crate) const AFRESH: Duration = Duration::from_secs(60);
/// Most ports that are asked in [`AFRESH`].
const MOST_AT_ONCE: usize = 6;
/// Most ports that are known; of further ones nothing is learned.
const MOST_PORTS: usize = 256;

/// The TLS ports of the services, as handshakes show them, with their answers.
#[derive(Debug, Default)]
pub struct Ports {
    known: BTreeMap<(String, u16), Port>,
    asked: VecDeque<Duration>,
    numbers: u64,
}

#[derive(Debug, Default)]
struct Port {
    /// A handshake has come whose signature is not known, and it is time to ask.
    wanted: bool,
    /// When it was asked last.
    asked: Option<Duration>,
    /// Number of the question that is not answered yet.
    waiting: Option<u64>,
    learned: Option<Learned>,
    /// The process by which a restart of the service is detected.
    main: Option<Pid>,
}

#[derive(Debug)]
struct Learned {
    answer: Answer,
    at: Timestamp,
}

impl Port {
    fn is_due(&self, now: Duration) -> bool {
        let pause = match self.learned {
            Some(_) => RENEWAL,
            None => AFRESH,
        };
        self.waiting.is_none() && self.asked.is_none_or(|asked| asked + pause <= now)
    }
}

impl Ports {
    /// Takes note of a handshake whose signature is not known.
    pub(crate) fn seen(&mut self, service: &str, port: u16, now: Duration) {
        let key = (service.to_owned(), port);
        if self.known.len() >= MOST_PORTS && !self.known.contains_key(&key) {
            return;
        }
        let port = self.known.entry(key).or_default();
        port.wanted = port.wanted || port.is_due(now);
    }

    /// Tells the main process of a service, the one that lives longest. When it is
    /// another than before, what was learned holds no more.
    pub(crate) fn main_process(&mut self, service: &str, main: Pid) {
        for port in self.of(service) {
            if port.main.replace(main).is_some_and(|known| known != main) {
                port.learned = None;
                port.waiting = None;
            }
        }
    }

    /// The next port to ask, with its service and the number of the question.
    pub(crate) fn next(&mut self, now: Duration) -> Option<(String, u16, u64)> {
        while self.asked.front().is_some_and(|at| *at + AFRESH <= now) {
            self.asked.pop_front();
        }
        if self.asked.len() >= MOST_AT_ONCE {
            return None;
        }
        let mut wanted = self.known.iter_mut().filter(|(_, port)| port.wanted);
        let (key, port) = wanted.next()?;
        self.numbers += 1;
        self.asked.push_back(now);
        port.wanted = false;
        port.asked = Some(now);
        port.waiting = Some(self.numbers);
        Some((key.0.clone(), key.1, self.numbers))
    }

    /// Takes an answer, and gives the note on it. One to a service that began anew
    /// in the meantime is dropped.
    pub(crate) fn answered(&mut self, answer: Answer, at: Timestamp) -> Option<String> {
        let asked = |(_, port): &(_, &mut Port)| port.waiting == Some(answer.number);
        let ((service, number), port) = self.known.iter_mut().find(asked)?;
        port.waiting = None;
        let learned = port.learned.insert(Learned { answer, at });
        Some(note(service, *number, learned))
    }

    /// The kind of key of a service's port. Where the port of a handshake is not
    /// known, only if all TLS ports of the service that are known have the same.
    pub fn signature(&self, service: &str, port: Option<u16>) -> Option<&'static str> {
        let from = (service.to_owned(), port.unwrap_or(0));
        let to = (service.to_owned(), port.unwrap_or(u16::MAX));
        let mut kinds = self.known.range(from..=to).map(|(_, port)| {
            let finding = &port.learned.as_ref()?.answer.finding;
            match finding {
                Finding::Key(kind) => Some(*kind),
                _ => None,
            }
        });
        let first = kinds.next()??;
        kinds.all(|kind| kind == Some(first)).then_some(first)
    }

    /// What a reader must know: for each port that was asked, what was learned and
    /// when.
    pub fn notes(&self) -> Vec<String> {
        let learned = self.known.iter().filter_map(|((service, port), state)| {
            let learned = state.learned.as_ref()?;
            Some(note(service, *port, learned))
        });
        learned.collect()
    }

    fn of(&mut self, service: &str) -> impl Iterator<Item = &mut Port> {
        let range = (service.to_owned(), 0)..=(service.to_owned(), u16::MAX);
        self.known.range_mut(range).map(|(_, port)| port)
    }
}

fn note(service: &str, port: u16, learned: &Learned) -> String {
    let Answer {
        finding,
        connections,
        counted,
        ..
    } = &learned.answer;
    let at = format!("{:.0}", learned.at);
    let mut text = match finding {
        Finding::Key(kind) => format!(
            "TLS 1.3 encrypts certificates. tlsprof connected to {service} on port {port} at \
             {at} and learned its signature, {kind}, which handshakes have from then on. The \
             certificate is the one for clients without SNI; those for other names may have \
             another type of key."
        ),
        Finding::Ambiguous(kinds) => {
            let kinds: Vec<&str> = kinds.iter().copied().collect();
            format!(
                "TLS 1.3 encrypts certificates. tlsprof connected to {service} on port {port} at \
                 {at}: it has keys of several types ({}). Which one a handshake uses depends on \
                 the client, so signature stays unknown.",
                kinds.join(", ")
            )
        }
        Finding::Nothing(reason) => format!(
            "TLS 1.3 encrypts certificates, and tlsprof could not learn the key type of \
             {service} on port {port} (tried at {at}): {reason}. signature stays unknown."
        ),
    };
    if *counted > 0 {
        text += &format!(
            " {counted} of its {connections} connections could not be distinguished from others, \
             and count as connections and handshakes of the service."
        );
    }
    text
}

#[cfg(test)]
mod tests;
