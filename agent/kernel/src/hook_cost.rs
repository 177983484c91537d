//! The overhead of a hook on a socket call that moves no data, calibrated on this machine. The
//! kernel's statistics of a program do not include the way to it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SocketType, recv, socket};

use super::least_time::least_time;

const ROUNDS: u32 = 15;

/// Reads from a TCP socket that is not connected: they fail at once, after all that leads
/// to the hooks, and have nothing to do with any connection.
pub(super) struct FailingReads {
    socket: Option<OwnedFd>,
}

impl FailingReads {
    /// Without a socket, as where there is no IPv4, all of its times are 0.
    pub(super) fn new() -> Self {
        Self {
            socket: socket(AddressFamily::INET, SocketType::STREAM, None).ok(),
        }
    }

    /// The time of one read.
    pub(super) fn least(&self) -> Duration {
        let Some(socket) = &self.socket else {
            return Duration::ZERO;
        };
        least_time(ROUNDS, || {
            let _not_connected = recv(socket, &mut [0_u8; 1], RecvFlags::DONTWAIT);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_fails_takes_time() {
        let least = FailingReads::new().least();
        assert!(
            least > Duration::ZERO && least < Duration::from_millis(1),
            "{least:?}"
        );
    }
}
