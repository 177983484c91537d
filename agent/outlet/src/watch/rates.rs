//! What a service does each second, from what came in an interval.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use tlsprof_common::{Closer, Resumption, Role};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_ledger::{are_requests, is_lower_bound};

use super::figures::{Ending, Figure, Kind, Sums};
use super::series::Slice;

/// A service in an interval. Where a figure divides by nothing, it is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rates {
    /// CPU seconds of its processes each second, as the kernel accounts them.
    pub(crate) cpu_cores: f64,
    /// The part of it in the kernel.
    pub(crate) system_cores: f64,
    /// What the CPU time went into; empty where no sample was taken.
    pub activities: Vec<ActivityRate>,
    /// CPU time that no sample will ever speak for.
    pub(crate) unattributed_cores: f64,
    /// Share (0 to 1) of the CPU time in activities that is TLS: handshakes and encryption.
    pub(crate) tls_ratio: Option<f64>,
    /// Server first; those roles that it has, or had in the interval.
    pub roles: Vec<RoleRates>,
    /// Packets dropped for a full accept queue, each second.
    pub(crate) overflows_per_second: f64,
}

/// CPU seconds each second that go into an activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ActivityRate {
    /// `handshake`, `encryption`, `tcp_open`, `tcp_close`, `socket_io` or `application`.
    pub activity: String,
    /// In user mode.
    pub(crate) user_cores: f64,
    /// In the kernel.
    pub(crate) system_cores: f64,
    /// In softirqs, outside the service's own CPU time.
    pub(crate) softirq_cores: f64,
}

/// A service in one role. Numbers are per second unless their name says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoleRates {
    /// `server` or `client`.
    pub role: String,
    /// Handshakes that ended in any way.
    pub(crate) handshakes_per_second: f64,
    /// Those that were completed.
    pub(crate) completed_per_second: f64,
    /// Those that failed.
    pub(crate) failed_per_second: f64,
    /// Those of which the peer went away.
    pub(crate) abandoned_per_second: f64,
    /// CPU seconds in handshakes each second.
    pub(crate) handshake_cores: f64,
    /// Share (0 to 1) of completed handshakes that resumed a session, of those of which it
    /// is known.
    pub(crate) resumed_ratio: Option<f64>,
    /// CPU seconds of a full handshake.
    pub(crate) full_cpu_seconds: Option<f64>,
    /// CPU seconds of a resumed handshake.
    pub(crate) resumed_cpu_seconds: Option<f64>,
    /// CPU seconds of a completed handshake.
    pub(crate) each_cpu_seconds: Option<f64>,
    /// Whether CPU seconds of handshakes are a lower bound, as in a report.
    pub handshake_cpu_is_lower_bound: bool,
    /// Attempts to resume a session that were refused.
    pub(crate) refused_per_second: f64,
    /// Connections opened.
    pub(crate) opened_per_second: f64,
    /// Connections that ended, in any way.
    pub(crate) closed_per_second: f64,
    /// Those that this side closed.
    pub(crate) closed_local_per_second: f64,
    /// Those that the peer closed.
    pub(crate) closed_remote_per_second: f64,
    /// Turns, booked when their connection ends; null where they were counted on fewer than 9 in 10
    /// of the connections that ended.
    pub(crate) turns_per_second: Option<f64>,
    /// Whether turns are requests, to 1%: false where connections that ended may have spoken HTTP/2
    /// and received enough to hide more.
    pub turns_are_requests: bool,
    /// Turns of a connection that ended.
    pub(crate) turns_per_connection: Option<f64>,
    /// TIME_WAIT sockets left on this side.
    pub(crate) time_wait_created_per_second: f64,
    /// TIME_WAIT sockets that stand.
    pub time_wait_standing: u64,
    /// Bytes received on TLS connections, booked when they end.
    pub(crate) received_bytes_per_second: f64,
    /// Bytes sent on TLS connections, booked when they end.
    pub(crate) sent_bytes_per_second: f64,
}

