//! The one list of wait reasons: `enum tlsprof_wait` of the programs, and the one that
//! follows from their figures. One that is missing here does not compile.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::contract::{
    TLSPROF_WAIT_COUNT, TLSPROF_WAIT_DISK, TLSPROF_WAIT_LOCK, TLSPROF_WAIT_NETWORK,
    TLSPROF_WAIT_OTHER, TLSPROF_WAIT_PIPE, TLSPROF_WAIT_RANDOM, TLSPROF_WAIT_RUN_QUEUE,
};

macro_rules! waits {
    ($($reason:ident = $constant:ident, $label:literal, $words:literal, $doc:literal;)+) => {
        /// Why a thread was not on the CPU while its handshake was under way.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema,
        )]
        pub enum WaitReason {
            $(
                #[doc = $doc]
                #[serde(rename = $label)]
                $reason = $constant as isize,
            )+
        }

        impl WaitReason {
            /// All reasons, in the order in which reports show them: each is its index.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$reason),+];

            /// The value of the metric label and of the report's JSON.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$reason => $label),+ }
            }

            /// What a handshake waited for.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$reason => $words),+ }
            }
        }
    };
}

/// After those of the programs.
const BETWEEN_CALLS: u32 = TLSPROF_WAIT_COUNT;

waits! {
    RunQueue = TLSPROF_WAIT_RUN_QUEUE, "run_queue", "a free CPU",
        "Runnable, but another thread had the CPU.";
    Lock = TLSPROF_WAIT_LOCK, "lock", "a lock", "In a futex.";
    Disk = TLSPROF_WAIT_DISK, "disk", "disk", "In block I/O.";
    Network = TLSPROF_WAIT_NETWORK, "network", "the network", "In a socket or poll system call.";
    Random = TLSPROF_WAIT_RANDOM, "random", "random numbers",
        "In getrandom, or reading a random source.";
    Pipe = TLSPROF_WAIT_PIPE, "pipe", "a pipe", "Reading or writing another pipe or FIFO.";
    Other = TLSPROF_WAIT_OTHER, "other", "something else", "Blocked for another reason.";
    BetweenCalls = BETWEEN_CALLS, "between_calls", "peer or event loop",
        "Between two calls of a non-blocking handshake: waiting for the peer, or for the event loop.";
}

impl WaitReason {
    /// How many there are: those of the programs and [`WaitReason::BetweenCalls`].
    pub const COUNT: usize = BETWEEN_CALLS as usize + 1;
}

/// Time off the CPU for each of [`WaitReason::ALL`].
pub type Waits = [Duration; WaitReason::COUNT];

/// A reason that only another version knows is read as [`WaitReason::Other`].
impl<'de> Deserialize<'de> for WaitReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let label = String::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|one| one.label() == label);
        Ok(known.unwrap_or(Self::Other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_its_index() {
        for (index, reason) in WaitReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{reason:?}");
        }
    }

    #[test]
    fn the_page_on_metrics_lists_all() {
        let page = include_str!("../../../docs/metrics.md");
        let mut lines = page.lines();
        let waits = lines.find(|line| line.contains("`tlsprof_handshake_wait_seconds_total`"));
        for reason in WaitReason::ALL {
            let name = format!("`{}`", reason.label());
            assert!(waits.is_some_and(|line| line.contains(&name)), "{name}");
        }
    }

    #[test]
    fn one_of_another_version_is_read_as_other() {
        let read = |text| serde_json::from_str::<WaitReason>(text).ok();
        assert_eq!(read("\"between_calls\""), Some(WaitReason::BetweenCalls));
        assert_eq!(read("\"of_later\""), Some(WaitReason::Other));
    }
}
