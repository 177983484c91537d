//! Figures of one service in one report, each with its counting error.
//!
//! Sums are floating-point: a report is a file, and may hold any number.

use super::figure::Figure;
use super::statistics::Estimate;
use crate::model::{
    Activity, ActivityCpu, Connections, HandshakeCost, HandshakeGroup, Outcome, Quantiles,
    Resumption, Role, Service, Unit, UnitCost,
};
use crate::requests::ENOUGH_SEEN;
use tlsprof_common::units::share_of_cpu;

/// Fewer requests say nothing of their cost.
const FEW_REQUESTS: f64 = 100.0;
/// Fewer handshakes say nothing of theirs.
const FEW_HANDSHAKES: f64 = 30.0;
/// Fewer samples do not divide CPU time.
const FEW_SAMPLES: f64 = 30.0;
/// A class that holds one in so many is told by a quantile: standard normal quantiles.
const NORMAL_90: f64 = 1.2816;
const NORMAL_99: f64 = 2.3263;

/// The same in short.
pub(crate) const MAY_CARRY_SEVERAL: &str = "HTTP/2: a turn may carry several requests";
/// Why turns are not compared.
const MULTIPLEXED: &str = "clients offered HTTP/2, so a turn may carry several requests; use \
                           `report --requests`, or run a load tool as its command";

/// A service of one report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    service: &'a Service,
    seconds: f64,
}

impl<'a> Reading<'a> {
    /// The service, profiled for so many seconds.
    pub const fn new(service: &'a Service, seconds: f64) -> Self {
        Self { service, seconds }
    }

    /// What it says of a figure; None where it says nothing, or too little.
    pub fn estimate(self, figure: Figure) -> Option<Estimate> {
        let cpu = self.service.cpu_seconds;
        match figure {
            Figure::CpuPerRequest => self.by_request(cpu.total()),
            Figure::UserPerRequest => self.by_request(cpu.user),
            Figure::SystemPerRequest => self.by_request(cpu.system),
            Figure::FullHandshake => self.handshake_cpu(|kind| kind == Resumption::None),
            Figure::ResumedHandshake => self.handshake_cpu(Resumption::is_one),
            Figure::CpuPerMegabyte => self.megabyte(),
            Figure::Activity(activity) => self.activity(activity),
            Figure::HandshakeShare => self.handshake_share(),
            Figure::HandshakesPerRequest => {
                self.count_by_request(self.handshakes(|_| true), self.requests()?)
            }
            Figure::ResumptionShare => self.resumption(),
            Figure::TurnsPerConnection => self.turns_by_connection(),
            Figure::TimeWaitPerRequest => self.time_wait(),
            Figure::Throughput => {
                let rate = self.requests()? / self.seconds;
                Estimate::ratio(rate, rate, 1.0 / self.requests()?)
            }
        }
    }

    /// Requests as a server; of a service that is only a client, as that. None where they
    /// are not known or too few.
    fn requests(self) -> Option<f64> {
        let requests = match self.service.known_requests() {
            Some(known) => known.count,
            // Without CPU samples.
            None if self.is_whole() && !self.is_multiplexed() => self.connections()?.turns(),
            None => return None,
        };
        (requests >= FEW_REQUESTS).then_some(requests)
    }

    /// Whether a turn may carry several requests, and nobody counted these.
    pub(crate) fn is_multiplexed(self) -> bool {
        self.service.requests.is_none() && !self.service.turns_are_requests()
    }

