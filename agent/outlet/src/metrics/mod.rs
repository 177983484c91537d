//! The ledger as Prometheus metrics; `docs/metrics.md` describes them.
//!
//! Counters are read from the ledger when a scrape comes, so that the two can
//! never disagree. Only the histograms are kept here.

mod accept_queue;
mod collector;
mod connections;
mod cpu;
mod families;
mod findings;
pub(crate) mod format;
mod hellos;
mod load_tests;
mod process;
mod renewal;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
mod sources;
mod status;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::iter::once;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use prometheus_client::encoding::{prometheus_protobuf, text};
use prometheus_client::metrics::family::{self, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::Registry;

use tlsprof_advise::Finding;
use tlsprof_common::{Connection, Opening, Outcome, Resumption, Role};
use tlsprof_evidence::{Evidence, Handshake};

use collector::{AgentCollector, LedgerCollector, serves};
use families::{
    ACCEPT_WAIT, CONNECTION_DURATION, CONNECTION_TURNS, Family, HANDSHAKE_CPU, HANDSHAKE_DURATION,
    OwnedLabels,
};
use findings::{FindingsCollector, Standing};
use format::Format;

pub use renewal::Renewal;
use status::SharedStatus;
pub use status::{AgentStatus, ProcessStatus};
pub use tlsprof_ledger::SharedLedger;
/// The ledger, written by the profile and read by scrapes.
use tlsprof_ledger::{bounded, bounded_long};

/// Classic buckets of the CPU time of a handshake, in seconds: five to a decade
/// (a bucket is at most 60% wide), from 25 µs, less than any handshake takes,
/// to 100 ms, more than RSA-8192 or DHE-4096 take. A resumption is about 100 to
/// 300 µs, ECDSA P-256 300 to 500 µs, RSA-2048 1 to 2 ms.
const CPU_BUCKETS: [f64; 19] = [
    25e-6, 40e-6, 63e-6, 100e-6, 160e-6, 250e-6, 400e-6, 630e-6, 1e-3, 1.6e-3, 2.5e-3, 4e-3,
    6.3e-3, 10e-3, 16e-3, 25e-3, 40e-3, 63e-3, 100e-3,
];

/// Classic buckets of the wall time of a handshake, in seconds: three to a
/// decade, as round trips of networks spread more than CPU time does, from
/// 100 µs (loopback) to 60 s (the usual time limit of servers).
const DURATION_BUCKETS: [f64; 18] = [
    100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];

/// Classic buckets of the turns of a connection: the usual limits of requests
/// per connection (Domino 5, Apache 100, nginx 1,000) and what lies between.
const TURN_BUCKETS: [f64; 14] = [
    0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 10_000.0,
];

/// Classic buckets of the duration of a connection, in seconds: two to a decade
/// from 1 ms (one request on a local network) to an hour.
const CONNECTION_BUCKETS: [f64; 14] = [
    1e-3, 3e-3, 10e-3, 30e-3, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];

/// Classic buckets of the wait in the accept queue, in seconds: two to a decade, from
/// 10 µs (a thread that waits in accept) to 30 s (no client waits longer).
const ACCEPT_BUCKETS: [f64; 14] = [
    10e-6, 30e-6, 100e-6, 300e-6, 1e-3, 3e-3, 10e-3, 30e-3, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0,
];

/// Native buckets grow by at most 10%. From 100 µs to 60 s that makes 154 of
/// them; beyond this number the resolution is halved.
const NATIVE_BUCKET_FACTOR: f64 = 1.1;
const NATIVE_BUCKETS: usize = 160;

/// Makes histograms with the buckets of one metric.
#[derive(Clone, Copy, Debug)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        let native = NativeHistogramConfig::new(NATIVE_BUCKET_FACTOR).max_buckets(NATIVE_BUCKETS);
        Histogram::new_classic_and_native(self.0.iter().copied(), native)
    }
}

