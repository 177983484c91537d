//! The listening socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind as bind_socket, listen};
use rustix::net::{socket_with, sockopt};

/// Connections that wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;

/// Listens at that address. `[::]` is all addresses of the host: also those of IPv4, whatever
/// `net.ipv6.bindv6only` is, and where the kernel has no IPv6, those of IPv4 alone.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    bind_by(address, dual_stack)
}

fn bind_by(
    address: SocketAddr,
    dual_stack: impl Fn(SocketAddr) -> Result<TcpListener, Errno>,
) -> io::Result<TcpListener> {
    if !(address.is_ipv6() && address.ip().is_unspecified()) {
        return TcpListener::bind(address);
    }
    match dual_stack(address) {
        Err(Errno::AFNOSUPPORT) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())),
        other => other.map_err(io::Error::from),
    }
}

fn dual_stack(address: SocketAddr) -> Result<TcpListener, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    // A restarted agent does not wait for the TIME_WAIT of the one before.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind_socket(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::net::{Ipv6Addr, TcpStream};

    use super::*;

    const EVERYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

    fn answers_ipv4(listener: &TcpListener) -> bool {
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    }

    #[test]
    fn all_addresses_are_those_of_ipv4_too() {
        let listener = bind(EVERYWHERE).unwrap();
        assert!(answers_ipv4(&listener));
        if listener.local_addr().unwrap().is_ipv6() {
            assert!(!sockopt::ipv6_v6only(&listener).unwrap());
        }
    }

    /// As with `ipv6.disable=1` on the kernel's command line.
    #[test]
    fn without_ipv6_it_listens_on_ipv4() {
        let listener = bind_by(EVERYWHERE, |_| Err(Errno::AFNOSUPPORT)).unwrap();
        assert!(listener.local_addr().unwrap().is_ipv4());
        assert!(answers_ipv4(&listener));
    }

    #[test]
    fn an_address_in_use_stays_an_error() {
        let error = bind_by(EVERYWHERE, |_| Err(Errno::ADDRINUSE)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let loopback = bind_by(([127, 0, 0, 1], 0).into(), |_| Err(Errno::INVAL));
        assert!(loopback.unwrap().local_addr().unwrap().ip().is_loopback());
    }
}
