//! When lost events are a reason to look at all processes. Pure.

use std::time::{Duration, Instant};

/// Time between two looks at all processes because events were lost, at least: where the agent
/// has too little CPU, these must not take the rest of it.
const LOOKS: Duration = Duration::from_secs(30);

/// Records of the event ring that were lost: some may have been of processes that began or
/// ended.
#[derive(Debug, Default)]
pub(super) struct LostEvents {
    seen: u64,
    looked: Option<Instant>,
}

impl LostEvents {
    /// Whether to look at all processes now; `lost`: records so far.
    pub(super) fn is_due(&mut self, lost: u64, now: Instant) -> bool {
        let is_late = |looked| now.duration_since(looked) >= LOOKS;
        let is_due = lost > self.seen && self.looked.is_none_or(is_late);
        if is_due {
            (self.seen, self.looked) = (lost, Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_followed_by_a_look_but_not_too_often() {
        let mut lost = LostEvents::default();
        let began = Instant::now();
        assert!(!lost.is_due(0, began), "nothing was lost");
        assert!(lost.is_due(7, began));
        assert!(!lost.is_due(9, began + LOOKS / 2), "too soon");
        assert!(lost.is_due(9, began + LOOKS));
        assert!(!lost.is_due(9, began + LOOKS * 9), "no more was lost");
        assert!(lost.is_due(10, began + LOOKS * 9));
    }
}
