//! Runs of programs that the kernel left out, because that CPU was inside the same
//! program already: interrupted, or another task preempted there (`recursion_misses`,
//! Linux 5.12; kernel commit 9ed9e9ba2337).

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::Ordering;

use aya::programs::ProgramFd;

use super::connections::{STATE, STATE_LEFT_OUT};
use super::contract::TLSPROF_HIT_STOOD_IN;
use super::load::Loaded;
use super::packets;

/// Since loading; 0 where the kernel does not count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Counts are too low by these, at most.
    pub programs: u64,
    /// Of those that time a sample of all packets.
    pub packets: u64,
}

impl Loaded {
    /// How many runs were left out, and not made up for by another program; never less
    /// than before.
    pub fn skipped_programs(&self) -> Skipped {
        let programs = self.bpf.programs();
        let each = programs.filter_map(|(name, program)| Some((name, misses(program.fd().ok()?)?)));
        let each: Vec<(&str, u64)> = each.collect();
        // After that, so that none is told which is made up for.
        let stood_in = self.hits().get(TLSPROF_HIT_STOOD_IN as usize).copied();
        let mut skipped = told(&each, stood_in.unwrap_or_default());
        let before = self.skipped.fetch_max(skipped.programs, Ordering::Relaxed);
        skipped.programs = skipped.programs.max(before);
        skipped
    }
}

/// Out of what the kernel left out of each program, by name.
fn told(each: &[(&str, u64)], stood_in: u64) -> Skipped {
    let mut skipped = Skipped::default();
    for (name, count) in each {
        match *name {
            STATE => skipped.programs += count.saturating_sub(stood_in),
            // It does nothing where the one before it ran.
            STATE_LEFT_OUT => {}
            name if packets::has_program(name) => skipped.packets += count,
            _ => skipped.programs += count,
        }
    }
    skipped
}

/// What the kernel left out of a program.
fn misses(program: &ProgramFd) -> Option<u64> {
    let descriptor = program.as_fd().as_raw_fd();
    misses_in(&fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?)
}

/// The same in a descriptor's text in `/proc/self/fdinfo`.
fn misses_in(text: &str) -> Option<u64> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix("recursion_misses:"));
    values.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_read_by_name() {
        let text =
            "pos:\t0\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t17\nverified_insns:\t5\n";
        assert_eq!(misses_in(text), Some(17));
        // Before Linux 5.12.
        assert_eq!(misses_in("prog_type:\t26\nrun_cnt:\t9\n"), None);
    }

    #[test]
    fn what_was_made_up_for_is_not_told() {
        let each = [("tcp_state", 9), ("tcp_state_left_out", 100)];
        assert_eq!(told(&each, 9), Skipped::default());
        assert_eq!(told(&each, 7).programs, 2);
        // What stood in was read later.
        assert_eq!(told(&each, 10), Skipped::default());
    }

    #[test]
    fn programs_that_time_packets_are_told_apart() {
        let each = [
            ("socket_received", 1),
            ("packet_socket_4", 20),
            ("time_wait_end", 300),
        ];
        let skipped = Skipped {
            programs: 1,
            packets: 320,
        };
        assert_eq!(told(&each, 0), skipped);
    }
}
