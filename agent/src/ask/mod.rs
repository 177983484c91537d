//! Asks TLS ports for the kind of key in their certificate. Only if the user
//! wants that.
//!
//! In TLS 1.3 the certificate is encrypted, so that socket calls do not show
//! with which kind of key a server signs. Where handshakes have shown that a
//! port speaks TLS 1.3, one connection of the agent's own learns it. [`ports`]
//! decides when, and what follows from the answers; a thread of its own makes the
//! connections ([`client`]), so that a slow server delays nobody.
//!
//! Only the kind of key is kept: no certificate, and no name in one.

mod client;
mod conclusion;
mod key;
pub(crate) mod own;
pub mod ports;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::{io, thread};

use client::Offer;
pub use conclusion::Finding;
use conclusion::{conclude, of_all};
use own::OwnConnections;

use tlsprof_common::Pid;
use tlsprof_common::privilege::{self, Kept};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::ports::{Listening, listening_addresses};

/// Most addresses of one port that are asked.
const MAX_ADDRESSES: usize = 4;
/// Questions that wait for the thread; [`ports`] asks few at once.
const QUEUE: usize = 16;

/// Which port to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Tells questions apart.
    pub number: u64,
    /// The TCP port.
    pub port: u16,
    /// The processes of the service.
    pub processes: Vec<Pid>,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Number of the question.
    pub number: u64,
    /// What was learned.
    pub(crate) finding: Finding,
    /// Connections that were made for it.
    pub connections: u32,
    /// Those of them that cannot be distinguished from connections of others, and count
    /// as such.
    pub counted: u32,
}

/// The thread that asks. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    own: Arc<OwnConnections>,
}

impl Asker {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn start(proc: ProcRoot) -> io::Result<Self> {
        let (questions, asked) = sync_channel::<Question>(QUEUE);
        let (answered, answers) = sync_channel(QUEUE);
        let own = Arc::new(OwnConnections::default());
        let registry = Arc::clone(&own);
        let work = move || {
            if let Err(error) = privilege::keep_only(Kept::default()) {
                tracing::warn!(%error, "the thread that connects to servers keeps its privileges");
            }
            for question in asked {
                if answered.send(answer(&question, &proc, &registry)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("tlsprof-ask".to_owned())
            .spawn(work)?;
        Ok(Self {
            questions,
            answers,
            own,
        })
    }

    /// Hands over a question. False if too many wait.
    pub(crate) fn ask(&self, question: Question) -> bool {
        self.questions.try_send(question).is_ok()
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// [`TryRecvError`]: none yet, or none any more.
    pub(crate) fn answer(&self) -> Result<Answer, TryRecvError> {
        self.answers.try_recv()
    }

    /// The connections that the thread made.
    pub(crate) fn own(&self) -> &OwnConnections {
        &self.own
    }
}

fn answer(question: &Question, proc: &ProcRoot, own: &OwnConnections) -> Answer {
    let mut answer = Answer {
        number: question.number,
        finding: Finding::Nothing(String::new()),
        connections: 0,
        counted: 0,
    };
    answer.finding = match listening_addresses(proc, &question.processes, question.port) {
        Listening::Elsewhere => {
            Finding::Nothing("it is in a different network namespace than tlsprof".to_owned())
        }
        Listening::Here(addresses) if addresses.is_empty() => {
            Finding::Nothing("no process of the service listens there".to_owned())
        }
        Listening::Here(addresses) if addresses.len() > MAX_ADDRESSES => Finding::Nothing(format!(
            "it listens on {} addresses, and tlsprof asks at most {MAX_ADDRESSES}",
            addresses.len()
        )),
        Listening::Here(addresses) => {
            let found = addresses
                .into_iter()
                .map(|address| ask_address(address, question.port, own, &mut answer));
            of_all(found.collect())
        }
    };
    answer
}

/// Asks twice: a server with two certificates chooses by what the client can
/// verify.
fn ask_address(address: IpAddr, port: u16, own: &OwnConnections, answer: &mut Answer) -> Finding {
    let to = SocketAddr::new(reachable(address), port);
    let mut ask = |offer| {
        answer.connections += 1;
        let found = client::ask(to, offer, own);
        if !found.excluded {
            answer.counted += 1;
        }
        found.key
    };
    let rsa = ask(Offer::Rsa);
    let other = ask(Offer::Other);
    conclude(rsa, other)
}

/// Where a listener on this address is reached from this host.
fn reachable(address: IpAddr) -> IpAddr {
    // A listener on `::` is there even where IPv6 is switched off on loopback,
    // and takes IPv4 then.
    let has_ipv6 = || UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    match address {
        IpAddr::V6(any) if any.is_unspecified() && has_ipv6() => Ipv6Addr::LOCALHOST.into(),
        any if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests;
