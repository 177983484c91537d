//! Where the figures of a service come from, and how far sources agree.

use crate::document::{Block, Tone};
use tlsprof_common::units::{counted, percent};
use tlsprof_report::model::{Service, Source};

/// In sentences; None where probes in the library are the only source.
pub(super) fn sources(service: &Service) -> Option<Block> {
    let mut sentences = Vec::new();
    let socket: u64 = service.socket_handshakes.iter().map(|one| one.count).sum();
    let offloaded: u64 = service
        .socket_handshakes
        .iter()
        .map(|one| one.offloaded)
        .sum();
    if service.source == Source::SocketCalls {
        sentences.push(
            "Source: socket calls. CPU time runs from the receipt of handshake bytes until the \
             thread does something else."
                .to_owned(),
        );
    } else if socket > 0 {
        let number = counted(socket, "handshake", "handshakes");
        sentences.push(format!(
            "{number} came from socket calls: the probed TLS library was not involved."
        ));
    }
    if offloaded > 0 {
        let number = counted(offloaded, "handshake", "handshakes");
        sentences.push(format!(
            "The CPU time of {number} is a lower bound: a different thread than the one that read the \
             socket answered, much later, so that other threads may have worked on it; or the TLS library \
             measured it, and its record was lost."
        ));
    }
    sentences.extend(estimates(service));
    let seen: u64 = service.agreement.iter().map(|one| one.handshakes).sum();
    let library: f64 = service
        .agreement
        .iter()
        .map(|one| one.library_cpu_seconds)
        .sum();
    if seen > 0 && library > 0.0 {
        let by_socket = service.agreement.iter().map(|one| one.socket_cpu_seconds);
        let number = counted(seen, "handshake", "handshakes");
        sentences.push(format!(
            "Both sources timed {number}; CPU time from sockets is {} of the library's.",
            percent(by_socket.sum::<f64>() / library)
        ));
    }
    (!sentences.is_empty()).then(|| Block::Marked(Tone::Soft, sentences.join(" ")))
}

/// What is estimated, to keep the budget.
fn estimates(service: &Service) -> Vec<String> {
    let mut sentences = Vec::new();
    let handshakes = service.estimated_handshakes.iter().map(|one| one.count);
    let handshakes: u64 = handshakes.sum();
    if handshakes > 0 {
        let number = counted(handshakes, "handshake is", "handshakes are");
        sentences.push(format!(
            "{number} estimated from those that were followed, to keep the budget."
        ));
    }
    let turns: u64 = service.estimated_turns.iter().map(|one| one.count).sum();
    if turns > 0 {
        let number = counted(turns, "turn is", "turns are");
        sentences.push(format!(
            "{number} estimated from those of connections that were followed, to keep the budget."
        ));
    }
    sentences
}
