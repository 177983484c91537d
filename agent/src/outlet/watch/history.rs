//! The last hour in points of a few seconds, in bounded memory.
//!
//! A point holds what was added to the ledger in its time, not a rate: the points of an hour
//! add up to what the ledger gained in that hour, to the nanosecond. A service has a series
//! of its own while it is among those that use the most CPU; the others are added up under
//! [`OTHER`]. A service that loses its series loses nothing: its points are added to that of
//! the others.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::evidence::Role;
use crate::ledger::{Ledger, OTHER};

use super::figures::{Figure, Sums};

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
    /// An hour. A series takes 8 bytes for a point and figure, and has at most 74 figures:
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

/// What came in an interval, and what stood at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What was added to the ledger.
    pub sums: Sums,
    /// TIME_WAIT sockets at the end, by role; none where there never were any.
    pub time_wait: BTreeMap<Role, u64>,
}

impl Slice {
    fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.time_wait.values().all(|count| *count == 0)
    }

    fn add(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        for (role, count) in &other.time_wait {
            *self.time_wait.entry(*role).or_default() += count;
        }
    }
}

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

/// A figure over time, or what stood: a value for each point.
#[derive(Clone, Debug)]
struct Column {
    values: VecDeque<u64>,
    /// Number of the last point in which it was not zero.
    last: u64,
}

/// What there is a column for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    /// What came in a point.
    Sum(Figure),
    /// TIME_WAIT sockets at its end.
    TimeWait(Role),
}

impl Heading {
    /// Its name in JSON.
    pub fn name(self) -> String {
        match self {
            Self::Sum(figure) => figure.name(),
            Self::TimeWait(role) => format!("time_wait/{}", role.label()),
        }
    }

    /// A value in base units.
    #[allow(clippy::cast_precision_loss, reason = "sockets of a host")]
    pub fn in_base_units(self, value: u64) -> f64 {
        match self {
            Self::Sum(figure) => figure.in_base_units(value),
            Self::TimeWait(_) => value as f64,
        }
    }
}

/// One service over time.
#[derive(Clone, Debug, Default)]
pub struct Series(BTreeMap<Heading, Column>);

impl Series {
    /// Each figure that was not zero throughout, with a value for each point, oldest first.
    pub fn columns(&self) -> impl Iterator<Item = (Heading, &VecDeque<u64>)> {
        let columns = self.0.iter();
        columns.map(|(heading, column)| (*heading, &column.values))
    }

    /// Sum of a figure over the newest `points`.
    pub fn sum(&self, figure: Figure, points: usize) -> u64 {
        let column = self.0.get(&Heading::Sum(figure));
        column.map_or(0, |column| column.values.iter().rev().take(points).sum())
    }

    /// Sums of all figures over all points that are held.
    pub fn total(&self) -> Sums {
        let sums = self.0.keys().filter_map(|heading| match heading {
            Heading::Sum(figure) => Some((*figure, self.sum(*figure, usize::MAX))),
            Heading::TimeWait(_) => None,
        });
        sums.collect()
    }

    /// Adds a point; `at` is its number, and `held` points are held before it.
    fn push(&mut self, slice: &Slice, at: u64, held: usize, bounds: Bounds) {
        let sums = slice.sums.iter();
        let sums = sums.map(|(figure, value)| (Heading::Sum(figure), value));
        let standing = slice.time_wait.iter();
        let standing = standing.map(|(role, count)| (Heading::TimeWait(*role), *count));
        for (heading, value) in sums.chain(standing).filter(|(_, value)| *value > 0) {
            let column = self.0.entry(heading).or_insert_with(|| {
                let mut values = VecDeque::with_capacity(bounds.points);
                values.resize(held, 0);
                Column { values, last: at }
            });
            column.values.push_back(value);
            column.last = at;
        }
        for column in self.0.values_mut().filter(|column| column.last != at) {
            column.values.push_back(0);
        }
    }

    /// Forgets the oldest point, and the figures that are zero in all others.
    fn pop(&mut self, oldest: u64) {
        self.0.retain(|_, column| {
            column.values.pop_front();
            column.last >= oldest
        });
    }

    /// Adds those of another service, point by point.
    fn fold(&mut self, other: Self) {
        for (heading, column) in other.0 {
            let Some(kept) = self.0.get_mut(&heading) else {
                self.0.insert(heading, column);
                continue;
            };
            kept.last = kept.last.max(column.last);
            for (sum, value) in kept.values.iter_mut().zip(column.values) {
                *sum = sum.saturating_add(value);
            }
        }
    }
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
            let time_wait = slice.time_wait.clone();
            (name.clone(), Slice { sums, time_wait })
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
    pub const fn spans(&self) -> &VecDeque<Span> {
        &self.spans
    }

    /// Number of the newest point: 1 for the first ever, 0 before.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Services with a series of their own, by name.
    pub fn series(&self) -> impl Iterator<Item = (&str, &Series)> {
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
            series.push(&slice, self.newest, held, self.bounds);
        }
        self.rest.push(&rest, self.newest, held, self.bounds);
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
            !series.0.is_empty()
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
