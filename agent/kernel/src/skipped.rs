//! Runs of programs that the kernel left out, because that CPU was inside the same
//! program already: interrupted, or another task preempted there (`recursion_misses`,
//! Linux 5.12; kernel commit 9ed9e9ba2337).

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::Ordering;

use aya::programs::ProgramFd;

use super::connections::{STATE, STATE_LEFT_OUT};
use super::hits::Hit;
use super::loaded::Loaded;

impl Loaded {
    /// How many runs were left out, and not made up for by another program, since loading;
    /// never less than before. Counts are too low by these, at most. 0 where the kernel does
    /// not count them.
    pub fn skipped_programs(&self) -> u64 {
        let programs = self.bpf.programs();
        let each = programs.filter_map(|(name, program)| Some((name, misses(program.fd().ok()?)?)));
        let each: Vec<(&str, u64)> = each.collect();
        // Read after the misses, so that no miss is reported that a stand-in has handled.
        let stood_in = self.hits().of(Hit::StoodIn);
        let skipped = lost(&each, stood_in);
        let before = self.skipped.fetch_max(skipped, Ordering::Relaxed);
        skipped.max(before)
    }
}

/// Runs that nothing made up for, from what the kernel left out of each program.
fn lost(each: &[(&str, u64)], stood_in: u64) -> u64 {
    let counts = each.iter().map(|(name, count)| match *name {
        STATE => count.saturating_sub(stood_in),
        // It does nothing where the one before it ran.
        STATE_LEFT_OUT => 0,
        _ => *count,
    });
    counts.sum()
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
    fn a_run_that_another_program_made_up_for_is_not_lost() {
        let each = [("tcp_state", 9), ("tcp_state_left_out", 100)];
        assert_eq!(lost(&each, 9), 0);
        assert_eq!(lost(&each, 7), 2);
        // What stood in was read later.
        assert_eq!(lost(&each, 10), 0);
        let each = [("tcp_state", 9), ("socket_received", 1)];
        assert_eq!(lost(&each, 9), 1);
    }
}
