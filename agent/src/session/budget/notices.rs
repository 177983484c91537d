//! How often to log that profiling exceeds its budget. It is judged every two seconds, and may stay
//! over the budget for hours.

use std::time::{Duration, Instant};

use super::super::governor::Decision;

/// Warnings are at least so far apart.
const INTERVAL: Duration = Duration::from_secs(600);

/// What to log after a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Exceeded,
    /// Within the budget again, after a warning.
    Within,
}

/// When the last warning was logged, and whether its end still has to be.
#[derive(Debug, Default)]
pub(super) struct Notices {
    warned: Option<Instant>,
    open: bool,
}

impl Notices {
    /// What to log for a judgement made at `now`, if anything.
    pub(super) fn after(&mut self, decision: Decision, now: Instant) -> Option<Notice> {
        match decision {
            Decision::Keep => std::mem::take(&mut self.open).then_some(Notice::Within),
            // A change has a message of its own; the next judgement shows whether it is enough.
            Decision::Change(_) | Decision::Unknown => None,
            Decision::OverBudget => {
                let recent = |warned| now.saturating_duration_since(warned) < INTERVAL;
                if self.warned.is_some_and(recent) {
                    return None;
                }
                self.warned = Some(now);
                self.open = true;
                Some(Notice::Exceeded)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::governor::{Governor, Keep};

    const JUDGED_EVERY: Duration = Duration::from_secs(2);

    /// The notices after decisions two seconds apart, each with its second.
    fn notices(decisions: impl IntoIterator<Item = Decision>) -> Vec<(u64, Notice)> {
        let begin = Instant::now();
        let mut now = begin;
        let mut notices = Notices::default();
        let mut logged = Vec::new();
        for decision in decisions {
            let notice = notices.after(decision, now);
            logged.extend(notice.map(|notice| ((now - begin).as_secs(), notice)));
            now += JUDGED_EVERY;
        }
        logged
    }

    #[test]
    fn warns_every_ten_minutes_while_it_lasts_and_once_when_it_is_over() {
        let lasting = std::iter::repeat_n(Decision::OverBudget, 601);
        let over = std::iter::repeat_n(Decision::Keep, 10);
        let expected = [
            (0, Notice::Exceeded),
            (600, Notice::Exceeded),
            (1_200, Notice::Exceeded),
            (1_202, Notice::Within),
        ];
        assert_eq!(notices(lasting.chain(over)), expected);
    }

    #[test]
    fn coming_and_going_is_no_reason_to_warn_more_often() {
        let flapping = [Decision::OverBudget, Decision::Keep];
        let expected = [
            (0, Notice::Exceeded),
            (2, Notice::Within),
            (600, Notice::Exceeded),
            (602, Notice::Within),
        ];
        let decisions = flapping.into_iter().cycle().take(400);
        assert_eq!(notices(decisions), expected);
    }

    #[test]
    fn a_load_that_pauses_is_not_within_the_budget() {
        let decisions = [Decision::OverBudget, Decision::Unknown, Decision::Keep];
        let expected = [(0, Notice::Exceeded), (4, Notice::Within)];
        assert_eq!(notices(decisions), expected);
    }

    #[test]
    fn a_change_is_not_the_end() {
        let change = Decision::Change(Governor::new(0.01, Keep::Connections).rung());
        let decisions = [Decision::OverBudget, change, Decision::OverBudget];
        assert_eq!(notices(decisions), [(0, Notice::Exceeded)]);
        assert_eq!(notices([Decision::Keep, change]), []);
    }
}
