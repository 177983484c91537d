//! What is kept of a service: sums that only grow, taken from its account.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Closer, Outcome, Resumption, Role, labelled};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::Attempt;
use tlsprof_ledger::{ConnectionAccount, HandshakeKey, HandshakeSum, RoleAccount, ServiceAccount};

/// How a handshake ended, and if well, whether a session was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Both Finished messages were exchanged.
    Completed(Resumption),
    /// The TLS library gave up.
    Failed,
    /// The peer went away first.
    Abandoned,
}

labelled! {
    /// Completed handshakes that cost alike.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// No session was resumed.
        Full = "full",
        /// One was, by whichever means.
        Resumed = "resumed",
        /// No source could see it.
        Unknown = "unknown",
    }
}

impl Kind {
    /// What a handshake of that resumption is.
    pub const fn of(resumption: Resumption) -> Self {
        match resumption {
            Resumption::None => Self::Full,
            Resumption::Unknown => Self::Unknown,
            _ => Self::Resumed,
        }
    }
}

/// One of the sums. Times are kept in nanoseconds; all else is a number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// CPU time of its processes as the kernel accounts it, in user or system mode.
    Cpu(Mode),
    /// CPU time by what it was spent on. Apart from softirq, these and
    /// [`Unattributed`](Self::Unattributed) add up to the CPU time in the long run: what no
    /// sample speaks for waits for the next one.
    Activity(Activity, Mode),
    /// CPU time that no sample will ever speak for.
    Unattributed,
    /// Handshakes that ended.
    Handshakes(Role, Ending),
    /// CPU time of all handshakes that ended, in any way.
    HandshakeCpu(Role),
    /// Those of which the CPU time is a lower bound.
    Offloaded(Role),
    /// CPU time of completed handshakes.
    Cost(Role, Kind),
    /// Attempts to resume a session that the server refused.
    Refused(Role),
    /// TCP connections opened.
    Opened(Role),
    /// TCP connections that ended, by who ended them.
    Closed(Role, Closer),
    /// Those of them whose turns were counted.
    Turned(Role),
    /// Their turns.
    Turns(Role),
    /// Requests that these may hide, at most.
    HiddenRequests(Role),
    /// TIME_WAIT sockets left on this side.
    TimeWaitCreated(Role),
    /// Bytes of application data received on TLS connections, booked when they end.
    Received(Role),
    /// Bytes of application data sent on TLS connections, booked when they end.
    Sent(Role),
    /// Packets dropped for a full accept queue.
    Overflows,
}

impl Figure {
    /// Whether it is a time: then it is kept in nanoseconds and shown in seconds.
    pub(crate) const fn is_time(self) -> bool {
        matches!(
            self,
            Self::Cpu(_)
                | Self::Activity(..)
                | Self::Unattributed
                | Self::HandshakeCpu(_)
                | Self::Cost(..)
        )
    }

    /// A value in base units: seconds, or a number of things.
    #[allow(clippy::cast_precision_loss, reason = "figures of an interval")]
    pub(crate) fn in_base_units(self, value: u64) -> f64 {
        if self.is_time() {
            value as f64 / 1e9
        } else {
            value as f64
        }
    }

    /// Its name in JSON: words of metrics and labels, with slashes between.
    pub fn name(self) -> String {
        match self {
            Self::Cpu(mode) => format!("cpu/{}", mode.label()),
            Self::Activity(activity, mode) => {
                format!("activity/{}/{}", activity.label(), mode.label())
            }
            Self::Unattributed => "unattributed".to_owned(),
            Self::Handshakes(role, ending) => {
                format!("handshakes/{}/{}", role.label(), ending.name())
            }
            Self::HandshakeCpu(role) => format!("handshake_cpu/{}", role.label()),
            Self::Offloaded(role) => format!("offloaded/{}", role.label()),
            Self::Cost(role, kind) => format!("cost/{}/{}", role.label(), kind.label()),
            Self::Refused(role) => format!("refused/{}", role.label()),
            Self::Opened(role) => format!("opened/{}", role.label()),
            Self::Closed(role, closer) => format!("closed/{}/{}", role.label(), closer.label()),
            Self::Turned(role) => format!("turned/{}", role.label()),
            Self::Turns(role) => format!("turns/{}", role.label()),
            Self::HiddenRequests(role) => format!("hidden_requests/{}", role.label()),
            Self::TimeWaitCreated(role) => format!("time_wait_created/{}", role.label()),
            Self::Received(role) => format!("received/{}", role.label()),
            Self::Sent(role) => format!("sent/{}", role.label()),
            Self::Overflows => "overflows".to_owned(),
        }
    }
}

