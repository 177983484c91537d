//! Accept queues of listening sockets: how full they are, and which connections the
//! kernel dropped because they were.

mod overflows;

pub use overflows::Overflows;

use tlsprof_kernel::sock_diag::ListeningSocket;

/// How full the accept queue of one listening socket is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Connections that wait to be accepted.
    pub length: u32,
    /// How many may wait; the kernel lets one more in.
    pub limit: u32,
}

impl Queue {
    /// The one of which a greater share is taken; among equals the longer one.
    #[must_use]
    pub fn fuller(self, other: Self) -> Self {
        let share = |one: Self, of: Self| u64::from(one.length) * (u64::from(of.limit) + 1);
        let order = share(self, other).cmp(&share(other, self));
        let length = || self.length.cmp(&other.length);
        let limit = || self.limit.cmp(&other.limit);
        if order.then_with(length).then_with(limit).is_lt() {
            other
        } else {
            self
        }
    }
}

impl From<&ListeningSocket> for Queue {
    fn from(socket: &ListeningSocket) -> Self {
        Self {
            length: socket.length,
            limit: socket.limit,
        }
    }
}

/// The accept queues of one service at one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptQueues {
    /// Listening sockets.
    pub listeners: u32,
    /// The fullest of their queues.
    pub fullest: Queue,
    /// Packets that were dropped for a full queue since the last reading.
    pub overflows: u64,
}

impl AcceptQueues {
    /// Adds one listening socket.
    pub fn add(&mut self, queue: Queue, overflows: u64) {
        self.fullest = if self.listeners == 0 {
            queue
        } else {
            self.fullest.fuller(queue)
        };
        self.listeners += 1;
        self.overflows += overflows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn queue(length: u32, limit: u32) -> Queue {
        Queue { length, limit }
    }

    #[test]
    fn a_full_short_queue_is_fuller_than_a_long_one_with_room() {
        assert_eq!(queue(2, 1).fuller(queue(100, 4096)), queue(2, 1));
        assert_eq!(queue(100, 4096).fuller(queue(2, 1)), queue(2, 1));
        assert_eq!(queue(0, 1).fuller(queue(0, 4096)), queue(0, 4096));
        // listen(fd, 0) lets one connection wait.
        assert_eq!(queue(0, 0).fuller(queue(1, 4096)), queue(1, 4096));
        let longest = queue(u32::MAX, u32::MAX);
        assert_eq!(longest.fuller(longest), longest);
    }

    #[test]
    fn a_service_shows_the_fullest_of_its_queues_and_the_sum_of_overflows() {
        let mut queues = AcceptQueues::default();
        for (one, overflows) in [(queue(0, 128), 0), (queue(9, 8), 4), (queue(20, 128), 3)] {
            queues.add(one, overflows);
        }
        assert_eq!(
            (queues.listeners, queues.fullest, queues.overflows),
            (3, queue(9, 8), 7)
        );
    }
}