    /// Why requests are not known, if that is so.
    pub(crate) fn why_no_requests(self) -> Option<&'static str> {
        if self.requests().is_some() {
            return None;
        }
        Some(if self.is_multiplexed() {
            MULTIPLEXED
        } else if !self.is_whole() {
            "most connections were open before the profile or are still open, and requests are \
             counted when a connection ends"
        } else if self.connections().is_some_and(|one| one.turns() > 0.0) {
            "there were fewer than 100 requests"
        } else {
            "requests were not seen"
        })
    }

    /// CPU time by requests. The kernel counts both; the spread of single requests is not
    /// known and taken for that of an exponential distribution, as large as their mean.
    fn by_request(self, seconds: f64) -> Option<Estimate> {
        let requests = self.requests()?;
        let each = seconds / requests;
        Estimate::ratio(each, each, 1.0 / requests)
    }

    /// CPU time of an activity by requests: a share by samples of an exact time.
    fn activity(self, activity: Activity) -> Option<Estimate> {
        let requests = self.requests()?;
        let one: &ActivityCpu = self
            .service
            .activities
            .iter()
            .find(|a| a.activity == activity)?;
        let (hits, all) = self.samples(one.samples)?;
        let seconds = if hits > 0.0 {
            one.cpu_seconds
        } else {
            self.service.cpu_seconds.total() * 0.5 / all
        };
        let variance = of_samples(hits, all)? + 1.0 / requests;
        Estimate::ratio(one.cpu_seconds / requests, seconds / requests, variance)
    }

    /// So many samples of all, both as if all had been taken at one rate.
    fn samples(self, hits: u64) -> Option<(f64, f64)> {
        let samples = self.service.cpu_samples?;
        let all = float(samples.count);
        let effective = match samples.effective {
            0.0 => all,
            effective => effective,
        };
        Some((float(hits) * effective / all.max(1.0), effective))
    }

    fn megabyte(self) -> Option<Estimate> {
        let cost = self.unit(Unit::Megabyte)?;
        let (hits, all) = self.samples(cost.samples)?;
        let seconds = if hits > 0.0 {
            cost.cpu_seconds
        } else {
            self.service.cpu_seconds.total() * 0.5 / all / cost.count
        };
        Estimate::ratio(cost.cpu_seconds, seconds, of_samples(hits, all)?)
    }

    /// Mean CPU time of completed handshakes, exact, with its standard error.
    fn handshake_cpu(self, wanted: impl Fn(Resumption) -> bool) -> Option<Estimate> {
        let role = self.role();
        let costs = self.service.handshake_costs.iter();
        let mut costs =
            costs.filter(|cost| cost.role == role && cost.count > 0 && wanted(cost.resumption));
        let (mut count, mut sum, mut error) = (0.0, 0.0, 0.0);
        for HandshakeCost {
            count: number, cpu, ..
        } in costs.by_ref()
        {
            let number = float(*number);
            count += number;
            sum += number * cpu.mean;
            error += (number * standard_error(cpu, number)).powi(2);
        }
        if count < FEW_HANDSHAKES {
            return None;
        }
        Estimate::ratio(sum / count, sum / count, error / sum.powi(2))
    }

    fn handshake_share(self) -> Option<Estimate> {
        let role = self.role();
        let groups = self.service.handshakes.iter();
        let of_role = groups.filter(|group| group.role == role);
        let seconds: f64 = of_role.map(|group| group.cpu_seconds).sum();
        let share = share_of_cpu(seconds, self.service.cpu_seconds.total())?;
        let handshakes = self.handshakes(|_| true);
        if handshakes < FEW_HANDSHAKES {
            return None;
        }
        Estimate::share(share.min(1.0) * handshakes, handshakes)
    }

    fn resumption(self) -> Option<Estimate> {
        let known = |group: &HandshakeGroup| {
            group.outcome == Outcome::Completed && group.resumption != Resumption::Unknown
        };
        let all = self.handshakes(known);
        let resumed = self.handshakes(|group| known(group) && group.resumption.is_one());
        (all >= FEW_HANDSHAKES)
            .then(|| Estimate::share(resumed, all))?
            .map(Estimate::counted)
    }

    fn turns_by_connection(self) -> Option<Estimate> {
        let known = self.is_whole() && self.service.turns_are_requests();
        let connections = self.connections().filter(|_| known)?;
        let (ended, turns) = (connections.ended(), connections.turns());
        if ended < FEW_HANDSHAKES || turns <= 0.0 {
            return None;
        }
        let mean = turns / ended;
        let squares: f64 = connections
            .classes()
            .map(|(turns, number)| number * (turns - mean).powi(2))
            .sum();
        let error = squares / ended / mean.powi(2) / ended;
        Estimate::ratio(mean, mean, error).map(Estimate::counted)
    }

    fn time_wait(self) -> Option<Estimate> {
        let requests = self.requests()?;
        let roles = self.service.connections.iter();
        self.count_by_request(
            roles.map(|one| float(one.time_wait_created)).sum(),
            requests,
        )
    }

    /// Half an event is added for the logarithm: there may be none.
    fn count_by_request(self, count: f64, requests: f64) -> Option<Estimate> {
        let value = (count + 0.5) / requests;
        let error = 1.0 / (count + 0.5) + 1.0 / requests;
        Estimate::ratio(count / requests, value, error).map(Estimate::counted)
    }

    /// Handshakes in the role in which it is looked at.
    fn handshakes(self, wanted: impl Fn(&HandshakeGroup) -> bool) -> f64 {
        let role = self.role();
        let groups = self.service.handshakes.iter();
        let wanted = groups.filter(|group| group.role == role && wanted(group));
        wanted.map(|group| float(group.count)).sum()
    }

    /// `server`, or `client` of a service that is nothing else.
    pub fn role(self) -> Role {
        let handshakes = self.service.handshakes.iter().map(|one| one.role);
        let connections = self.service.connections.iter().map(|one| one.role);
        let mut roles = handshakes.chain(connections).peekable();
        let client = roles.peek().is_some() && roles.all(|role| role == Role::Client);
        if client { Role::Client } else { Role::Server }
    }

    fn connections(self) -> Option<&'a Connections> {
        let role = self.role();
        self.service.connections.iter().find(|one| one.role == role)
    }

    fn unit(self, unit: Unit) -> Option<&'a UnitCost> {
        let mut costs = self.service.unit_costs.iter();
        costs.find(|cost| cost.unit == unit && cost.count > 0.0)
    }

    /// Whether turns of nearly all connections are known.
    fn is_whole(self) -> bool {
        let roles = self.service.connections.iter();
        let (opened, ended) = roles.fold((0.0, 0.0), |(opened, ended), one| {
            (opened + float(one.opened), ended + one.ended())
        });
        let seen = opened + float(self.service.connections_from_before);
        ended >= ENOUGH_SEEN * seen
    }
}

