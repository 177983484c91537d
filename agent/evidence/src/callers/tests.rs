#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

/// Where functions begin, and where the stack was when the sample was taken.
const LEAF: u64 = 0x1000;
const MIDDLE: u64 = 0x2000;
const OUTER: u64 = 0x3000;
const STACK: u64 = 0x7000;

#[derive(Default)]
struct Known {
    rules: BTreeMap<u64, FrameRule>,
    /// Return addresses of calls that lead to a function.
    calls: BTreeMap<u64, u64>,
}

impl Code for Known {
    fn rule(&self, at: u64) -> Option<FrameRule> {
        self.rules.range(..=at).next_back().map(|(_, rule)| *rule)
    }

    fn returns_from(&self, to: u64, at: u64) -> bool {
        self.calls
            .get(&to)
            .is_some_and(|target| *target == at & !0xfff)
    }
}

fn rule(base: Base, offset: i64, frame_pointer: CallersFrame) -> FrameRule {
    FrameRule {
        base,
        offset,
        return_address: Some(-8),
        frame_pointer,
    }
}

fn stack(words: &[(u64, u64)]) -> UserStack {
    UserStack {
        pointer: STACK,
        frame: 0,
        link: 0,
        words: words
            .iter()
            .map(|&(at, value)| Word {
                at: STACK + at,
                value,
            })
            .collect(),
    }
}

fn callers(stack: &UserStack, known: &Known) -> Vec<u64> {
    stack.callers(LEAF + 0x10, known).collect()
}

#[test]
fn frames_lead_from_caller_to_caller() {
    let known = Known {
        rules: BTreeMap::from([
            (LEAF, rule(Base::Stack, 16, CallersFrame::Kept)),
            (MIDDLE, rule(Base::Stack, 32, CallersFrame::Kept)),
        ]),
        ..Known::default()
    };
    // What lies between, of calls that have returned, is none of them.
    let stack = stack(&[
        (0, OUTER + 9),
        (8, MIDDLE + 5),
        (16, OUTER + 7),
        (40, OUTER + 8),
    ]);
    assert_eq!(callers(&stack, &known)[..2], [MIDDLE + 5, OUTER + 8]);
}

#[test]
fn a_call_at_the_end_of_a_function_is_that_functions() {
    let known = Known {
        rules: BTreeMap::from([
            (LEAF, rule(Base::Stack, 8, CallersFrame::Kept)),
            (MIDDLE, rule(Base::Stack, 16, CallersFrame::Kept)),
            (OUTER, rule(Base::Stack, 800, CallersFrame::Kept)),
        ]),
        ..Known::default()
    };
    let stack = stack(&[(0, OUTER), (16, OUTER + 4)]);
    assert_eq!(callers(&stack, &known), [OUTER, OUTER + 4]);
}

#[test]
fn a_frame_pointer_is_found_where_it_was_saved() {
    let known = Known {
        rules: BTreeMap::from([
            (LEAF, rule(Base::Stack, 16, CallersFrame::Saved(-16))),
            (MIDDLE, rule(Base::Frame, 16, CallersFrame::Lost)),
            (OUTER, rule(Base::Frame, 16, CallersFrame::Kept)),
        ]),
        ..Known::default()
    };
    let stack = stack(&[(0, STACK + 0x40), (8, MIDDLE + 5), (0x48, OUTER + 7)]);
    assert_eq!(callers(&stack, &known), [MIDDLE + 5, OUTER + 7]);
}

#[test]
fn an_aligned_frame_is_found_by_what_was_saved_in_it() {
    let known = Known {
        rules: BTreeMap::from([
            (
                LEAF,
                rule(Base::SavedAtStack(0x20), 8, CallersFrame::Saved(-16)),
            ),
            (MIDDLE, rule(Base::SavedAtFrame(-8), 0, CallersFrame::Lost)),
        ]),
        ..Known::default()
    };
    let stack = stack(&[
        (0x20, STACK + 0x50),
        (0x48, STACK + 0x70),
        (0x50, MIDDLE + 5),
        (0x68, STACK + 0x90),
        (0x88, OUTER + 7),
    ]);
    assert_eq!(callers(&stack, &known), [MIDDLE + 5, OUTER + 7]);
}

#[test]
fn the_link_register_is_of_the_innermost_function_alone() {
    let in_register = FrameRule {
        return_address: None,
        ..rule(Base::Stack, 0, CallersFrame::Kept)
    };
    let known = Known {
        rules: BTreeMap::from([(LEAF, in_register), (MIDDLE, in_register)]),
        ..Known::default()
    };
    let stack = UserStack {
        link: MIDDLE + 8,
        ..stack(&[])
    };
    assert_eq!(callers(&stack, &known), [MIDDLE + 8]);
}

#[test]
fn without_a_rule_a_call_that_led_there_is_the_caller() {
    let known = Known {
        rules: BTreeMap::from([(MIDDLE, rule(Base::Stack, 16, CallersFrame::Kept))]),
        calls: BTreeMap::from([(MIDDLE + 5, LEAF), (OUTER + 7, MIDDLE)]),
    };
    let stack = stack(&[(0, OUTER + 7), (24, MIDDLE + 5), (40, OUTER + 8)]);
    assert_eq!(callers(&stack, &known)[..2], [MIDDLE + 5, OUTER + 8]);
    assert_eq!(callers(&stack, &Known::default()), [0_u64; 0]);
}

#[test]
fn without_a_rule_the_link_register_is_the_caller_if_a_call_led_there() {
    let known = Known {
        rules: BTreeMap::from([(MIDDLE, rule(Base::Stack, 16, CallersFrame::Kept))]),
        calls: BTreeMap::from([(MIDDLE + 8, LEAF)]),
    };
    let linked = |link| UserStack {
        link,
        ..stack(&[(8, OUTER + 7)])
    };
    // Nothing of the stack is the leaf's.
    assert_eq!(
        callers(&linked(MIDDLE + 8), &known)[..2],
        [MIDDLE + 8, OUTER + 7]
    );
    assert_eq!(callers(&linked(MIDDLE + 12), &known), [0_u64; 0]);
}

#[test]
fn a_rule_that_leads_back_leads_nowhere() {
    let known = Known {
        rules: BTreeMap::from([(0, rule(Base::Stack, -8, CallersFrame::Kept))]),
        ..Known::default()
    };
    assert_eq!(
        callers(&stack(&[(0, OUTER), (8, OUTER)]), &known),
        [0_u64; 0]
    );
    let round = Known {
        rules: BTreeMap::from([(0, rule(Base::Stack, 0, CallersFrame::Kept))]),
        ..Known::default()
    };
    let at_itself = UserStack {
        pointer: STACK + 8,
        ..stack(&[(0, OUTER)])
    };
    assert_eq!(callers(&at_itself, &round).len(), DEEPEST);
}
