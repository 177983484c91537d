//! The kernel's lockdown (kernel_lockdown(7)): what it keeps even from root.

use std::fs;

const MODE: &str = "/sys/kernel/security/lockdown";

/// How far the kernel is locked down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockdown {
    /// Not at all.
    None,
    /// Nobody may change the running kernel.
    Integrity,
    /// Nor may anybody read its memory, BPF programs included.
    Confidentiality,
}

impl Lockdown {
    /// The active mode; None where this kernel has no lockdown, or securityfs is not mounted.
    pub fn read() -> Option<Self> {
        match active(&fs::read_to_string(MODE).ok()?)? {
            "none" => Some(Self::None),
            "integrity" => Some(Self::Integrity),
            "confidentiality" => Some(Self::Confidentiality),
            _ => None,
        }
    }

    /// As the kernel names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Integrity => "integrity",
            Self::Confidentiality => "confidentiality",
        }
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
