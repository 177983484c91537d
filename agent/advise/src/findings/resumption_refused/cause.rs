//! Why a server refuses sessions.

/// What explains most of the sessions that a server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It takes up none, not even those that it gave a moment ago.
    Off,
    /// It takes up none that are as old as those that came.
    OffOrTimeOut,
    /// Processes take up their own sessions, not those of others.
    NotShared,
    /// They were given by processes that have ended, or with their keys.
    Restarted,
    /// They were given by another service of the host.
    OtherService,
    /// They are taken up while they are young.
    TimeOut,
    /// Some are taken up and others not, whatever their age.
    TooSmall,
}

impl Cause {
    /// All of them, in the order of the page.
    #[cfg(test)]
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::OffOrTimeOut,
        Self::NotShared,
        Self::Restarted,
        Self::OtherService,
        Self::TimeOut,
        Self::TooSmall,
    ];

    /// In the words of a title: the server refuses sessions, since ...
    pub const fn words(self) -> &'static str {
        match self {
            Self::Off => "it keeps none",
            Self::OffOrTimeOut => "it keeps none, or not long enough",
            Self::NotShared => "its processes do not share them",
            Self::Restarted => "they come from processes that have ended",
            Self::OtherService => "they come from another service",
            Self::TimeOut => "they have expired",
            Self::TooSmall => "it evicts them early",
        }
    }
}
