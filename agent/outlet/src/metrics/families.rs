//! All metrics in one table: name, type, labels, help, and what `docs/metrics.md` adds to the help.
//!
//! The unit is the last word of a name. A test writes the tables of `docs/metrics.md` and
//! `dashboards/metrics.json` from here; queries of dashboards and rules are checked against the
//! latter.

use std::borrow::Cow;

use prometheus_client::metrics::MetricType;

/// A metric with `N` labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family<const N: usize> {
    /// Without the `_total` of a counter, which the encoder adds.
    pub name: &'static str,
    pub kind: MetricType,
    pub labels: [&'static str; N],
    pub help: &'static str,
}

/// The labels of a histogram's series.
pub(super) type OwnedLabels<const N: usize> = [(&'static str, Cow<'static, str>); N];

impl<const N: usize> Family<N> {
    /// Labels with these values, which are in the order of the table.
    pub fn with<V>(&self, values: [V; N]) -> [(&'static str, V); N] {
        let mut names = self.labels.into_iter();
        values.map(|value| (names.next().unwrap_or_default(), value))
    }
}

/// A row as the documentation has it.
#[cfg(test)]
pub(super) struct Row {
    pub name: String,
    pub kind: String,
    pub labels: &'static [&'static str],
    pub help: &'static str,
    pub note: &'static str,
}

macro_rules! families {
    ($($chapter:literal: $(
        $family:ident = $kind:ident $name:literal [$($label:literal)*] $help:literal $($note:literal)?;
    )*)*) => {
        $($(
            #[doc = $help]
            pub(super) const $family: Family<{ <[&str]>::len(&[$($label),*]) }> = Family {
                name: $name,
                kind: MetricType::$kind,
                labels: [$($label),*],
                help: $help,
            };
        )*)*

        /// All metrics by the chapters of the documentation.
        #[cfg(test)]
        pub(super) fn chapters() -> Vec<(&'static str, Vec<Row>)> {
            vec![$(($chapter, vec![$(Row {
                name: match MetricType::$kind {
                    MetricType::Counter => concat!($name, "_total").to_owned(),
                    _ => $name.to_owned(),
                },
                kind: stringify!($kind).to_lowercase(),
                labels: &[$($label),*],
                help: $help,
                note: concat!($($note)?),
            }),*])),*]
        }
    };
}

