//! TCP sockets as the kernel lists them on request: sock_diag(7).
//!
//! A request is answered at once. What is listed are the sockets of one network
//! namespace: that of the thread which opened the channel.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;
use std::{io, thread};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The kernel answers at once.
const PATIENCE: Duration = Duration::from_secs(1);
/// The kernel fills at most 32 KiB at once (net/netlink/af_netlink.c).
const BUFFER: usize = 32 * 1024;

/// A TCP socket in state LISTEN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Tells sockets of this host apart; never reused.
    pub cookie: u64,
    /// Its number among files, as in the links of /proc/PID/fd.
    pub inode: u64,
    /// Connections that wait to be accepted.
    pub length: u32,
    /// How many may wait: the smaller of the backlog that was given to listen(2) and
    /// `net.core.somaxconn`. The kernel lets one more in.
    pub limit: u32,
    /// Packets that it has dropped since it was made, for whatever reason; wraps.
    pub drops: u32,
}

/// A channel to the kernel for one network namespace, which it keeps in being.
#[derive(Debug)]
pub struct SockDiag(OwnedFd);

impl SockDiag {
    /// For the network namespace of this thread.
    ///
    /// # Errors
    /// What the system says: netlink may be forbidden.
    pub fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// For the network namespace of that file, a /proc/PID/ns/net. A thread of its own
    /// goes there and ends: only what it opened is left.
    ///
    /// # Errors
    /// What the system says: without CAP_SYS_ADMIN no thread may change its namespace.
    pub fn open_in(namespace: BorrowedFd<'_>) -> io::Result<Self> {
        thread::scope(|scope| {
            let there = thread::Builder::new().name("tlsprof-netns".to_owned());
            let opened = there.spawn_scoped(scope, || {
                move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
                Self::open()
            })?;
            let panicked = |_| {
                Err(io::Error::other(
                    "the thread for a network namespace has ended",
                ))
            };
            opened.join().unwrap_or_else(panicked)
        })
    }

    /// All listening TCP sockets of the namespace, IPv4 and IPv6.
    ///
    /// # Errors
    /// What the system says. The kernel may list no TCP sockets (module tcp_diag).
    pub fn listeners(&self) -> io::Result<Vec<ListeningSocket>> {
        let mut found = Vec::new();
        for (family, any) in [
            (AF_INET, SocketId::new_v4()),
            (AF_INET6, SocketId::new_v6()),
        ] {
            self.ask(listeners_of(family, any))?;
            self.collect(&mut found)?;
        }
        Ok(found)
    }

    fn ask(&self, mut message: NetlinkMessage<SockDiagMessage>) -> io::Result<()> {
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(&self.0, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// Receives the answers up to the last.
    fn collect(&self, found: &mut Vec<ListeningSocket>) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let (length, _) = recv(&self.0, buffer.as_mut_slice(), RecvFlags::empty())?;
            for answer in answers(buffer.get(..length).unwrap_or_default()) {
                match answer {
                    Answer::Socket(socket) => found.push(listening(&socket)),
                    Answer::End => return Ok(()),
                    Answer::Error(error) => return Err(error),
                }
            }
        }
    }
}

fn listeners_of(family: u8, socket_id: SocketId) -> NetlinkMessage<SockDiagMessage> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::SKMEMINFO,
        states: StateFlags::LISTEN,
        socket_id,
    };
    NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into())
}

/// One message of the kernel.
enum Answer {
    Socket(Box<InetResponse>),
    End,
    Error(io::Error),
}

/// The messages in what was received; what cannot be read is an error, and the last.
fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(bytes);
        let length = message.as_ref().map_or(0, |message| message.header.length);
        // Messages begin at multiples of four (`NLMSG_ALIGN`).
        let next = usize::try_from(length)
            .ok()
            .map(|it| it.next_multiple_of(4));
        bytes = next
            .filter(|next| *next > 0)
            .and_then(|next| bytes.get(next..))
            .unwrap_or_default();
        Some(match message.map(|message| message.payload) {
            Ok(NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(socket))) => {
                Answer::Socket(socket)
            }
            Ok(NetlinkPayload::Error(error)) if error.code.is_some() => {
                Answer::Error(error.to_io())
            }
            Ok(NetlinkPayload::Error(_) | NetlinkPayload::Done(_)) => Answer::End,
            Ok(_) => Answer::Error(io::ErrorKind::InvalidData.into()),
            Err(error) => Answer::Error(io::Error::other(error.to_string())),
        })
    })
}

/// The kernel gives it as two words, the low one first (sock_diag_save_cookie()).
fn cookie(socket: &InetResponse) -> u64 {
    let [a, b, c, d, e, f, g, h] = socket.header.socket_id.cookie;
    let low = u32::from_ne_bytes([a, b, c, d]);
    let high = u32::from_ne_bytes([e, f, g, h]);
    u64::from(high) << 32 | u64::from(low)
}

fn listening(socket: &InetResponse) -> ListeningSocket {
    let memory = socket.nlas.iter().find_map(|attribute| match attribute {
        Nla::MemInfo(memory) => Some(memory.drops),
        _ => None,
    });
    ListeningSocket {
        cookie: cookie(socket),
        inode: socket.header.inode.into(),
        length: socket.header.recv_queue,
        limit: socket.header.send_queue,
        drops: memory.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_waits_to_be_accepted_is_seen() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue; // no IPv6 here
            };
            let cookie = rustix::net::sockopt::socket_cookie(&listener).unwrap();
            let to = listener.local_addr().unwrap();
            let waiting = [0, 1, 2].map(|_| TcpStream::connect(to).unwrap());
            let listeners = SockDiag::open().unwrap().listeners().unwrap();
            let ours = listeners.iter().find(|one| one.cookie == cookie).unwrap();
            assert_eq!((ours.length, ours.drops), (3, 0), "{address}");
            assert!(ours.limit >= 3);
            drop(waiting);
        }
    }

    #[test]
    fn many_listeners_come_in_several_messages() {
        let ours: Vec<TcpListener> = (0..500)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let listeners = SockDiag::open().unwrap().listeners().unwrap();
        for listener in &ours {
            let cookie = rustix::net::sockopt::socket_cookie(listener).unwrap();
            let found = listeners.iter().filter(|one| one.cookie == cookie);
            assert_eq!(found.count(), 1);
        }
    }

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert!(SockDiag::open_in(file.as_fd()).is_err());
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(answer: Vec<u8>) {
            answers(&answer).for_each(drop);
        }
    }
}