/// Turns of this share of the connections that ended stand for all, as in the ledger's unit costs.
const ENOUGH_COUNTED: f64 = 0.9;

/// Figures over a length of time.
struct Over<'a> {
    sums: &'a Sums,
    seconds: f64,
}

impl Over<'_> {
    fn each_second(&self, figure: Figure) -> f64 {
        self.sums.value(figure) / self.seconds
    }

    fn ratio(&self, part: Figure, whole: Figure) -> Option<f64> {
        let whole = self.sums.value(whole);
        (whole > 0.0).then(|| self.sums.value(part) / whole)
    }

    fn activity(&self, activity: Activity) -> ActivityRate {
        let cores = |mode| self.each_second(Figure::Activity(activity, mode));
        ActivityRate {
            activity: activity.label().to_owned(),
            user_cores: cores(Mode::User),
            system_cores: cores(Mode::System),
            softirq_cores: cores(Mode::Softirq),
        }
    }

    /// CPU time of one completed handshake of those kinds.
    fn cost_of(&self, role: Role, kinds: &[Kind]) -> Option<f64> {
        let sum = |figures: &mut dyn Iterator<Item = Figure>| -> f64 {
            figures.map(|figure| self.sums.value(figure)).sum()
        };
        let alike = Resumption::ALL.into_iter();
        let alike = alike.filter(|resumption| kinds.contains(&Kind::of(*resumption)));
        let completed = sum(&mut alike.map(|one| Figure::Handshakes(role, Ending::Completed(one))));
        let costs = || sum(&mut kinds.iter().map(|kind| Figure::Cost(role, *kind)));
        (completed > 0.0).then(|| costs() / completed)
    }
}

fn resumed_ratio(completed: &[(Resumption, f64)]) -> Option<f64> {
    let sum = |kind: Kind| -> f64 {
        let those = completed.iter().filter(|(one, _)| Kind::of(*one) == kind);
        those.map(|(_, count)| count).sum()
    };
    let (full, resumed) = (sum(Kind::Full), sum(Kind::Resumed));
    (full + resumed > 0.0).then(|| resumed / (full + resumed))
}

impl Rates {
    /// Of what came in a time; all zero if that is zero.
    pub fn of(slice: &Slice, length: Duration) -> Self {
        if length.is_zero() {
            return Self::default();
        }
        let over = Over {
            sums: &slice.sums,
            seconds: length.as_secs_f64(),
        };
        let activities = activities(&over);
        let sum = |wanted: fn(&ActivityRate) -> bool| -> f64 {
            let those = activities.iter().filter(|one| wanted(one));
            those.map(|one| one.user_cores + one.system_cores).sum()
        };
        let all = sum(|_| true);
        let tls = sum(|one| one.activity == Activity::Handshake.label())
            + sum(|one| one.activity == Activity::Encryption.label());
        Self {
            cpu_cores: slice.sums.cpu().as_secs_f64() / over.seconds,
            system_cores: over.each_second(Figure::Cpu(Mode::System)),
            unattributed_cores: over.each_second(Figure::Unattributed),
            tls_ratio: (all > 0.0).then(|| tls / all),
            activities,
            roles: Role::ALL
                .into_iter()
                .filter_map(|role| role_rates(&over, role, slice))
                .collect(),
            overflows_per_second: over.each_second(Figure::Overflows),
        }
    }

    /// The role that the service is about: server, if it is one at all.
    pub(crate) fn main(&self) -> Option<&RoleRates> {
        self.roles.first()
    }
}

fn activities(over: &Over<'_>) -> Vec<ActivityRate> {
    let sampled = |(figure, _)| matches!(figure, Figure::Activity(..));
    if !over.sums.iter().any(sampled) {
        return Vec::new();
    }
    Activity::ALL
        .into_iter()
        .map(|one| over.activity(one))
        .collect()
}

