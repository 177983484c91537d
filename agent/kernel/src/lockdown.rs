//! The kernel's lockdown (kernel_lockdown(7)): what it keeps even from root.

use std::fs;

use tlsprof_common::labelled;

const MODE: &str = "/sys/kernel/security/lockdown";

labelled! {
    /// How far the kernel is locked down, by the kernel's names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lockdown {
        /// Not at all.
        None = "none",
        /// Nobody may change the running kernel.
        Integrity = "integrity",
        /// Nor may anybody read its memory, BPF programs included.
        Confidentiality = "confidentiality",
    }
}

impl Lockdown {
    /// The active mode; None where this kernel has no lockdown, or securityfs is not mounted.
    pub fn read() -> Option<Self> {
        let text = fs::read_to_string(MODE).ok()?;
        let active = active(&text)?;
        Self::ALL.into_iter().find(|mode| mode.label() == active)
    }
}

/// The active mode stands in brackets: `none [integrity] confidentiality`.
fn active(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(mode, _)| mode)
}

#[cfg(test)]
mod tests {
    use super::active;

    #[test]
    fn the_active_mode_is_in_brackets() {
        assert_eq!(active("[none] integrity confidentiality\n"), Some("none"));
        assert_eq!(
            active("none [integrity] confidentiality\n"),
            Some("integrity")
        );
        assert_eq!(active("none integrity\n"), None);
        assert_eq!(active(""), None);
    }
}
