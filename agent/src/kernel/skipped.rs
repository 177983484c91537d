//! Runs of programs that the kernel left out, because another task had been
//! preempted inside the same program on that CPU (`recursion_misses`, Linux 5.12;
//! kernel commit 9ed9e9ba2337).

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use super::load::Loaded;

impl Loaded {
    /// How many runs were left out, of all programs, since loading; 0 where the
    /// kernel does not count them.
    pub fn skipped_programs(&self) -> u64 {
        let programs = self.bpf.programs();
        let loaded = programs.filter_map(|(_, program)| program.fd().ok());
        loaded
            .filter_map(|fd| {
                let descriptor = fd.as_fd().as_raw_fd();
                let text = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
                misses(&text)
            })
            .sum()
    }
}

/// The count in a descriptor's text in `/proc/self/fdinfo`.
fn misses(text: &str) -> Option<u64> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix("recursion_misses:"));
    values.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::misses;

    #[test]
    fn misses_are_read_by_name() {
        let text =
            "pos:\t0\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t17\nverified_insns:\t5\n";
        assert_eq!(misses(text), Some(17));
        // Before Linux 5.12.
        assert_eq!(misses("prog_type:\t26\nrun_cnt:\t9\n"), None);
    }
}
