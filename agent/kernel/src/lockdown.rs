//! The kernel's lockdown (kernel_lockdown(7)): what it keeps even from root.

use std::fs;

const MODE: &str = "/sys/kernel/security/lockdown";

/// The mode in which BPF programs may not read the kernel's memory.
const CONFIDENTIALITY: &str = "confidentiality";

/// The active mode; None where this kernel has no lockdown, or securityfs is not mounted.
pub fn mode() -> Option<String> {
    active(&fs::read_to_string(MODE).ok()?).map(str::to_owned)
}

/// Whether BPF programs may not read the kernel's memory.
pub(super) fn hides_memory() -> bool {
    mode().is_some_and(|mode| mode == CONFIDENTIALITY)
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
