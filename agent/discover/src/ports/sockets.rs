//! Listening sockets, as the kernel lists them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ProcRoot;
use tlsprof_common::Pid;

/// `TCP_LISTEN` of include/net/tcp_states.h.
const LISTEN: &str = "0A";

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Inode of the socket.
    pub socket: u64,
    /// Local address; unspecified for a socket that listens on all.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// The listening sockets in the text of /proc/net/tcp or tcp6 (proc_pid_net(5)).
/// Connections and lines of another form are skipped.
pub fn parse_listeners(text: &[u8]) -> Vec<Listener> {
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Listener> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listener {
        port,
        address: parse_address(address)?,
        socket: fields.nth(5)?.parse().ok()?,
    })
}

/// An address as one or four words of 32 bits, each printed in the byte order of
/// the host.
pub(super) fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()?;
        // In memory it is in the order of the network.
        Some(u32::from_be_bytes(word.to_ne_bytes()))
    };
    match text.len() {
        8 => Some(Ipv4Addr::from_bits(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bits = words
                .iter()
                .fold(0, |bits, word| bits << 32 | u128::from(*word));
            Some(Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

/// Listening sockets of the process's network namespace, by inode; None if the
/// process is gone.
pub(super) fn listening_sockets(proc: &ProcRoot, pid: Pid) -> Option<HashMap<u64, u16>> {
    let listeners = listeners(proc, pid)?.into_iter();
    Some(
        listeners
            .map(|listener| (listener.socket, listener.port))
            .collect(),
    )
}

pub(super) fn listeners(proc: &ProcRoot, pid: Pid) -> Option<Vec<Listener>> {
    let mut text = proc.read(pid, "net/tcp").ok()??;
    // Not there when IPv6 is switched off.
    text.extend(
        proc.read(pid, "net/tcp6")
            .ok()
            .flatten()
            .unwrap_or_default(),
    );
    Some(parse_listeners(&text))
}
