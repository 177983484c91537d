//! What connections cost beside what they carry, and processes beside what they do.
//!
//! By samples of what the kernel and the dynamic loader do. Application code is in none
//! of these: what it does for each connection is estimated from its handshake.

use tlsprof_common::{Outcome, Resumption, Role};
use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
use tlsprof_ledger::ServiceAccount;

use super::Range;
use super::subject::Subject;

/// Processes for each connection from which each has one of its own.
const PER_CONNECTION: f64 = 0.8;
/// More of them are started for something else: a shell that starts programs, a build.
const FOR_SOMETHING_ELSE: f64 = 3.0;
/// Fewer are nothing that connections pay for.
const HARDLY_ANY: f64 = 0.05;

/// What the service's own code and its TLS library do to begin and to end a connection,
/// outside its handshake, as a share of a resumed handshake. Measured at 0.4 to 0.6 on
/// nginx and on a server with a thread for each connection, and so a careful estimate;
/// docs/journal/2026-11-21-predicted-and-measured-savings.md.
const OWN_CODE: Range = Range {
    low: 0.0,
    likely: 0.25,
    high: 0.5,
};
/// Of a full handshake with RSA-2048 or P-256 this is about what a resumed one has too.
const LIKE_RESUMED: f64 = 0.4;
/// Fewer resumed handshakes tell no cost.
const ENOUGH_RESUMED: u64 = 10;
/// Most of what the application does is for requests.
const OWN_CODE_BOUND: f64 = 0.5;

/// CPU time of opening and closing one connection, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerConnection {
    /// What the kernel does for TCP in the service's processes.
    pub(crate) tcp: Range,
    /// What it does there to start and end the processes or threads of connections that
    /// the service is asked for.
    pub threads: Range,
    /// What it does for TCP in softirqs, in no process's time: an estimate.
    pub(crate) softirq: f64,
}

impl PerConnection {
    /// In the service's processes, for a connection in that role.
    pub fn cpu(&self, role: Role) -> Range {
        match role {
            Role::Server => self.tcp.plus(self.threads),
            Role::Client => self.tcp,
        }
    }
}

/// CPU seconds that samples of its processes attributed to something, with their limits.
pub(super) fn sampled(account: &ServiceAccount, likely: f64) -> Range {
    let limits = account.activities.limits(likely);
    Range {
        low: limits.low,
        likely,
        high: limits.high,
    }
}

/// Processes for each connection that the service was asked for, if these are what
/// processes are started for.
pub(super) fn processes_per_connection(account: &ServiceAccount) -> Option<f64> {
    let opened = account.connections.get(&Role::Server)?.opened;
    let each = account.processes.forked as f64 / opened.max(1) as f64;
    (PER_CONNECTION..FOR_SOMETHING_ELSE)
        .contains(&each)
        .then_some(each)
}

/// CPU seconds of an activity in the service's processes.
pub(super) fn in_processes(account: &ServiceAccount, activity: Activity) -> f64 {
    let modes = [Mode::User, Mode::System].iter();
    modes
        .map(|mode| account.activities.part(activity, *mode).cpu().as_secs_f64())
        .sum()
}

/// None without samples, or without connections.
pub(super) fn per_connection(account: &ServiceAccount) -> Option<PerConnection> {
    if account.activities.samples() == 0 {
        return None;
    }
    let events = account.network_events();
    if events.opened == 0 || events.closed == 0 {
        return None;
    }
    let of = |activity, events: u64| {
        let seconds = in_processes(account, activity);
        sampled(account, seconds).times(1.0 / events as f64)
    };
    let tcp = of(Activity::TcpOpen, events.opened).plus(of(Activity::TcpClose, events.closed));
    let softirq = |activity, events: u64| {
        let part = account.activities.part(activity, Mode::Softirq);
        part.cpu().as_secs_f64() / events as f64
    };
    Some(PerConnection {
        tcp,
        threads: threads(account),
        softirq: softirq(Activity::TcpOpen, events.opened)
            + softirq(Activity::TcpClose, events.closed),
    })
}

/// What the service's own code and its TLS library do for one connection in that role
/// beside its handshake and its requests, in CPU seconds: an estimate. Nothing without
/// samples, which bound it.
pub(super) fn own_code(subject: &Subject<'_>, role: Role, connections: u64) -> Range {
    let completed = subject.completed(role);
    let resumed = subject.handshakes(|key| {
        let resumed = !matches!(key.resumption, Resumption::None | Resumption::Unknown);
        key.role == role && key.outcome == Outcome::Completed && resumed
    });
    let handshake = if resumed.count >= ENOUGH_RESUMED {
        resumed.each()
    } else {
        completed.each() * LIKE_RESUMED
    };
    let bound: f64 = [Activity::Application, Activity::Encryption]
        .map(|activity| in_processes(subject.account, activity))
        .iter()
        .sum();
    let bound = bound * OWN_CODE_BOUND / connections.max(1) as f64;
    OWN_CODE.times(handshake).map(|seconds| seconds.min(bound))
}

/// CPU seconds of what it takes to have processes, but for page faults in their handshakes.
pub(super) fn of_processes(account: &ServiceAccount) -> f64 {
    let all = [
        Upkeep::Process,
        Upkeep::Loader,
        Upkeep::Memory,
        Upkeep::Start,
    ];
    all.iter()
        .map(|what| account.activities.upkeep(*what).as_secs_f64())
        .sum()
}

/// What processes and threads cost, if connections are what they are for: one process for
/// each; or hardly any, so that what is started and ended are threads.
fn threads(account: &ServiceAccount) -> Range {
    let opened = account.connections.get(&Role::Server);
    let opened = opened.map_or(0, |kept| kept.opened);
    let hardly_any = (account.processes.forked as f64) < HARDLY_ANY * opened as f64;
    let seconds = if processes_per_connection(account).is_some() {
        of_processes(account)
    } else if hardly_any {
        account.activities.upkeep(Upkeep::Process).as_secs_f64()
    } else {
        0.0
    };
    if opened == 0 || seconds <= 0.0 {
        return Range::default();
    }
    sampled(account, seconds).times(1.0 / opened as f64)
}
