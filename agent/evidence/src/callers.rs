//! Which functions called the one that a sample hit: from words of its stack, and from how the unwind tables restore
//! the state of a caller.

use tlsprof_common::frame::{Base, CallersFrame, FrameRule};

/// More calls within calls are not followed.
const DEEPEST: usize = 64;
const WORD: u64 = size_of::<u64>() as u64;

/// A word on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// Its address.
    pub at: u64,
    /// What it holds: a return address, a saved frame pointer, or what looks like one.
    pub value: u64,
}

/// Of a thread that was interrupted in user mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserStack {
    /// The stack pointer.
    pub pointer: u64,
    /// The frame pointer, or what else its register holds.
    pub frame: u64,
    /// The link register, 0 on machines without one.
    pub link: u64,
    /// What may be return addresses and saved frame pointers, in order of their addresses.
    pub words: Vec<Word>,
}

/// What is known of the code that a process maps, by address.
pub trait Code {
    /// How the state of the caller is restored.
    fn rule(&self, at: u64) -> Option<FrameRule>;
    /// Whether `to` is where a call returns to that led to the function around `at`, without a doubt.
    fn returns_from(&self, to: u64, at: u64) -> bool;
}

/// The state of a function that called another.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where it goes on; in the innermost function, the next instruction.
    at: u64,
    pointer: u64,
    frame: Option<u64>,
    link: Option<u64>,
}

impl UserStack {
    /// Addresses that the callers return to, innermost first, as far as they can be told; `at`: the instruction that
    /// was interrupted.
    pub fn callers<'a>(&'a self, at: u64, code: &'a impl Code) -> impl Iterator<Item = u64> + 'a {
        let innermost = Frame {
            at,
            pointer: self.pointer,
            frame: Some(self.frame),
            link: Some(self.link),
        };
        let frames = std::iter::successors(Some(innermost), |frame| self.caller(frame, code));
        frames.skip(1).take(DEEPEST).map(|frame| frame.at)
    }

    fn caller(&self, callee: &Frame, code: &impl Code) -> Option<Frame> {
        // A return address is behind the call, which may be the last instruction of its function.
        let at = match callee.link {
            Some(_) => callee.at,
            None => callee.at.checked_sub(1)?,
        };
        let by_rule = code.rule(at).and_then(|rule| self.by_rule(callee, rule));
        by_rule.or_else(|| self.by_call(callee, at, code))
    }

    fn by_rule(&self, callee: &Frame, rule: FrameRule) -> Option<Frame> {
        let base = match rule.base {
            Base::Stack => callee.pointer,
            Base::Frame => callee.frame?,
            Base::SavedAtStack(at) => self.word(callee.pointer.checked_add_signed(at)?)?,
            Base::SavedAtFrame(at) => self.word(callee.frame?.checked_add_signed(at)?)?,
        };
        let address = base.checked_add_signed(rule.offset)?;
        let at = match rule.return_address {
            Some(offset) => self.word(address.checked_add_signed(offset)?)?,
            None => callee.link?,
        };
        let frame = match rule.frame_pointer {
            CallersFrame::Kept => callee.frame,
            CallersFrame::Saved(offset) => self.word(address.checked_add_signed(offset)?),
            CallersFrame::Lost => None,
        };
        // Towards the beginning of the stack, or what is there is no frame.
        (address >= callee.pointer).then_some(Frame {
            at,
            pointer: address,
            frame,
            link: None,
        })
    }

    /// Where no rule leads on: assembly that moves its stack, or that no table describes.
    fn by_call(&self, callee: &Frame, at: u64, code: &impl Code) -> Option<Frame> {
        if let Some(link) = callee.link.filter(|link| code.returns_from(*link, at)) {
            return Some(Frame {
                at: link,
                link: None,
                ..*callee
            });
        }
        let mut words = self.words.iter();
        let word =
            words.find(|word| word.at >= callee.pointer && code.returns_from(word.value, at))?;
        Some(Frame {
            at: word.value,
            pointer: word.at.checked_add(WORD)?,
            frame: None,
            link: None,
        })
    }

    fn word(&self, at: u64) -> Option<u64> {
        let found = self.words.binary_search_by_key(&at, |word| word.at).ok()?;
        self.words.get(found).map(|word| word.value)
    }
}

#[cfg(test)]
mod tests;