impl Connections {
    /// How many ended.
    fn ended(&self) -> f64 {
        self.closed.iter().map(|closed| float(closed.count)).sum()
    }

    /// Turns, and how many connections had them.
    fn classes(&self) -> impl Iterator<Item = (f64, f64)> {
        let turns = self.closed.iter().flat_map(|closed| &closed.turns);
        turns.map(|class| {
            let middle = (f64::from(class.from) + f64::from(class.to)) / 2.0;
            (middle, float(class.connections))
        })
    }

    fn turns(&self) -> f64 {
        self.classes().map(|(turns, number)| turns * number).sum()
    }
}

/// Relative variance of a share of samples, binomial; half a sample is added. None for too
/// few in all.
fn of_samples(hits: f64, all: f64) -> Option<f64> {
    (all >= FEW_SAMPLES).then(|| (1.0 - hits / all).max(0.0) / (hits + 0.5))
}

/// The standard error of the mean; for reports from before it was told, from quantiles.
fn standard_error(cpu: &Quantiles, count: f64) -> f64 {
    cpu.mean_error.unwrap_or_else(|| {
        let upper = ((cpu.p99 - cpu.p50) / NORMAL_99).max((cpu.p90 - cpu.p50) / NORMAL_90);
        upper.max(0.0) / count.sqrt()
    })
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
const fn float(count: u64) -> f64 {
    count as f64
}
