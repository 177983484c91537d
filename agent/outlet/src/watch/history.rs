//! The last hour in points of a few seconds, in bounded memory.
//!
//! A point holds what was added to the ledger in its time, not a rate: the points of an hour
//! add up to what the ledger gained in that hour, to the nanosecond. A service has a series
//! of its own while it is among those that use the most CPU; the others are added up under
//! [`OTHER`]. A service that loses its series loses nothing: its points are added to that of
//! the others.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tlsprof_ledger::{Ledger, OTHER};

use super::figures::Sums;
use super::series::{Series, Slice};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Time of a point.
    pub point: Duration,
    /// Points that are kept.
    pub points: usize,
    /// Services with a series of their own.
    pub services: usize,
}

impl Default for Bounds {
    /// An hour. A series takes 8 bytes for a point and figure, and has at most 76 figures:
    /// 11 MB for 25 services and the others, if each has them all. A web server has about 30.
    fn default() -> Self {
        Self {
            point: Duration::from_secs(5),
            points: 720,
            services: 25,
        }
    }
}

/// A service takes the series of another when it uses so many times its CPU: else two that
/// are alike would take turns.
const MARGIN: f64 = 2.0;
/// What is left of a service's weight with each point: half after ten minutes of 5 s.
const DECAY: f64 = 0.994;

/// All services in an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// How long it was.
    pub length: Duration,
    /// By name.
    pub services: BTreeMap<String, Slice>,
}

/// When a point was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its end, since the profile began.
    pub end: Duration,
    /// How long it was.
    pub length: Duration,
}

/// State of a ledger at a reading.
#[derive(Clone, Debug, Default)]
struct Reading {
    at: Duration,
    services: BTreeMap<String, Slice>,
}

impl Reading {
    fn of(ledger: &Ledger, at: Duration) -> Self {
        let services = ledger.services().map(|(name, account)| {
            let kept = account.connections.iter();
            let time_wait = kept.map(|(role, kept)| (*role, kept.time_wait_standing(ledger.now())));
            let slice = Slice {
                sums: Sums::of(account),
                time_wait: time_wait.collect(),
            };
            (name.to_owned(), slice)
        });
        Self {
            at,
            services: services.collect(),
        }
    }

    /// What came since an earlier reading.
    fn since(&self, before: &Self) -> Interval {
        let none = Sums::default();
        let services = self.services.iter().map(|(name, slice)| {
            let before = before.services.get(name);
            let sums = slice.sums.since(before.map_or(&none, |slice| &slice.sums));
            let slice = Slice {
                sums,
                ..slice.clone()
            };
            (name.clone(), slice)
        });
        Interval {
            length: self.at.saturating_sub(before.at),
            services: services.collect(),
        }
    }
}

/// The last hour of all services.
#[derive(Clone, Debug)]
pub struct History {
    bounds: Bounds,
    /// The last reading, and that at the end of the last point.
    read: Reading,
    closed: Reading,
    /// What came between the last two readings, and in the last point.
    last: Interval,
    last_point: Interval,
    spans: VecDeque<Span>,
    /// How many points there ever were: the number of the newest.
    newest: u64,
    series: BTreeMap<String, Series>,
    rest: Series,
    /// CPU time, in seconds, that fades with time.
    weights: BTreeMap<String, f64>,
}

impl History {
    /// A history that begins together with its ledger, which is empty.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            read: Reading::default(),
            closed: Reading::default(),
            last: Interval::default(),
            last_point: Interval::default(),
            spans: VecDeque::with_capacity(bounds.points),
            newest: 0,
            series: BTreeMap::new(),
            rest: Series::default(),
            weights: BTreeMap::new(),
        }
    }

    /// Takes a reading of the ledger, at a time since the profile began. A point ends with
    /// the first reading in the time of the next one.
    pub fn read(&mut self, ledger: &Ledger, at: Duration) {
        let reading = Reading::of(ledger, at);
        self.last = reading.since(&self.read);
        let point = self.bounds.point.as_nanos().max(1);
        if at.as_nanos() / point > self.closed.at.as_nanos() / point {
            self.last_point = reading.since(&self.closed);
            self.closed.clone_from(&reading);
            self.close();
        }
        self.read = reading;
    }

    /// What came between the last two readings.
    pub const fn last(&self) -> &Interval {
        &self.last
    }

    /// What came in the last whole point; nothing before the first has ended.
    pub const fn last_point(&self) -> &Interval {
        &self.last_point
    }

    /// When the points that are held were, oldest first.
    pub(crate) const fn spans(&self) -> &VecDeque<Span> {
        &self.spans
    }

    /// Number of the newest point: 1 for the first ever, 0 before.
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Services with a series of their own, by name.
    #[cfg(test)]
    pub(crate) fn series(&self) -> impl Iterator<Item = (&str, &Series)> {
        self.series
            .iter()
            .map(|(name, series)| (name.as_str(), series))
    }

    /// A service over time; that of [`OTHER`] holds all that have no series of their own.
    pub fn of(&self, service: &str) -> Option<&Series> {
        if service == OTHER {
            return Some(&self.rest);
        }
        self.series.get(service)
    }

    /// Adds the last point to the series.
    fn close(&mut self) {
        self.make_room();
        let held = self.spans.len();
        self.newest += 1;
        self.spans.push_back(Span {
            end: self.closed.at,
            length: self.last_point.length,
        });
        self.weigh();
        let mut slices = self.last_point.services.clone();
        let mut rest = Slice::default();
        for name in self.by_weight() {
            let Some(slice) = slices.remove(&name) else {
                continue;
            };
            if !self.has_place(&name, &slice) {
                rest.add(&slice);
                continue;
            }
            let series = self.series.entry(name).or_default();
            series.push(&slice, self.newest, held, self.bounds.points);
        }
        self.rest.push(&rest, self.newest, held, self.bounds.points);
    }

    /// Forgets what is over an hour old.
    fn make_room(&mut self) {
        if self.spans.len() < self.bounds.points {
            return;
        }
        self.spans.pop_front();
        let oldest = self.newest - self.spans.len() as u64 + 1;
        self.rest.pop(oldest);
        self.series.retain(|_, series| {
            series.pop(oldest);
            !series.is_empty()
        });
    }

    fn weigh(&mut self) {
        for (name, slice) in &self.last_point.services {
            let weight = self.weights.entry(name.clone()).or_default();
            *weight = weight.mul_add(DECAY, slice.sums.cpu().as_secs_f64());
        }
    }

    fn by_weight(&self) -> Vec<String> {
        let mut names: Vec<_> = self.weights.iter().collect();
        names.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether a service has a series, or gets one now.
    fn has_place(&mut self, name: &str, slice: &Slice) -> bool {
        if self.series.contains_key(name) {
            return true;
        }
        if name == OTHER || slice.is_empty() {
            return false;
        }
        if self.series.len() < self.bounds.services {
            return true;
        }
        let weight = |name: &str| self.weights.get(name).copied().unwrap_or_default();
        let lightest = self.series.keys();
        let lightest = lightest.min_by(|one, other| weight(one).total_cmp(&weight(other)));
        let Some(lightest) = lightest.filter(|one| weight(name) > MARGIN * weight(one)) else {
            return false;
        };
        let lightest = lightest.clone();
        if let Some(series) = self.series.remove(&lightest) {
            self.rest.fold(series);
        }
        true
    }
}