/// Handshakes that ended in any way.
fn handshakes(sums: &Sums, role: Role) -> u64 {
    let ended = sums.iter().filter_map(|(figure, count)| match figure {
        Figure::Handshakes(of, _) if of == role => Some(count),
        _ => None,
    });
    ended.sum()
}

/// None where the service did nothing in that role.
fn role_rates(over: &Over<'_>, role: Role, slice: &Slice) -> Option<RoleRates> {
    let standing = slice.time_wait.get(&role).copied().unwrap_or_default();
    let completed = Resumption::ALL.map(|resumption| {
        let figure = Figure::Handshakes(role, Ending::Completed(resumption));
        (resumption, over.each_second(figure))
    });
    let completed_per_second: f64 = completed.iter().map(|(_, count)| count).sum();
    let failed_per_second = over.each_second(Figure::Handshakes(role, Ending::Failed));
    let abandoned_per_second = over.each_second(Figure::Handshakes(role, Ending::Abandoned));
    let closed = Closer::ALL.map(|closer| over.each_second(Figure::Closed(role, closer)));
    let [closed_local_per_second, closed_remote_per_second, _] = closed;
    let closed_per_second: f64 = closed.iter().sum();
    let counted = over.each_second(Figure::Turned(role)) >= ENOUGH_COUNTED * closed_per_second;
    let handshakes_per_second = completed_per_second + failed_per_second + abandoned_per_second;
    let rates = RoleRates {
        role: role.label().to_owned(),
        handshakes_per_second,
        completed_per_second,
        failed_per_second,
        abandoned_per_second,
        handshake_cores: over.each_second(Figure::HandshakeCpu(role)),
        resumed_ratio: resumed_ratio(&completed),
        full_cpu_seconds: over.cost_of(role, &[Kind::Full]),
        resumed_cpu_seconds: over.cost_of(role, &[Kind::Resumed]),
        each_cpu_seconds: over.cost_of(role, &Kind::ALL),
        handshake_cpu_is_lower_bound: is_lower_bound(
            over.sums.get(Figure::Offloaded(role)),
            handshakes(over.sums, role),
        ),
        refused_per_second: over.each_second(Figure::Refused(role)),
        opened_per_second: over.each_second(Figure::Opened(role)),
        closed_per_second,
        closed_local_per_second,
        closed_remote_per_second,
        turns_per_second: counted.then(|| over.each_second(Figure::Turns(role))),
        turns_are_requests: are_requests(
            over.sums.get(Figure::Turns(role)),
            over.sums.get(Figure::HiddenRequests(role)),
        ),
        turns_per_connection: over.ratio(Figure::Turns(role), Figure::Turned(role)),
        time_wait_created_per_second: over.each_second(Figure::TimeWaitCreated(role)),
        time_wait_standing: standing,
        received_bytes_per_second: over.each_second(Figure::Received(role)),
        sent_bytes_per_second: over.each_second(Figure::Sent(role)),
    };
    let done = rates.handshakes_per_second + rates.opened_per_second + rates.closed_per_second;
    (done > 0.0 || slice.time_wait.contains_key(&role)).then_some(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_all_is_not_said_of_all() {
        let rates = |turned: u64, offloaded: u64| {
            let sums = [
                (Figure::Handshakes(Role::Server, Ending::Failed), 100),
                (Figure::Offloaded(Role::Server), offloaded),
                (Figure::Closed(Role::Server, Closer::Remote), 100),
                (Figure::Turned(Role::Server), turned),
                (Figure::Turns(Role::Server), 2 * turned),
            ];
            let slice = Slice {
                sums: sums.into_iter().collect(),
                ..Slice::default()
            };
            let server = Rates::of(&slice, Duration::from_secs(1)).roles.remove(0);
            (server.turns_per_second, server.handshake_cpu_is_lower_bound)
        };
        assert_eq!(rates(90, 10), (Some(180.0), false));
        assert_eq!(rates(89, 11), (None, true));
    }
}
