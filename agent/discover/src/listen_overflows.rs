//! Overflows of accept queues, as the kernel counts them for each network namespace.

use super::ProcRoot;
use tlsprof_common::Pid;

impl ProcRoot {
    /// Packets that were dropped for a full accept queue in the network namespace of a
    /// process, since that was made; None if it is gone or may not be read.
    pub fn listen_overflows(&self, pid: Pid) -> Option<u64> {
        parse(&self.read(pid, "net/netstat").ok()??)
    }
}

/// The number below `ListenOverflows` in /proc/net/netstat: for each group a line of
/// names, and one of values.
fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let names = lines.next()?.split_ascii_whitespace();
    let mut values = lines.next()?.split_ascii_whitespace().zip(names);
    let (value, _) = values.find(|(_, name)| *name == "ListenOverflows")?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_number_is_found_by_its_name() {
        let text = b"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 223 224\n\
                     IpExt: InNoRoutes\nIpExt: 0\n";
        assert_eq!(parse(text), Some(223));
    }

    #[test]
    fn other_text_has_none() {
        for text in [
            &b""[..],
            b"TcpExt: ListenOverflows\n",
            b"TcpExt: A\nTcpExt: 1\n",
            b"TcpExt: A ListenOverflows\nTcpExt: 1\n",
            b"TcpExt: ListenOverflows\nTcpExt: x\n",
            b"\xff",
        ] {
            assert_eq!(parse(text), None);
        }
    }
}
