//! The report's data: what `--format json` prints and the text is made from.
//!
//! The schema is documented in `docs/report.schema.json`, generated from these
//! types. [`SCHEMA_VERSION`] rises when a field is removed, renamed or changes
//! its meaning after a release; new fields may come without that.

mod accept_queue;
mod connections;
mod cpu;
mod findings;
mod quantiles;
mod requests;
mod tls;
pub(crate) mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tlsprof_common::WaitReason;

pub use accept_queue::{AcceptQueue, AcceptWait, ListeningQueues, QueueLength};
pub use connections::{ClosedConnections, Connections, EphemeralPorts, TurnCount};
pub use cpu::{
    ActivityCpu, CpuSamples, PrimitiveCpu, PrimitiveSamples, SampledStep, Sampling, UnitCost,
};
pub use findings::{Finding, Prediction, Range, Remedy, Variant};
pub use quantiles::Quantiles;
pub use requests::Requests;
pub use tls::{
    Agreement, AlertCount, ApplicationBytes, AttemptCount, EstimatedHandshakes, EstimatedTurns,
    Hellos, NameCount, SocketHandshakes,
};

pub use words::{
    Activity, Attempt, Closer, Outcome, PredictionKind, Primitive, Resumption, Role, Severity,
    Source, Step, Unit, Witness,
};

/// Version of the schema that this program writes.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// One profile.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Report {
    /// Version of this schema.
    pub(crate) schema_version: u32,
    /// Version of the program that wrote it.
    pub tlsprof_version: String,
    /// The machine.
    pub host: Host,
    /// When the profile began, RFC 3339, UTC.
    pub started_at: String,
    /// How long it lasted, in seconds.
    pub duration_seconds: f64,
    /// What is wrong and what a change would save, gravest first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Services, most expensive handshakes first, then most CPU time.
    pub services: Vec<Service>,
    /// Data that was lost, by reason; empty when nothing was.
    pub losses: Vec<Loss>,
    /// What the profile itself cost.
    pub agent: AgentCost,
    /// The command profiled, if one was given.
    pub command: Option<Command>,
    /// What a reader must know to judge the figures, in sentences.
    pub notes: Vec<String>,
    /// Whether CPU samples were taken; both null in reports from before there were any.
    #[serde(default)]
    pub sampling: Sampling,
}

/// The machine on which the profile was made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
}

/// One service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Service {
    /// Systemd unit, container or executable.
    pub service_name: String,
    /// Path of the executable, as its own processes see it.
    pub executable: String,
    /// Processes alive at the end.
    pub processes: u32,
    /// TCP ports it listens on.
    pub ports: Vec<u16>,
    /// TLS libraries found in it.
    pub tls_libraries: Vec<TlsLibrary>,
    /// CPU time of its processes during the profile, ended ones included.
    pub cpu_seconds: CpuSeconds,
    /// What that time was spent on; empty where no sample was taken.
    #[serde(default)]
    pub activities: Vec<ActivityCpu>,
    /// The samples that say so; null where none hit it.
    #[serde(default)]
    pub cpu_samples: Option<CpuSamples>,
    /// What the code of handshakes and encryption computed, most CPU time first; empty where no sample
    /// hit it.
    #[serde(default)]
    pub primitives: Vec<PrimitiveCpu>,
    /// The samples that say so; null where none hit it.
    #[serde(default)]
    pub primitive_samples: Option<PrimitiveSamples>,
    /// CPU time of one handshake, turn and megabyte, where there are samples.
    #[serde(default)]
    pub unit_costs: Vec<UnitCost>,
    /// Requests of the load, counted by the load tool or given by the user; null where neither
    /// is known, and of all services but the server that the load was for.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// Handshakes by what was negotiated and how they ended.
    pub handshakes: Vec<HandshakeGroup>,
    /// Whether `cpu_seconds` of these, and every share, mean and step that comes from it, is a lower
    /// bound: more than a tenth of them are `offloaded`.
    #[serde(default)]
    pub handshake_cpu_is_lower_bound: bool,
    /// Distribution of on-CPU and wall time of completed handshakes.
    pub handshake_costs: Vec<HandshakeCost>,
    /// CPU time of handshakes by step, measured by probes in the TLS library.
    pub steps: Vec<StepCost>,
    /// The same by CPU samples, most CPU time first; empty where no sample hit a handshake.
    #[serde(default)]
    pub sampled_steps: Vec<SampledStep>,
    /// The kind of key with which the server signed what TLS 1.3 hides, if samples of its signatures tell: `rsa` of
    /// any length, `ecdsa_p256` and the like; else null.
    #[serde(default)]
    pub hidden_signature: Option<String>,
    /// Time off the CPU inside handshakes, by reason.
    pub waits: Vec<Wait>,
    /// TCP connections, by role.
    #[serde(default)]
    pub connections: Vec<Connections>,
    /// TCP connections that ended during the profile, but had been open before;
    /// they are in no other figure.
    #[serde(default)]
    pub connections_from_before: u64,
    /// Ephemeral ports toward the remote endpoint that took up the most of them
    /// at the end; null if the service connected nowhere.
    pub ephemeral_ports: Option<EphemeralPorts>,
    /// What waited to be accepted; null if nothing is known of it.
    pub accept_queue: Option<AcceptQueue>,
    /// What hellos said in clear, by role.
    #[serde(default)]
    pub hellos: Vec<Hellos>,
    /// Alerts that travelled in clear.
    #[serde(default)]
    pub alerts: Vec<AlertCount>,
    /// What TLS connections that ended carried after their handshakes.
    #[serde(default)]
    pub application_bytes: Vec<ApplicationBytes>,
    /// Handshakes that only socket calls showed, by role.
    #[serde(default)]
    pub socket_handshakes: Vec<SocketHandshakes>,
    /// Handshakes that are estimated, by role; none in a report of `tlsprof report`.
    #[serde(default)]
    pub estimated_handshakes: Vec<EstimatedHandshakes>,
    /// Turns that are estimated, by role; none in a report of `tlsprof report`.
    #[serde(default)]
    pub estimated_turns: Vec<EstimatedTurns>,
    /// Completed handshakes that two sources saw, by role.
    #[serde(default)]
    pub agreement: Vec<Agreement>,
    /// Where the handshake figures come from: `library_probes` (uprobes in the
    /// TLS library), `socket_calls` (TLS records in socket calls), `both` (some
    /// from one, some from the other; see the groups), or `none` when nothing of
    /// the service could be profiled.
    pub source: Source,
}