impl Ending {
    const fn of(key: &HandshakeKey) -> Self {
        match key.outcome {
            Outcome::Completed => Self::Completed(key.resumption),
            Outcome::Failed => Self::Failed,
            Outcome::Abandoned => Self::Abandoned,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Completed(resumption) => format!("completed/{}", resumption.label()),
            Self::Failed => "failed".to_owned(),
            Self::Abandoned => "abandoned".to_owned(),
        }
    }
}

/// Figures of one service: those that are not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(BTreeMap<Figure, u64>);

impl FromIterator<(Figure, u64)> for Sums {
    fn from_iter<T: IntoIterator<Item = (Figure, u64)>>(figures: T) -> Self {
        let mut sums = Self::default();
        for (figure, value) in figures {
            sums.plus(figure, value);
        }
        sums
    }
}

impl Sums {
    /// What the account of a service holds.
    pub fn of(account: &ServiceAccount) -> Self {
        let mut sums = Self::default();
        sums.take_cpu(account);
        for (key, sum) in &account.handshakes {
            sums.take_handshakes(key, sum);
        }
        for (role, kept) in &account.roles {
            sums.take_role(*role, kept);
        }
        for (role, kept) in &account.connections {
            sums.take_connections(*role, kept);
        }
        sums.plus(Figure::Overflows, account.accept_queue.overflows);
        sums
    }

    /// One figure.
    pub fn get(&self, figure: Figure) -> u64 {
        self.0.get(&figure).copied().unwrap_or_default()
    }

    /// One figure in base units.
    pub fn value(&self, figure: Figure) -> f64 {
        figure.in_base_units(self.get(figure))
    }

    /// CPU time of the service's processes.
    pub fn cpu(&self) -> Duration {
        let nanos = self.get(Figure::Cpu(Mode::User)) + self.get(Figure::Cpu(Mode::System));
        Duration::from_nanos(nanos)
    }

    /// All that are not zero.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Figure, u64)> {
        self.0.iter().map(|(figure, value)| (*figure, *value))
    }

    /// Whether all are zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What came since an earlier state.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let grown = self.iter();
        let grown = grown.map(|(figure, now)| (figure, now.saturating_sub(before.get(figure))));
        grown.collect()
    }

    /// Adds those of another time, or of another service.
    pub fn add(&mut self, other: &Self) {
        for (figure, value) in other.iter() {
            self.plus(figure, value);
        }
    }

    fn plus(&mut self, figure: Figure, value: u64) {
        if value > 0 {
            let sum = self.0.entry(figure).or_default();
            *sum = sum.saturating_add(value);
        }
    }

    fn plus_time(&mut self, figure: Figure, time: Duration) {
        self.plus(figure, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    fn take_cpu(&mut self, account: &ServiceAccount) {
        self.plus_time(Figure::Cpu(Mode::User), account.cpu_user);
        self.plus_time(Figure::Cpu(Mode::System), account.cpu_system);
        for ((activity, mode), part) in account.activities.parts() {
            self.plus_time(Figure::Activity(activity, mode), part.cpu());
        }
        let unattributed = account.activities.unattributed().total();
        self.plus_time(Figure::Unattributed, unattributed);
    }

    fn take_handshakes(&mut self, key: &HandshakeKey, sum: &HandshakeSum) {
        let role = key.role;
        self.plus(Figure::Handshakes(role, Ending::of(key)), sum.count);
        self.plus_time(Figure::HandshakeCpu(role), sum.cpu);
        self.plus(Figure::Offloaded(role), sum.offloaded);
        if key.outcome == Outcome::Completed {
            self.plus_time(Figure::Cost(role, Kind::of(key.resumption)), sum.cpu);
        }
    }

    fn take_role(&mut self, role: Role, kept: &RoleAccount) {
        let attempts = kept.hellos.attempts.iter();
        let refused = attempts.filter(|((attempt, _), _)| *attempt == Attempt::Refused);
        self.plus(Figure::Refused(role), refused.map(|(_, count)| count).sum());
        for bytes in kept.application.values() {
            self.plus(Figure::Received(role), bytes.received);
            self.plus(Figure::Sent(role), bytes.sent);
        }
    }

    fn take_connections(&mut self, role: Role, kept: &ConnectionAccount) {
        self.plus(Figure::Opened(role), kept.opened);
        for (closer, closed) in &kept.closed {
            self.plus(Figure::Closed(role, *closer), closed.count);
            self.plus(Figure::Turned(role), closed.turns.count());
            self.plus(Figure::Turns(role), closed.turns.sum());
        }
        self.plus(Figure::HiddenRequests(role), kept.hidden_requests);
        self.plus(Figure::TimeWaitCreated(role), kept.time_wait_created);
    }
}
