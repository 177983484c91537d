//! TIME_WAIT sockets, as the kernel counts them for each network namespace.

use super::ProcRoot;
use tlsprof_common::Pid;

impl ProcRoot {
    /// TIME_WAIT sockets in the network namespace of a process, IPv4 and IPv6;
    /// None if it is gone or may not be read.
    pub fn time_wait_sockets(&self, pid: Pid) -> Option<u64> {
        parse(&self.read(pid, "net/sockstat").ok()??)
    }
}

/// The number after `tw` in the line `TCP:` of /proc/net/sockstat.
fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_number_is_found_by_its_name() {
        let text =
            b"sockets: used 10\nTCP: inuse 1 orphan 0 tw 11312 alloc 1 mem 65\nUDP: inuse 0\n";
        assert_eq!(parse(text), Some(11_312));
    }

    #[test]
    fn other_text_has_none() {
        for text in [&b""[..], b"TCP: inuse 1", b"TCP: tw", b"TCP: tw x", b"\xff"] {
            assert_eq!(parse(text), None);
        }
    }
}
