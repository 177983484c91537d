//! Whose CPU time is read when. A reading takes some 10 us: of hundreds of workers, most have
//! not run since the last one, or so little that they may wait. Who did a handshake may not: the
//! CPU time of that is known at once.

use std::collections::BTreeSet;

use tlsprof_common::Pid;

/// A process that is hit by no sample and did no handshake is read once in so many readings. Less than a period
/// of samples, mostly, comes so late; nothing is lost.
const ROUNDS: Pid = 8;

/// What is known of who ran since the last reading.
#[derive(Debug, Default)]
pub(super) struct Readings {
    ran: BTreeSet<Pid>,
    round: Pid,
}

impl Readings {
    /// A sample hit this process, or it did a handshake.
    pub(super) fn note(&mut self, pid: Pid) {
        self.ran.insert(pid);
    }

    /// Begins a reading; returns who is to be read in it.
    pub(super) fn begin(&mut self) -> impl Fn(Pid) -> bool + use<> {
        let ran = std::mem::take(&mut self.ran);
        self.round = (self.round + 1) % ROUNDS;
        let round = self.round;
        move |pid| pid % ROUNDS == round || ran.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ran_is_read_at_once_and_once() {
        let mut readings = Readings::default();
        readings.note(ROUNDS * 5);
        assert!(readings.begin()(ROUNDS * 5));
        assert!(!readings.begin()(ROUNDS * 5));
    }

    #[test]
    fn nobody_is_forgotten() {
        let mut readings = Readings::default();
        let mut read = vec![0; 3 * ROUNDS as usize];
        for _ in 0..ROUNDS {
            let wanted = readings.begin();
            for (pid, count) in (0..).zip(&mut read) {
                *count += u32::from(wanted(pid));
            }
        }
        assert!(read.iter().all(|&count| count == 1), "{read:?}");
    }
}
