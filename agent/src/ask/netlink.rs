//! Asks the kernel for the cookie of a socket by its addresses (sock_diag(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};

use crate::evidence::ConnectionId;

// include/uapi/linux/netlink.h, sock_diag.h, inet_diag.h, net/tcp_states.h.
const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;
/// `nlmsghdr` and `inet_diag_req_v2`.
const REQUEST_LEN: u32 = 72;
/// Where `nlmsg_type`, `idiag_state` and `idiag_cookie` are in an answer.
const KIND: usize = 4;
const STATE: usize = 17;
const COOKIE: usize = 60;
/// The kernel answers at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// The cookie of the TCP socket of this network namespace with these addresses,
/// which is also that of the socket into which a half-open one grows. None if
/// there is none.
///
/// # Errors
/// What the system says: netlink may be forbidden, or not know TCP sockets.
pub(super) fn cookie_of(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<ConnectionId>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    send(&socket, &request(local, remote), SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    Ok(answer.get(..length).and_then(cookie_in))
}

fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = if local.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut request = Vec::with_capacity(REQUEST_LEN as usize);
    request.extend(REQUEST_LEN.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]); // sequence number, port
    request.extend([family, IPPROTO_TCP, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes()); // any state
    request.extend(local.port().to_be_bytes());
    request.extend(remote.port().to_be_bytes());
    request.extend(words(local.ip()));
    request.extend(words(remote.ip()));
    request.extend([0; 4]); // any interface
    request.extend([0xff; 8]); // any cookie
    request
}

/// An address in the four words that there are for it.
fn words(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
    }
}

/// The cookie in an answer. Where there is no such connection the kernel gives the
/// listening socket, or an error, which is a message of another kind.
fn cookie_in(answer: &[u8]) -> Option<ConnectionId> {
    let kind = answer.get(KIND..)?.first_chunk::<2>()?;
    if u16::from_ne_bytes(*kind) != SOCK_DIAG_BY_FAMILY || *answer.get(STATE)? == TCP_LISTEN {
        return None;
    }
    let cookie = answer.get(COOKIE..)?;
    let low = u32::from_ne_bytes(*cookie.first_chunk()?);
    let high = u32::from_ne_bytes(*cookie.get(4..)?.first_chunk()?);
    Some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_listener_is_no_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(cookie_of(address, nobody).unwrap(), None);
        drop(listener);
        assert_eq!(cookie_of(address, nobody).unwrap(), None);
    }

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(request(address, address).len(), REQUEST_LEN as usize);
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(answer: Vec<u8>) {
            cookie_in(&answer);
        }
    }
}