/// A TLS library found in a service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct TlsLibrary {
    /// `OpenSSL`, ...
    pub kind: String,
    /// Version as the library states it, empty if it does not.
    pub version: String,
    /// Path as its processes see it.
    pub path: String,
    /// Build id in hexadecimal, empty if there is none.
    pub build_id: String,
    /// `profiled`, or why not.
    pub state: String,
}

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct CpuSeconds {
    /// User mode.
    pub user: f64,
    /// Kernel mode.
    pub system: f64,
}

/// Handshakes that are alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct HandshakeGroup {
    /// `server` or `client`.
    pub role: Role,
    /// `TLS1.2`, `TLS1.3` and so on, or `unknown`.
    pub version: String,
    /// Cipher suite, or `unknown`.
    pub cipher: String,
    /// Key exchange group, `none` or `unknown`.
    pub group: String,
    /// Own signature, `none` or `unknown`.
    pub signature: String,
    /// `none`, `session_id`, `ticket`, `psk`, `abbreviated` or `unknown`.
    pub resumption: Resumption,
    /// `completed`, `failed` or `abandoned`.
    pub outcome: Outcome,
    /// `library` or `socket`: what showed them; `library` if both did.
    #[serde(default = "library")]
    pub source: Witness,
    /// The library's reasons for failures, with their counts.
    pub errors: Vec<ErrorCount>,
    /// How many.
    pub count: u64,
    /// Those of them whose CPU time is a lower bound: see
    /// [`SocketHandshakes::offloaded`].
    #[serde(default)]
    pub offloaded: u64,
    /// Their CPU time together, in seconds.
    pub cpu_seconds: f64,
    /// Their wall time together, in seconds.
    pub duration_seconds: f64,
}

/// What wrote reports before there was another source.
const fn library() -> Witness {
    Witness::Library
}

/// Failed handshakes by the library's reason.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ErrorCount {
    /// Reason number as the library raised it: of OpenSSL's sslerr.h, or GnuTLS's error code
    /// without its sign.
    pub reason: u32,
    /// Its name, or `unknown`.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// Distribution of the cost of completed handshakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct HandshakeCost {
    /// `server` or `client`.
    pub role: Role,
    /// As in [`HandshakeGroup`].
    pub resumption: Resumption,
    /// How many.
    pub count: u64,
    /// On-CPU time.
    pub cpu: Quantiles,
    /// Wall time from first call to end.
    pub duration: Quantiles,
}

/// CPU time of one step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct StepCost {
    /// `server` or `client`.
    pub role: Role,
    /// `key_exchange`, `signing`, `verification`, `rsa_decryption`,
    /// `key_derivation` or `other`; `unmeasured` for handshakes of a kind of
    /// which not one was measured, and for those that only socket calls showed.
    pub step: Step,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Handshakes in which this step was measured. Where they are fewer than
    /// `handshakes`, `cpu_seconds` is an estimate from them. Where they are
    /// none, the step's time is in `other`.
    pub measured_handshakes: u64,
    /// All handshakes that `cpu_seconds` speaks for.
    pub handshakes: u64,
}

/// Time off the CPU inside handshakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Wait {
    /// `server` or `client`.
    pub role: Role,
    /// What for.
    pub reason: WaitReason,
    /// Seconds, summed over handshakes.
    pub seconds: f64,
}

/// Lost data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Loss {
    /// Why.
    pub reason: tlsprof_common::Loss,
    /// How many records or calls.
    pub count: u64,
}

/// What the profile cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct AgentCost {
    /// CPU time of the agent's own process, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory of the agent's process, in bytes.
    pub memory_bytes: u64,
    /// Time inside tlsprof's BPF programs, in seconds; spent by the targets.
    pub bpf_run_seconds: f64,
    /// Runs of tlsprof's BPF programs.
    pub bpf_runs: u64,
    /// Probe hits on targets.
    pub probe_hits: u64,
    /// Estimated CPU time that all processes spent on probes, traps and programs, and on
    /// hooks, at socket calls and in the scheduler, programs and what leads to them.
    pub target_seconds: f64,
    /// The most of it that the services of this report spent: probes by their share
    /// of the hits; hooks on socket calls and the scheduler in full, though other
    /// processes of the host run them too. Inside handshakes it is part of their CPU
    /// time.
    #[serde(default)]
    pub profiled_seconds: f64,
}

/// A command that was profiled.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Command {
    /// Program and arguments.
    pub arguments: Vec<String>,
    /// Exit status, or 128 + signal number.
    pub exit_status: i32,
}
