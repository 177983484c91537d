//! What samples in handshakes were called for: the first of their callers whose name says it.

use super::images::{Images, Place};
use tlsprof_common::Step;
use tlsprof_common::frame::FrameRule;
use tlsprof_evidence::callers::{Code, UserStack, Word};

/// The stack of a sample, with the code that it refers to.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    instruction: (u64, Place),
    stack: UserStack,
    /// Of the words that may be return addresses, and of the link register: the last byte of the call, by its address.
    sites: Vec<(u64, Place)>,
}

impl Calls {
    /// Of a sample at that instruction. `place`: that of an address, None where no code of an image is.
    pub(super) fn of(
        stack: &UserStack,
        instruction: (u64, Place),
        mut place: impl FnMut(u64) -> Option<Place>,
    ) -> Self {
        let mut calls = Self {
            instruction,
            stack: UserStack {
                words: Vec::new(),
                ..stack.clone()
            },
            sites: Vec::new(),
        };
        let end = stack.words.last().map_or(0, |word| word.at);
        for &Word { at, value } in &stack.words {
            let call = value.wrapping_sub(1);
            let site = place(call);
            if site.is_some() || (stack.pointer..=end).contains(&value) {
                calls.stack.words.push(Word { at, value });
            }
            calls.sites.extend(site.map(|site| (call, site)));
        }
        let call = stack.link.checked_sub(1);
        let site = call.and_then(|call| Some((call, place(call)?)));
        calls.sites.extend(site);
        calls
    }

    /// All places that must be looked at.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let sites = self.sites.iter();
        std::iter::once(self.instruction.1).chain(sites.map(|(_, place)| *place))
    }

    /// The step that one of the functions was called for that the sample was in.
    pub(super) fn step(&self, images: &Images) -> Option<Step> {
        let code = Known {
            calls: self,
            images,
        };
        let (instruction, place) = self.instruction;
        let callers = self.stack.callers(instruction, &code);
        let mut callers = callers.map_while(|at| code.place(at.wrapping_sub(1)));
        let own = images.step(place);
        own.or_else(|| callers.find_map(|place| images.step_of_call(place)))
    }
}

struct Known<'a> {
    calls: &'a Calls,
    images: &'a Images,
}

impl Known<'_> {
    fn place(&self, at: u64) -> Option<Place> {
        let instruction = std::iter::once(&self.calls.instruction);
        let mut all = instruction.chain(&self.calls.sites);
        all.find(|(address, _)| *address == at)
            .map(|(_, place)| *place)
    }
}

impl Code for Known<'_> {
    fn rule(&self, at: u64) -> Option<FrameRule> {
        self.images.site(self.place(at)?)?.rule
    }

    fn returns_from(&self, to: u64, at: u64) -> bool {
        let (Some(call), Some(place)) = (self.place(to.wrapping_sub(1)), self.place(at)) else {
            return false;
        };
        let target = self.images.site(call).and_then(|site| site.target);
        call.image == place.image && target.is_some_and(|target| self.images.begins(target, place))
    }
}
