//! The agent's own connections, so that they do not count as a service's.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use tlsprof_common::ConnectionId;
use tlsprof_kernel::sock_diag::SockDiag;

/// Most sockets that are remembered: those of some hours. Cookies grow, so that
/// the smallest is the oldest, but for the little that CPUs have in stock.
const MOST: usize = 1024;

/// Sockets of the agent's own connections, both ends.
#[derive(Debug, Default)]
pub(crate) struct OwnConnections(Mutex<BTreeSet<ConnectionId>>);

impl OwnConnections {
    /// Notes both sockets of a connection to this host. To be done before
    /// anything is sent on it: no evidence of it has come by then, but for that of
    /// a server that speaks first. False if the server's socket is not found.
    pub(super) fn note(&self, connection: &TcpStream) -> bool {
        let near = rustix::net::sockopt::socket_cookie(connection).ok();
        let ends = connection
            .local_addr()
            .ok()
            .zip(connection.peer_addr().ok());
        // The far socket is that between the same addresses, seen from there.
        let far = ends.and_then(|(near, far)| {
            let cookie = SockDiag::open().and_then(|diag| diag.cookie_of(far, near));
            cookie.ok().flatten()
        });
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(near.into_iter().chain(far));
        while known.len() > MOST {
            known.pop_first();
        }
        far.is_some()
    }

    /// Whether this is a socket of the agent's own connections.
    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::net::TcpListener;

    use super::*;

    #[test]
    fn both_ends_are_known_and_no_others() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue; // no IPv6 here
            };
            let own = OwnConnections::default();
            let mut to = listener.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip([127, 0, 0, 1].into());
            }
            let near = TcpStream::connect(to).unwrap();
            let other = TcpStream::connect(to).unwrap();
            assert!(own.note(&near), "{address}");
            let (far, _) = listener.accept().unwrap();
            let cookie = |socket: &TcpStream| rustix::net::sockopt::socket_cookie(socket).unwrap();
            assert!(own.contains(cookie(&near)) && own.contains(cookie(&far)));
            let (elsewhere, _) = listener.accept().unwrap();
            assert!(!own.contains(cookie(&other)) && !own.contains(cookie(&elsewhere)));
            assert!(!own.contains(0));
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let own = OwnConnections::default();
        own.0.lock().unwrap().extend(1..=(MOST as u64 + 9));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        own.note(&TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        assert_eq!(own.0.lock().unwrap().len(), MOST);
    }
}
