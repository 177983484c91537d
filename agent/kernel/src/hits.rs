//! The one list of what is counted when it runs: `enum tlsprof_hit`. One that is missing here
//! does not compile.

use tlsprof_common::contract::{
    TLSPROF_HIT_COUNT, TLSPROF_HIT_ENTRY, TLSPROF_HIT_RETURN, TLSPROF_HIT_SINGLE_STEP,
    TLSPROF_HIT_STOOD_IN, TLSPROF_HIT_SWITCH,
};

/// A program that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A uprobe at a function's entry.
    Entry = TLSPROF_HIT_ENTRY as isize,
    /// A uretprobe.
    Return = TLSPROF_HIT_RETURN as isize,
    /// A scheduler switch of a thread inside a call.
    Switch = TLSPROF_HIT_SWITCH as isize,
    /// A program that made up for a run of another one, which the kernel left out.
    StoodIn = TLSPROF_HIT_STOOD_IN as isize,
    /// An entry on an instruction that the kernel does not emulate.
    SingleStep = TLSPROF_HIT_SINGLE_STEP as isize,
}

impl Hit {
    /// All of them.
    pub const ALL: [Self; TLSPROF_HIT_COUNT as usize] = [
        Self::Entry,
        Self::Return,
        Self::Switch,
        Self::StoodIn,
        Self::SingleStep,
    ];
}

/// How often each of them ran, since loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits([u64; Hit::ALL.len()]);

impl Hits {
    pub(super) const fn new(counts: [u64; Hit::ALL.len()]) -> Self {
        Self(counts)
    }

    /// How often it ran.
    pub fn of(&self, hit: Hit) -> u64 {
        self.0.get(hit as usize).copied().unwrap_or_default()
    }

    /// What ran since then.
    #[must_use]
    pub fn since(&self, before: Self) -> Self {
        Self(std::array::from_fn(|at| {
            let [now, then] = [self, &before].map(|hits| hits.0.get(at).copied());
            now.unwrap_or_default()
                .saturating_sub(then.unwrap_or_default())
        }))
    }

    /// Hits that are traps in a target.
    pub fn probes(&self) -> u64 {
        self.of(Hit::Entry) + self.of(Hit::Return)
    }
}
