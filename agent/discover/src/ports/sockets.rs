//! Listening sockets, as the kernel lists them.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};

use crate::ProcRoot;
use tlsprof_common::Pid;

/// `TCP_LISTEN` of include/net/tcp_states.h.
const LISTEN: &str = "0A";
/// The kernel formats as many lines at once as it is asked for, from a page on.
const PAGE: usize = 4096;

/// Listening sockets: inode and port.
pub(super) type Sockets = HashMap<u64, u16>;

/// A line of /proc/net/tcp.
enum Line {
    Listener(u64, u16),
    Connection,
    /// The heading, or of another form.
    Other,
}

/// The listening sockets in /proc/net/tcp or tcp6 (proc_pid_net(5)), of which no more is read than it
/// takes: the kernel lists them before the connections (`tcp_get_idx` in net/ipv4/tcp_ipv4.c), of
/// which there may be 100,000. Lines of another form are skipped.
///
/// # Errors
///
/// Those of reading.
pub(super) fn parse_listeners(mut file: impl BufRead) -> io::Result<Sockets> {
    let mut listeners = Sockets::new();
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        match parse_line(&line) {
            Line::Listener(socket, port) => {
                listeners.insert(socket, port);
            }
            Line::Connection => break,
            Line::Other => {}
        }
        line.clear();
    }
    Ok(listeners)
}

fn parse_line(line: &[u8]) -> Line {
    let fields = std::str::from_utf8(line).unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace();
    let (local, state) = (fields.nth(1), fields.nth(1));
    let Some((_, port)) = local.and_then(|local| local.rsplit_once(':')) else {
        return Line::Other;
    };
    if state != Some(LISTEN) {
        return Line::Connection;
    }
    let port = u16::from_str_radix(port, 16).ok();
    let socket = fields.nth(5).and_then(|inode| inode.parse().ok());
    match (socket, port) {
        (Some(socket), Some(port)) => Line::Listener(socket, port),
        _ => Line::Other,
    }
}

/// Those of the process's network namespace; None if the process is gone.
pub(super) fn listening_sockets(proc: &ProcRoot, pid: Pid) -> Option<Sockets> {
    let read =
        |name| parse_listeners(BufReader::with_capacity(PAGE, proc.open(pid, name).ok()??)).ok();
    let mut listeners = read("net/tcp")?;
    // Not there when IPv6 is switched off.
    listeners.extend(read("net/tcp6").unwrap_or_default());
    Some(listeners)
}
