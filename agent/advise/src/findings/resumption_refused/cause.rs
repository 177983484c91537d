//! Why a server refuses sessions.

use tlsprof_common::labelled;

labelled! {
    /// What explains most of the sessions that a server refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Cause {
        /// It takes up none, not even those that it gave a moment ago.
        Off = "it keeps none",
        /// It takes up none that are as old as those that came.
        OffOrTimeOut = "it keeps none, or not long enough",
        /// Processes take up their own sessions, not those of others.
        NotShared = "its processes do not share them",
        /// They were given by processes that have ended, or with their keys.
        Restarted = "they come from processes that have ended",
        /// They were given by another service of the host.
        OtherService = "they come from another service",
        /// They are taken up while they are young.
        TimeOut = "they have expired",
        /// Some are taken up and others not, whatever their age.
        TooSmall = "it evicts them early",
    }
}