families! {
"Handshakes":
HANDSHAKES = Counter "tlsprof_handshakes"
    ["service_name" "role" "version" "cipher" "group" "signature" "resumption" "outcome"]
    "TLS handshakes that ended, by what was negotiated and how they ended.";
HANDSHAKE_CPU = Histogram "tlsprof_handshake_cpu_seconds" ["service_name" "role" "resumption"]
    "CPU time of one completed TLS handshake, user and system; of those in tlsprof_handshakes_offloaded_total a lower bound"
    "Time off the CPU is not included, interrupts that hit the thread are.";
HANDSHAKE_DURATION = Histogram "tlsprof_handshake_duration_seconds" ["service_name" "role" "resumption"]
    "Wall time of one completed TLS handshake, first call to end";
HANDSHAKE_OUTCOME_CPU = Counter "tlsprof_handshake_outcome_cpu_seconds" ["service_name" "role" "outcome"]
    "CPU time of TLS handshakes that ended, by how they ended. Of those in tlsprof_handshakes_offloaded_total it is a lower bound."
    "For `completed` it is the sum of the histogram.";
HANDSHAKE_STEP_CPU = Counter "tlsprof_handshake_step_cpu_seconds" ["service_name" "role" "step"]
    "CPU time of TLS handshakes by step, estimated for handshakes whose steps were not measured."
    "The steps, with `unmeasured`, add up to all outcomes at every moment.";
HANDSHAKE_FLIGHT_CPU = Counter "tlsprof_handshake_flight_cpu_seconds" ["service_name" "role" "flight"]
    "CPU time of TLS handshakes that only socket calls showed, up to the server's first answer and after it."
    "`first`: up to the server's first answer, in a full handshake of a server key generation and signature; \
     `last`: from the peer's next bytes to the end.";
HANDSHAKES_BY_SOURCE = Counter "tlsprof_handshakes_by_source" ["service_name" "role" "source"]
    "TLS handshakes that ended, by the source of their figures."
    "The same handshakes as in `tlsprof_handshakes_total`.";
HANDSHAKES_OFFLOADED = Counter "tlsprof_handshakes_offloaded" ["service_name" "role"]
    "TLS handshakes answered by another thread than the one that read the socket, where further threads may have worked; their CPU time is a lower bound.";
AGREEMENT_HANDSHAKES = Counter "tlsprof_agreement_handshakes" ["service_name" "role"]
    "Completed TLS handshakes that both sources saw.";
AGREEMENT_CPU = Counter "tlsprof_agreement_cpu_seconds" ["service_name" "role" "source"]
    "CPU time of the TLS handshakes that both sources saw, as each measured it.";
HANDSHAKE_WAIT = Counter "tlsprof_handshake_wait_seconds" ["service_name" "reason"]
    "Time off the CPU inside TLS handshakes, by reason."
    "Reasons: `run_queue`, `lock`, `disk`, `network`, `random`, `pipe`, `other`, and `between_calls` of a \
     non-blocking handshake.";

"CPU time":
SERVICE_CPU = Counter "tlsprof_service_cpu_seconds" ["service_name" "mode"]
    "CPU time that the kernel accounts to the processes of the service."
    "Processes that ended are included.";
CPU = Counter "tlsprof_cpu_seconds" ["service_name" "activity" "mode"]
    "CPU time of the service by activity: samples, scaled to what the kernel accounts.";
CPU_SAMPLES = Counter "tlsprof_cpu_samples" ["service_name" "activity" "mode"]
    "CPU samples of the service by activity.";
CPU_SAMPLES_UNCLASSIFIED = Counter "tlsprof_cpu_samples_unclassified" ["service_name"]
    "CPU samples in kernel functions that are on no list; they are in application."
    "Their mode is `system`.";
CPU_SAMPLE_PERIOD = Gauge "tlsprof_cpu_sample_period_seconds" []
    "Time between two samples of a CPU; 0 where none are taken."
    "`tlsprof doctor` shows the reason.";
CPU_RECONCILIATION_ERROR = Gauge "tlsprof_cpu_reconciliation_error_ratio" ["service_name"]
    "How far the activities of the last minute are from the CPU time that the kernel accounts."
    "A share of the latter, over the last minute in which the service used CPU.";
CPU_SAMPLED = Gauge "tlsprof_cpu_sampled_ratio" ["service_name"]
    "What the samples of the last minute stand for, as a share of the CPU time that the kernel accounts."
    "Each sample stands for a period.";

"Hellos":
HELLOS = Counter "tlsprof_hellos" ["service_name" "role"]
    "TLS handshakes whose ClientHello was read.";
RESUMPTION_ATTEMPTS = Counter "tlsprof_resumption_attempts" ["service_name" "role" "means" "attempt"]
    "Attempts of clients to resume a TLS session, by means and by what became of them.";
OFFERED_VERSIONS = Counter "tlsprof_offered_versions" ["service_name" "role" "version"]
    "ClientHellos that offered a TLS version.";
OFFERED_GROUPS = Counter "tlsprof_offered_groups" ["service_name" "role" "group"]
    "ClientHellos that offered a key exchange group.";
HELLO_FEATURES = Counter "tlsprof_hello_features" ["service_name" "role" "feature"]
    "ClientHellos with a feature."
    "Features: `server_name` (SNI), a `post_quantum` group, `early_data`; also handshakes with a \
     `hello_retry_request`, and connections that began with a `proxy_protocol` header.";
APPLICATION_PROTOCOLS = Counter "tlsprof_application_protocols" ["service_name" "role" "protocol"]
    "Application protocols (ALPN) that a server chose in clear, up to TLS 1.2."
    "TLS 1.3 encrypts them.";
TLS_UPGRADES = Counter "tlsprof_tls_upgrades" ["service_name" "role" "protocol"]
    "TLS handshakes after a protocol switched to TLS (STARTTLS)."
    "Protocols: `smtp`, `ftp`, `imap`, `pop3`, `ldap`, `postgresql`, `mysql`.";
ALERTS = Counter "tlsprof_alerts" ["service_name" "direction" "description"]
    "TLS alerts that travelled in clear, during handshakes. Encrypted ones, in TLS 1.3, have no name and are failed handshakes only."
    "They travel in clear up to the ServerHello in TLS 1.3, up to ChangeCipherSpec before. The length of a \
     later one in TLS 1.3 shows that it is an alert, but not which.";
APPLICATION_BYTES = Counter "tlsprof_application_bytes" ["service_name" "direction" "cipher"]
    "Payload of TLS connections that ended, after their handshakes, records and all, in bytes.";

"TCP connections":
CONNECTIONS_OPENED = Counter "tlsprof_connections_opened" ["service_name" "role"]
    "TCP connections that were opened."
    "Counted when their owner is known.";
CONNECTIONS_CLOSED = Counter "tlsprof_connections_closed" ["service_name" "role" "closed_by"]
    "TCP connections that ended, by who closed first: by close_notify, FIN or RST.";
CONNECTIONS_RESET = Counter "tlsprof_connections_reset" ["service_name" "role" "closed_by"]
    "TCP connections that ended by RST from either side, by who closed first."
    "They are in `tlsprof_connections_closed_total` too.";
CONNECTION_TURNS = Histogram "tlsprof_connection_turns" ["service_name" "role"]
    "Turns (a request and its answer) of one TCP connection that ended";
CONNECTION_DURATION = Histogram "tlsprof_connection_duration_seconds" ["service_name" "role"]
    "Time of one TCP connection from its opening to the end of the socket"
    "It begins at the end of the TCP handshake.";
CONNECTION_BYTES = Counter "tlsprof_connection_bytes" ["service_name" "role" "direction"]
    "Payload of TCP connections that ended, in bytes."
    "As TCP carried it, each byte once.";
CONNECTIONS_FROM_BEFORE = Counter "tlsprof_connections_from_before" ["service_name"]
    "TCP connections that ended, but had been open before the agent started; in no other metric.";
CONNECTIONS_OWNERLESS = Counter "tlsprof_connections_ownerless" []
    "TCP connections that ended before a process read, wrote or closed them."
    "Connections of the whole host, on kernels that lose the end of a socket, and those of the kernel itself.";
TIME_WAIT_CREATED = Counter "tlsprof_time_wait_created" ["service_name" "role"]
    "TIME_WAIT sockets that connections left on this side."
    "Data or a reset of the peer that comes after the close ends such a socket at once: clients that close \
     with unread data create many that end at once.";
TIME_WAIT_SOCKETS = Gauge "tlsprof_time_wait_sockets" ["service_name" "role"]
    "TIME_WAIT sockets present: created in the last 60 s, and bounded by the kernel's own count."
    "See below.";
EPHEMERAL_PORTS_USED = Gauge "tlsprof_ephemeral_ports_used_ratio" ["service_name"]
    "Share of the ephemeral ports that connections to the busiest remote endpoint take up, open or in TIME_WAIT."
    "The ports are those of `ip_local_port_range`; absent if the service connects nowhere. Connections from \
     before the agent's start are not included. On loopback it may be too high: there the kernel takes a port \
     in TIME_WAIT again after a second.";

"Accept queues":
LISTEN_OVERFLOWS = Counter "tlsprof_listen_overflows" ["service_name"]
    "Packets that the kernel dropped because an accept queue of the service was full."
    "SYNs, and the ends of TCP handshakes. One client sends several, as it tries again.";
ACCEPT_QUEUE_LENGTH = Gauge "tlsprof_accept_queue_length" ["service_name"]
    "Connections that wait to be accepted in the fullest accept queue of the service."
    "The fullest has the greatest share taken.";
ACCEPT_QUEUE_LIMIT = Gauge "tlsprof_accept_queue_limit" ["service_name"]
    "How many may wait in that queue; the kernel lets one more in."
    "The smaller of the backlog given to listen(2) and `net.core.somaxconn`.";
ACCEPT_WAIT = Histogram "tlsprof_accept_wait_seconds" ["service_name"]
    "Time of one TCP connection from its opening to accept"
    "Counted when the connection is first read or written. Only with the capability `accept_wait`: without, \
     there is no upper bound in its place.";

"Findings":
FINDING = Gauge "tlsprof_finding" ["service_name" "role" "finding" "severity"]
    "1 for each finding on the last 5 to 10 minutes of a service; it ends when that is over."
    "Judged every 15 s.";

"The agent itself":
AGENT_BUILD_INFO = Gauge "tlsprof_agent_build_info" ["version"]
    "Always 1; the version is a label.";
AGENT_CPU = Counter "tlsprof_agent_cpu_seconds" []
    "CPU time of the agent's process.";
AGENT_RESIDENT_MEMORY = Gauge "tlsprof_agent_resident_memory_bytes" []
    "Resident memory of the agent's process.";
AGENT_BPF_RUN = Counter "tlsprof_agent_bpf_run_seconds" []
    "Time inside the agent's BPF programs, spent by the targets.";
AGENT_BPF_RUNS = Counter "tlsprof_agent_bpf_runs" []
    "Runs of the agent's BPF programs.";
AGENT_PROBE_HITS = Counter "tlsprof_agent_probe_hits" []
    "Hits of probes on targets.";
AGENT_TARGET_COST = Counter "tlsprof_agent_target_cost_seconds" []
    "Estimated CPU time that targets spent on probes and hooks, programs and what leads to them."
    "All processes of the host: on probes, hits times the cost of one on this machine and the time in their \
     programs; on hooks at socket calls and in the scheduler, the time in their programs and runs times what \
     leads to one on this machine. Cache effects are not included: beside nginx it came to 0.6 (handshakes) to \
     0.8 (keep-alive) of the real cost (`tests/bench/hooks.py`).";
AGENT_EVENTS_LOST = Counter "tlsprof_agent_events_lost" ["reason"]
    "Records and calls that were lost, by reason."
    "See [lost data](#lost-data).";
AGENT_CAPABILITY = Gauge "tlsprof_agent_capability" ["capability" "state"]
    "1 for the state that the capability is in, 0 for the others."
    "States: `available`, `degraded`, `unavailable`; `tlsprof doctor` shows the reason.";
AGENT_STEP_PROBES_DUTY = Gauge "tlsprof_agent_step_probes_duty_ratio" []
    "Share of the time in which the probes of public-key steps are attached."
    "Below 1 the budget was exceeded.";
AGENT_PROFILED_IMAGES = Gauge "tlsprof_agent_profiled_images" []
    "Executable files that have probes.";
AGENT_SERVICES = Gauge "tlsprof_agent_services" []
    "Services that are running and known to the agent.";

"Load tests":
REPORT_RUNNING = Gauge "tlsprof_report_running" []
    "1 while `tlsprof report -- COMMAND` runs a command on this host, else 0.";
REPORT_START_TIME = Gauge "tlsprof_report_start_time_seconds" []
    "When the last such command was started, since 1970."
    "Absent if none was since the host started.";
}
