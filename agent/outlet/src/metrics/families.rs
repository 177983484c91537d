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
    pub(crate) help: &'static str,
}

/// The labels of a histogram's series.
pub(super) type OwnedLabels<const N: usize> = [(&'static str, Cow<'static, str>); N];

impl<const N: usize> Family<N> {
    /// Labels with these values, which are in the order of the table.
    pub(crate) fn with<V>(&self, values: [V; N]) -> [(&'static str, V); N] {
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
    pub(crate) help: &'static str,
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
    "TLS handshakes that ended, by negotiated parameters and outcome.";
HANDSHAKE_CPU = Histogram "tlsprof_handshake_cpu_seconds" ["service_name" "role" "resumption"]
    "CPU time per completed TLS handshake, user and system; a lower bound for those in \
     tlsprof_handshakes_offloaded_total"
    "Excludes off-CPU time, includes interrupts that hit the thread.";
HANDSHAKE_DURATION = Histogram "tlsprof_handshake_duration_seconds" ["service_name" "role" "resumption"]
    "Wall time per completed TLS handshake, from the first call to the end";
HANDSHAKE_OUTCOME_CPU = Counter "tlsprof_handshake_outcome_cpu_seconds" ["service_name" "role" "outcome"]
    "CPU time of TLS handshakes that ended, by outcome; a lower bound for those in \
     tlsprof_handshakes_offloaded_total."
    "For `completed` it equals the histogram's sum.";
HANDSHAKE_STEP_CPU = Counter "tlsprof_handshake_step_cpu_seconds" ["service_name" "role" "step"]
    "CPU time of TLS handshakes by step; extrapolated for handshakes whose steps were not measured."
    "Steps, including `unmeasured`, always add up to all outcomes.";
HANDSHAKE_STEP_SAMPLED_CPU = Counter "tlsprof_handshake_step_sampled_cpu_seconds" ["service_name" "step"]
    "CPU time of TLS handshakes by step, from CPU samples: also without probes in the TLS library."
    "Steps that samples cannot separate are one, such as `key_exchange+signing`. Only code that is identified \
     as a step's counts for it; the rest is `other`. They add up to the `handshake` activity of \
     `tlsprof_crypto_cpu_seconds_total`. Where probes measure steps too, compare shares: those of samples are lower bounds.";
HANDSHAKE_FLIGHT_CPU = Counter "tlsprof_handshake_flight_cpu_seconds" ["service_name" "role" "flight"]
    "CPU time of TLS handshakes seen only by socket calls, up to the server's first answer and \
     after it."
    "`first`: up to the server's first answer (key generation and signature in a server's full \
     handshake); `last`: from the peer's next bytes to the end.";
HANDSHAKES_BY_SOURCE = Counter "tlsprof_handshakes_by_source" ["service_name" "role" "source"]
    "TLS handshakes that ended, by measurement source."
    "The same handshakes as in `tlsprof_handshakes_total`.";
HANDSHAKES_OFFLOADED = Counter "tlsprof_handshakes_offloaded" ["service_name" "role"]
    "TLS handshakes whose CPU time is a lower bound: those answered by a different thread than the one that \
     read the socket, as other threads may have worked on them; and those that a TLS library measured, but \
     whose record was lost.";
HANDSHAKES_ESTIMATED = Counter "tlsprof_handshakes_estimated" ["service_name" "role"]
    "Estimated TLS handshakes: those on connections that were not followed, to keep the overhead budget."
    "All other handshake metrics include them. See [sampled handshakes](accounting.md#sampled-handshakes).";
AGREEMENT_HANDSHAKES = Counter "tlsprof_agreement_handshakes" ["service_name" "role"]
    "Completed TLS handshakes timed by both sources: at most 60 a second on each CPU, and all of programs that \
     pass TLS data through memory.";
AGREEMENT_CPU = Counter "tlsprof_agreement_cpu_seconds" ["service_name" "role" "source"]
    "CPU time of TLS handshakes timed by both sources, by source.";
AGREEMENT_STEP_CPU = Counter "tlsprof_agreement_step_cpu_seconds" ["service_name" "step" "source"]
    "CPU time of the same TLS handshakes by step, by library probes and from CPU samples."
    "Sources: `library`, `samples`. Counted while library probes measure the steps of all handshakes of the service; \
     otherwise neither source counts. Key derivation is in `other`, because it is not always probed. Steps that samples \
     cannot separate, such as `key_exchange+signing`, are zero for `library`.";
HANDSHAKE_WAIT = Counter "tlsprof_handshake_wait_seconds" ["service_name" "reason"]
    "Off-CPU time during TLS handshakes, by reason."
    "Reasons: `run_queue`, `lock`, `disk`, `network`, `random`, `pipe`, `other`, and `between_calls` of a \
     non-blocking handshake.";

"CPU time":
SERVICE_CPU = Counter "tlsprof_service_cpu_seconds" ["service_name" "mode"]
    "CPU time of the service's processes, as accounted by the kernel."
    "Includes processes that ended.";
CPU = Counter "tlsprof_cpu_seconds" ["service_name" "activity" "mode"]
    "CPU time of the service by activity, from samples scaled to the kernel's accounting.";
CPU_SAMPLES = Counter "tlsprof_cpu_samples" ["service_name" "activity" "mode"]
    "CPU samples of the service by activity.";
CPU_SAMPLES_UNCLASSIFIED = Counter "tlsprof_cpu_samples_unclassified" ["service_name"]
    "CPU samples in unclassified kernel functions; they count as application."
    "Their mode is `system`.";
CRYPTO_CPU = Counter "tlsprof_crypto_cpu_seconds" ["service_name" "activity" "primitive"]
    "CPU time of the service's handshakes and encryption by cryptographic primitive, from samples."
    "Activities: `handshake`, `encryption`. Primitives: `rsa_dh` (RSA, finite-field DH), `big_number` \
     (the same and some curves), `multiprecision` (any public-key algorithm, in GMP), `p256`, `p384`, `p521`, `elliptic_curve` (which one is unknown), `curve25519`, `curve448`, `ml_kem`, \
     `ml_dsa`, `public_key` (algorithm unknown), `sha` (SHA-1, SHA-2), `sha3`, `key_derivation`, `aes`, \
     `chacha20_poly1305`, `x509`, `random`, `memory`, `other`, `kernel`, `not_identified`; those that \
     were sampled. They add up to `tlsprof_cpu_seconds_total` of these activities, one or two seconds \
     later.";
CPU_SAMPLE_PERIOD = Gauge "tlsprof_cpu_sample_period_seconds" []
    "Interval between samples of a CPU; 0 if sampling is off."
    "`tlsprof doctor` shows the reason.";
CPU_RECONCILIATION_ERROR = Gauge "tlsprof_cpu_reconciliation_error_ratio" ["service_name"]
    "Deviation of the sum of activities from the CPU time accounted by the kernel, over the last \
     minute."
    "As a share of the kernel's figure, over the last minute in which the service used CPU.";
CPU_SAMPLED = Gauge "tlsprof_cpu_sampled_ratio" ["service_name"]
    "CPU time covered by samples, as a share of the CPU time accounted by the kernel, over the last \
     minute."
    "Each sample covers one period.";

"Hellos":
HELLOS = Counter "tlsprof_hellos" ["service_name" "role"]
    "TLS handshakes whose ClientHello was read.";
RESUMPTION_ATTEMPTS = Counter "tlsprof_resumption_attempts" ["service_name" "role" "means" "attempt"]
    "TLS session resumption attempts by clients, by mechanism and result.";
OFFERED_VERSIONS = Counter "tlsprof_offered_versions" ["service_name" "role" "version"]
    "ClientHellos that offered a TLS version.";
OFFERED_GROUPS = Counter "tlsprof_offered_groups" ["service_name" "role" "group"]
    "ClientHellos that offered a key exchange group.";
HELLO_FEATURES = Counter "tlsprof_hello_features" ["service_name" "role" "feature"]
    "ClientHellos with a feature."
    "Features: `server_name` (SNI), `post_quantum` group, `early_data`; also handshakes with a \
     `hello_retry_request`, and connections with a `proxy_protocol` header.";
APPLICATION_PROTOCOLS = Counter "tlsprof_application_protocols" ["service_name" "role" "protocol"]
    "Application protocols (ALPN) chosen by servers in cleartext, up to TLS 1.2."
    "TLS 1.3 encrypts them.";
TLS_UPGRADES = Counter "tlsprof_tls_upgrades" ["service_name" "role" "protocol"]
    "TLS handshakes that followed STARTTLS, by protocol."
    "Protocols: `smtp`, `ftp`, `imap`, `pop3`, `ldap`, `postgresql`, `mysql`.";
ALERTS = Counter "tlsprof_alerts" ["service_name" "direction" "description"]
    "Cleartext TLS alerts during handshakes. Encrypted alerts of TLS 1.3 have no name and only \
     count as failed handshakes."
    "Alerts are cleartext up to the ServerHello in TLS 1.3, and up to ChangeCipherSpec before. The \
     length of a later one in TLS 1.3 shows that it is an alert, but not which one.";
APPLICATION_BYTES = Counter "tlsprof_application_bytes" ["service_name" "direction" "cipher"]
    "Bytes after the handshake on TLS connections that ended, including record overhead.";

"TCP connections":
CONNECTIONS_OPENED = Counter "tlsprof_connections_opened" ["service_name" "role"]
    "TCP connections opened."
    "Counted once the owner is known.";
CONNECTIONS_CLOSED = Counter "tlsprof_connections_closed" ["service_name" "role" "closed_by"]
    "TCP connections that ended, by the side that closed first (close_notify, FIN or RST).";
CONNECTIONS_RESET = Counter "tlsprof_connections_reset" ["service_name" "role" "closed_by"]
    "TCP connections that ended with an RST from either side, by the side that closed first."
    "Also counted in `tlsprof_connections_closed_total`.";
CONNECTION_TURNS = Histogram "tlsprof_connection_turns" ["service_name" "role"]
    "Turns (a request and its answer) per TCP connection that ended"
    "Fewer connections than in `tlsprof_connections_closed_total` where the turns of some are unknown, to keep the overhead budget: see [sampled turns](accounting.md#sampled-turns).";
CONNECTION_TURNS_ESTIMATED = Counter "tlsprof_connection_turns_estimated" ["service_name" "role"]
    "Estimated turns: those of connections that were not followed, to keep the overhead budget."
    "`tlsprof_connection_turns` includes them. See [sampled turns](accounting.md#sampled-turns).";
CONNECTION_DURATION = Histogram "tlsprof_connection_duration_seconds" ["service_name" "role"]
    "Lifetime per TCP connection, from opening to the end of the socket"
    "Starts at the end of the TCP handshake.";
CONNECTION_BYTES = Counter "tlsprof_connection_bytes" ["service_name" "role" "direction"]
    "Payload bytes of TCP connections that ended."
    "As carried by TCP, without retransmissions.";
CONNECTIONS_FROM_BEFORE = Counter "tlsprof_connections_from_before" ["service_name"]
    "TCP connections that ended but were opened before the agent started; not counted in other \
     metrics.";
CONNECTIONS_OWNERLESS = Counter "tlsprof_connections_ownerless" []
    "TCP connections that ended before a process read, wrote or closed them."
    "Counted for the whole host, including the kernel's own connections, and some of others on \
     kernels that miss the end of a socket.";
TIME_WAIT_CREATED = Counter "tlsprof_time_wait_created" ["service_name" "role"]
    "TIME_WAIT sockets created on this side."
    "Data or an RST from the peer after the close ends such a socket at once: clients that close \
     with unread data create many short-lived ones.";
TIME_WAIT_SOCKETS = Gauge "tlsprof_time_wait_sockets" ["service_name" "role"]
    "TIME_WAIT sockets present: those created in the last 60 s, at most the kernel's own count."
    "See below.";
EPHEMERAL_PORTS_USED = Gauge "tlsprof_ephemeral_ports_used_ratio" ["service_name"]
    "Share of ephemeral ports used by connections to the busiest remote endpoint, including \
     TIME_WAIT."
    "Of the ports in `ip_local_port_range`; absent if the service opens no connections. Connections \
     from before the agent's start are not included. May be too high on loopback, where the kernel \
     reuses a port in TIME_WAIT after a second.";

"Accept queues":
LISTEN_OVERFLOWS = Counter "tlsprof_listen_overflows" ["service_name"]
    "Packets dropped by the kernel because an accept queue of the service was full."
    "SYNs and final ACKs of TCP handshakes. A client that retries causes several.";
ACCEPT_QUEUE_LENGTH = Gauge "tlsprof_accept_queue_length" ["service_name"]
    "Connections waiting to be accepted in the service's fullest accept queue."
    "The fullest is the one with the highest ratio of length to limit.";
ACCEPT_QUEUE_LIMIT = Gauge "tlsprof_accept_queue_limit" ["service_name"]
    "Limit of that queue; the kernel admits one more."
    "The smaller of the backlog given to listen(2) and `net.core.somaxconn`.";
ACCEPT_WAIT = Histogram "tlsprof_accept_wait_seconds" ["service_name"]
    "Time per TCP connection from opening to accept"
    "Counted when the connection is first read or written. Requires the capability `accept_wait`; \
     there is no substitute without it.";

"Findings":
FINDING = Gauge "tlsprof_finding" ["service_name" "role" "finding" "severity"]
    "1 for each finding on a service in the last 5 to 10 minutes; the series ends with the finding."
    "Evaluated every 15 s.";

"The agent itself":
BUILD_INFO = Gauge "tlsprof_build_info" ["version"]
    "Always 1; the version is a label.";
AGENT_CPU = Counter "tlsprof_agent_cpu_seconds" []
    "CPU time of the agent's process.";
AGENT_RESIDENT_MEMORY = Gauge "tlsprof_agent_resident_memory_bytes" []
    "Resident memory of the agent's process.";
AGENT_BPF_RUN = Counter "tlsprof_agent_bpf_run_seconds" []
    "Time in the agent's BPF programs, samples of idle CPUs included.";
AGENT_BPF_RUNS = Counter "tlsprof_agent_bpf_runs" []
    "Runs of the agent's BPF programs.";
AGENT_PROBE_HITS = Counter "tlsprof_agent_probe_hits" []
    "Probe hits in targets.";
AGENT_TARGET_COST = Counter "tlsprof_agent_target_cost_seconds" []
    "Estimated CPU time that targets spent on probes and hooks, including the path to the BPF \
     programs."
    "Covers all processes of the host. Probes: hits x the cost of one on this machine, plus the \
     time in their programs. Hooks: the time in their programs. For both, part of that time is \
     added once more for what the programs displace from the caches. How near that is to what \
     `make bench` measures: [what profiling costs](cost.md).";
AGENT_EVENTS_LOST = Counter "tlsprof_agent_events_lost" ["reason"]
    "Records and calls that were lost, by reason."
    "See [lost data](#lost-data).";
AGENT_CAPABILITY = Gauge "tlsprof_agent_capability" ["capability" "state"]
    "1 for the current state of the capability, 0 for the others."
    "States: `available`, `degraded`, `unavailable`; `tlsprof doctor` shows the reason.";
AGENT_STEP_PROBES_DUTY = Gauge "tlsprof_agent_step_probes_duty_ratio" []
    "Share of time in which the probes of public-key steps are attached."
    "0 if TLS libraries are not probed; otherwise below 1 if the overhead budget was exceeded.";
AGENT_LIBRARY_PROBES_DUTY = Gauge "tlsprof_agent_library_probes_duty_ratio" []
    "Share of time in which TLS libraries are probed."
    "0 if `profile.library` is `off`, the kernel does not allow it, or the overhead budget was exceeded even with few step probes: handshakes are measured on their sockets.";
AGENT_SOCKET_CALLS_DUTY = Gauge "tlsprof_agent_socket_calls_duty_ratio" []
    "Share of time in which socket calls are seen."
    "Below 1 if the overhead budget was exceeded without probes: handshakes are estimated, see [sampled handshakes](accounting.md#sampled-handshakes).";
AGENT_PROFILED_IMAGES = Gauge "tlsprof_agent_profiled_images" []
    "Executable files with probes attached.";
AGENT_SERVICES = Gauge "tlsprof_agent_services" []
    "Running services with a TLS library, handshakes, TCP connections or a listening socket."
    "Of services selected by name: all.";

"The agent's process":
PROCESS_CPU = Counter "process_cpu_seconds" []
    "Total user and system CPU time spent in seconds."
    "The same as `tlsprof_agent_cpu_seconds_total`.";
PROCESS_START_TIME = Gauge "process_start_time_seconds" []
    "Start time of the process since unix epoch in seconds.";
PROCESS_RESIDENT_MEMORY = Gauge "process_resident_memory_bytes" []
    "Resident memory size in bytes."
    "The same as `tlsprof_agent_resident_memory_bytes`.";
PROCESS_VIRTUAL_MEMORY = Gauge "process_virtual_memory_bytes" []
    "Virtual memory size in bytes.";
PROCESS_OPEN_FDS = Gauge "process_open_fds" []
    "Number of open file descriptors.";
PROCESS_MAX_FDS = Gauge "process_max_fds" []
    "Maximum number of open file descriptors.";
PROCESS_THREADS = Gauge "process_threads" []
    "Number of OS threads in the process.";

"Load tests":
REPORT_RUNNING = Gauge "tlsprof_report_running" []
    "1 while `tlsprof report -- COMMAND` runs a command on this host, else 0.";
REPORT_START_TIME = Gauge "tlsprof_report_start_time_seconds" []
    "Start time of the last such command, in Unix time."
    "Absent if there was none since boot.";
}