/// Series of one service, by the values of their other labels.
type OfService<const N: usize> = Vec<([&'static str; N], Histogram)>;

/// Histograms by service and `N` other labels, `ALL` together.
struct Histograms<const N: usize, const ALL: usize> {
    family: Family<ALL>,
    series: family::Family<OwnedLabels<ALL>, Histogram, Buckets>,
    /// The same, to be found without a key that owns the name of the service.
    known: Mutex<HashMap<String, OfService<N>>>,
}

impl<const N: usize, const ALL: usize> Histograms<N, ALL> {
    fn register(registry: &mut Registry, family: Family<ALL>, buckets: &'static [f64]) -> Self {
        let series = family::Family::new_with_constructor(Buckets(buckets));
        registry.register(family.name, family.help, series.clone());
        Self {
            family,
            series,
            known: Mutex::default(),
        }
    }

    /// Of these labels; one without observations from now on, if there was none.
    fn series(&self, service_name: &str, others: [&'static str; N]) -> Histogram {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_service = known.get(service_name);
        let series = of_service.and_then(|all| all.iter().find(|(labels, _)| *labels == others));
        if let Some((_, series)) = series {
            return series.clone();
        }
        let mut values = once(service_name.to_owned().into()).chain(others.map(Cow::Borrowed));
        let values = [(); ALL].map(|()| values.next().unwrap_or_default());
        let series = self.series.get_or_create_owned(&self.family.with(values));
        let of_service = known.entry(service_name.to_owned()).or_default();
        of_service.push((others, series.clone()));
        series
    }

    fn observe(&self, service_name: &str, others: [&'static str; N], value: f64) {
        self.series(service_name, others).observe(value);
    }
}

/// All metrics of the agent.
pub struct Metrics {
    registry: Registry,
    ledger: SharedLedger,
    agent: SharedStatus,
    findings: Arc<RwLock<Standing>>,
    cpu: Histograms<2, 3>,
    duration: Histograms<2, 3>,
    turns: Histograms<1, 2>,
    connection_duration: Histograms<1, 2>,
    accept_wait: Histograms<0, 1>,
    renewal: Renewal,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics over that ledger.
    pub fn new(ledger: &SharedLedger) -> Self {
        let agent = SharedStatus::default();
        let findings = Arc::new(RwLock::new(Standing::default()));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(LedgerCollector(Arc::clone(ledger))));
        let to = &mut registry;
        let cpu = Histograms::register(to, HANDSHAKE_CPU, &CPU_BUCKETS);
        let duration = Histograms::register(to, HANDSHAKE_DURATION, &DURATION_BUCKETS);
        let turns = Histograms::register(to, CONNECTION_TURNS, &TURN_BUCKETS);
        let connection_duration =
            Histograms::register(to, CONNECTION_DURATION, &CONNECTION_BUCKETS);
        let accept_wait = Histograms::register(to, ACCEPT_WAIT, &ACCEPT_BUCKETS);
        registry.register_collector(Box::new(FindingsCollector(Arc::clone(&findings))));
        registry.register_collector(Box::new(AgentCollector(Arc::clone(&agent))));
        Self {
            registry,
            ledger: Arc::clone(ledger),
            agent,
            findings,
            cpu,
            duration,
            turns,
            connection_duration,
            accept_wait,
            renewal: Renewal::default(),
        }
    }

    /// Where scrapes ask for CPU times of their moment.
    pub const fn renewal(&self) -> &Renewal {
        &self.renewal
    }

    /// Histograms of servers that nobody has used yet: the first clients may all come
    /// between two scrapes, and `rate()` has no increase where a series appears.
    fn begin_at_zero(&self) {
        let ledger = self.ledger.read().unwrap_or_else(PoisonError::into_inner);
        for (service_name, _) in ledger.services().filter(|(_, account)| serves(account)) {
            let server = Role::Server.label();
            let full = [server, Resumption::None.label()];
            self.cpu.series(service_name, full);
            self.turns.series(service_name, [server]);
            self.connection_duration.series(service_name, [server]);
        }
    }

    /// Adds a handshake or connection to the histograms; the ledger has it
    /// already, under this name of its service.
    pub fn observe(&self, service_name: &str, evidence: &Evidence) {
        match evidence {
            Evidence::Handshake(handshake) => self.observe_handshake(service_name, handshake),
            Evidence::Closed(connection) => self.observe_connection(service_name, connection),
            Evidence::Opened(opening) => self.observe_opening(service_name, opening),
            Evidence::Process(_) | Evidence::Hello(_) | Evidence::Compared(_) => {}
        }
    }

    fn observe_opening(&self, service_name: &str, opening: &Opening) {
        if let Some(wait) = opening.accept_wait {
            let wait = bounded(wait).as_secs_f64();
            self.accept_wait.observe(service_name, [], wait);
        }
    }

    fn observe_connection(&self, service_name: &str, connection: &Connection) {
        let Some(whole) = connection.whole else {
            return;
        };
        let role = [whole.role.label()];
        if let Some(turns) = whole.turns {
            self.turns.observe(service_name, role, turns.into());
        }
        let duration = bounded_long(whole.duration).as_secs_f64();
        self.connection_duration
            .observe(service_name, role, duration);
    }

    fn observe_handshake(&self, service_name: &str, handshake: &Handshake) {
        if handshake.outcome != Outcome::Completed {
            return;
        }
        let kind = [handshake.role.label(), handshake.resumption.label()];
        let cpu = bounded(handshake.cpu).as_secs_f64();
        self.cpu.observe(service_name, kind, cpu);
        let duration = bounded(handshake.duration).as_secs_f64();
        self.duration.observe(service_name, kind, duration);
    }

    /// Replaces what the agent says of itself.
    pub fn set_agent(&self, status: AgentStatus) {
        *self.agent.write().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Replaces the findings that stand.
    pub fn set_findings(&self, found: &[Finding]) {
        let standing = findings::standing(found);
        *self
            .findings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// All metrics in that format.
    ///
    /// # Errors
    /// When a metric cannot be encoded, which none of these can cause.
    pub(crate) fn encode(&self, format: Format) -> Result<Vec<u8>, EncodeError> {
        self.begin_at_zero();
        if format == Format::Protobuf {
            return prometheus_protobuf::encode_to_vec(&self.registry).map_err(EncodeError::from);
        }
        let mut open_metrics = String::new();
        text::encode(&mut open_metrics, &self.registry)?;
        Ok(match format {
            Format::PlainText => format::plain_text(&open_metrics).into_bytes(),
            Format::OpenMetrics | Format::Protobuf => open_metrics.into_bytes(),
        })
    }
}

/// The metrics could not be encoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodeError {
    /// As text.
    #[error("cannot encode the metrics as text")]
    Text(#[from] fmt::Error),
    /// As protobuf.
    #[error("cannot encode the metrics as protobuf")]
    Protobuf(#[from] prometheus_protobuf::EncodeError),
}

#[cfg(test)]
mod cardinality;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
