//! UDP ports that processes have sockets on: QUIC, where they are TLS ports too.

use std::collections::{BTreeSet, HashMap};

use crate::ProcRoot;
use tlsprof_common::Pid;

/// State of a UDP socket that is connected to nobody: `TCP_CLOSE` of
/// include/net/tcp_states.h.
const UNCONNECTED: &str = "07";
/// Processes of a service that are looked through: workers share the sockets, or have their own
/// on the same ports.
const PROCESSES: usize = 4;

/// The ports of unconnected UDP sockets of a service's processes.
pub fn udp_ports(proc: &ProcRoot, pids: impl IntoIterator<Item = Pid>) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    for pid in pids.into_iter().take(PROCESSES) {
        let tables = ["net/udp", "net/udp6"].map(|name| proc.read(pid, name).ok().flatten());
        let bound: HashMap<u64, u16> = tables
            .iter()
            .flatten()
            .flat_map(|text| text.split(|&byte| byte == b'\n'))
            .filter_map(socket)
            .collect();
        if !bound.is_empty() {
            let held = proc.sockets(pid).unwrap_or_default();
            ports.extend(held.iter().filter_map(|socket| bound.get(socket)));
        }
    }
    ports
}

/// Inode and local port in a line of /proc/net/udp (proc_pid_net(5)).
fn socket(line: &[u8]) -> Option<(u64, u16)> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != UNCONNECTED {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((fields.nth(5)?.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref
  1: 00000000:01BB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 901 2 0 0
  2: 0100007F:A000 0100007F:0035 01 00000000:00000000 00:00000000 00000000     0        0 902 2 0 0
  3: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 903 2 0 0
";

    #[test]
    fn only_unconnected_sockets_of_the_process_itself_count() {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("10");
        fs::create_dir_all(process.join("net")).unwrap();
        fs::create_dir_all(process.join("fd")).unwrap();
        fs::write(process.join("net/udp"), TABLE).unwrap();
        for (fd, inode) in [(3, 901), (4, 902)] {
            symlink(
                format!("socket:[{inode}]"),
                process.join(format!("fd/{fd}")),
            )
            .unwrap();
        }
        let ports = udp_ports(&ProcRoot::new(tree.path()), [10, 11]);
        assert_eq!(ports, BTreeSet::from([443]));
    }
}
