//! What to change, in the words of the server at hand.
//!
//! A directive is a line or more to put into the server's configuration as it is, or a
//! setting by its place in the user interface. Where a server has none for it, or is not
//! known, the advice is general.

mod chain;
mod ciphers;
mod connections;
mod handshakes;
mod key_exchange;
mod others;
mod random;
mod refusal;
mod resumption;

use tlsprof_common::Role;

use super::cause::Cause;
use super::{Hybrid, Id, Server};

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The server that it is for.
    pub server: Server,
    /// The change in a sentence or two.
    pub change: &'static str,
    /// What to write, line by line; empty where there is nothing to write.
    pub directive: &'static str,
}

/// The change and what to write.
type Advice = (&'static str, &'static str);

/// The remedy for a finding on a service in that role.
pub fn remedy(id: Id, role: Role, (server, hybrid): (Server, Hybrid)) -> Remedy {
    let (change, directive) = match id {
        Id::SlowKeyExchange => key_exchange::slow(server, hybrid),
        Id::CostlyCertificate => handshakes::costly_certificate(server),
        Id::CostlyCipher => ciphers::costly(server),
        Id::CertificateVerification => handshakes::verification(server),
        Id::LongCertificateChain => chain::long(server),
        Id::PostQuantumCost => key_exchange::post_quantum(server),
        Id::ResumptionRefused => resumption::refused(server),
        Id::ResumptionNotOffered if role == Role::Client => resumption::as_client(server),
        Id::ResumptionNotOffered => resumption::not_offered(server),
        Id::ConnectionsClosedAfterNTurns => connections::limit(server),
        Id::KeepAliveOff => connections::keep_alive(server),
        Id::TimeWaitBuildUp => connections::time_wait(server),
        Id::UpstreamKeepAliveOff => connections::upstream(server),
        Id::EphemeralPorts => connections::ports(server),
        Id::ProcessPerConnection => others::process(server),
        Id::AcceptQueueOverflow => connections::accept_queue(server),
        Id::LockWait => others::lock(server),
        Id::DiskWait => others::disk(server),
        Id::RandomWait => random::blocking(server),
        Id::PipeWait => random::pipe(server),
        Id::HandshakeFailures => others::failures(server),
        Id::TlsIsNotTheBottleneck => others::elsewhere(server),
    };
    Remedy {
        server,
        change,
        directive,
    }
}

/// The remedy for sessions that a server refuses for that cause.
pub(super) fn refused_since(cause: Cause, server: Server) -> Remedy {
    let (change, directive) = refusal::since(cause, server);
    Remedy {
        server,
        change,
        directive,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use tlsprof_common::golden;

    fn roles(id: Id) -> &'static [Role] {
        match id {
            Id::ResumptionNotOffered => &[Role::Server, Role::Client],
            Id::UpstreamKeepAliveOff | Id::EphemeralPorts => &[Role::Client],
            _ => &[Role::Server],
        }
    }

    #[test]
    fn snapshot_of_all_remedies() {
        let mut text = String::new();
        for id in Id::ALL {
            for role in roles(id) {
                let _ = writeln!(text, "{} ({})", id.label(), role.label());
                for server in Server::ALL {
                    let remedy = remedy(id, *role, (server, Hybrid::Has));
                    let _ = writeln!(text, "  {}: {}", server.name(), remedy.change);
                    for line in remedy.directive.lines() {
                        let _ = writeln!(text, "      {line}");
                    }
                }
            }
        }
        golden::snapshot("remedies.txt", &text);
    }

    #[test]
    fn every_remedy_says_something() {
        for id in Id::ALL {
            for role in [Role::Server, Role::Client] {
                let servers = Server::ALL.into_iter();
                for server in servers.flat_map(|one| Hybrid::ALL.map(|hybrid| (one, hybrid))) {
                    let remedy = remedy(id, role, server);
                    assert!(remedy.change.ends_with('.'), "{id:?} {server:?}");
                    // Directives are shown with an indentation at 80 columns.
                    let wide = |line: &str| line.chars().count() > 72;
                    assert!(!remedy.directive.lines().any(wide), "{id:?} {server:?}");
                }
            }
        }
    }
}
