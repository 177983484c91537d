//! The comparison's data: what `--format json` prints and the text and page are made from.
//!
//! The schema is documented in `docs/compare.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Role;
use crate::model::words::words;

words! {
    /// What a figure is counted in.
    FigureUnit { Seconds = "seconds", Share = "share", Number = "number", PerSecond = "per_second", }
}

words! {
    /// What more of a figure means. Of some it depends on something else, and throughput is the load's:
    /// not judged.
    Sense { Cost = "less_is_better", Benefit = "more_is_better", Context = "neither", Load = "load", }
}

words! {
    /// How a service was found in other reports.
    MatchedBy { Name = "name", Port = "port", Option = "option", }
}

words! {
    /// Why a service is not compared: other groups do not have it, it was a client only, or it had
    /// neither handshakes nor connections.
    Absence { OnlyThere = "only_there", OnlyAClient = "only_a_client", Silent = "silent", }
}

/// Version of the schema that this program writes.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Reports compared with the first of them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Comparison {
    /// Version of this schema.
    pub(crate) comparison_schema_version: u32,
    /// Version of the program that wrote it.
    pub tlsprof_version: String,
    /// The groups of reports; the first is what others are compared with.
    pub groups: Vec<Group>,
    /// How sure the verdicts are.
    pub method: Method,
    /// Services that are in more than one group.
    pub services: Vec<ServiceComparison>,
    /// Services that are not compared.
    pub left_out: Vec<LeftOut>,
    /// What makes the comparison doubtful, in sentences.
    pub warnings: Vec<String>,
}

/// Reports with one label: repeats of one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Group {
    /// Its label.
    pub label: String,
    /// Its reports.
    pub runs: Vec<Run>,
}

/// One report.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Run {
    /// The file.
    pub file: String,
    /// When the profile began, RFC 3339, UTC.
    pub started_at: String,
    /// How long it lasted, in seconds.
    pub duration_seconds: f64,
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    /// Version of the program that wrote the report.
    pub tlsprof_version: String,
    /// The command profiled; empty where there was none.
    pub command: String,
}

/// How sure the verdicts are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Method {
    /// How many changes were judged.
    pub changes_judged: u32,
    /// With this probability all intervals of changes hold together.
    pub confidence_of_all: f64,
    /// What each interval of a change has for that (Bonferroni).
    pub(crate) confidence_of_each: f64,
    /// Confidence of the interval of a single figure.
    pub(crate) confidence_of_figures: f64,
    /// Assumed spread between runs of the same build under the same load: standard deviation as a
    /// share of the figure.
    pub assumed_spread: f64,
    /// Degrees of freedom that the assumption is worth against observed repeats.
    pub(crate) assumed_spread_weight: f64,
}

/// A service in several groups.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ServiceComparison {
    /// Its name in the first group.
    pub service_name: String,
    /// Its name in each group; null where it is not.
    pub names: Vec<Option<String>>,
    /// How it was found in the others: `name`, `port` or `option`.
    pub matched_by: MatchedBy,
    /// `server` or `client`: the role that the figures speak of.
    pub role: Role,
    /// The figures that at least one group knows.
    pub figures: Vec<FigureComparison>,
    /// Groups by cost; null where none is known of two groups or more.
    pub ranking: Option<Ranking>,
    /// What completed handshakes used, counted.
    pub mixes: Vec<Mix>,
    /// Findings and where they are.
    pub findings: Vec<FindingPresence>,
    /// What is not known, and why, in sentences.
    pub notes: Vec<String>,
}

/// A figure in all groups.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct FigureComparison {
    /// Its name, such as `cpu_per_request`.
    pub figure: String,
    /// Its name for people.
    pub title: String,
    /// `seconds`, `share`, `number` or `per_second`.
    pub unit: FigureUnit,
    /// `less_is_better`, `more_is_better`, `neither`, or `load` (not judged).
    pub(crate) sense: Sense,
    /// What it depends on beside the server; may be empty.
    pub caveat: String,
    /// The figure by group; null where it is not known.
    pub levels: Vec<Option<FigureLevel>>,
    /// The changes from the first group to each of the others, in their order.
    pub changes: Vec<Change>,
}

/// A figure in one group.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct FigureLevel {
    /// The figure: mean of the runs, geometric unless it is a share.
    pub value: f64,
    /// Lower limit of what another run may show on average.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// How many runs know it.
    pub runs: u32,
}

/// A change from the first group.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Change {
    /// To which group.
    pub label: String,
    /// Relative change (-0.2 is a fifth less), for shares the difference; null where a
    /// figure is not known, or rose from zero.
    pub change: Option<f64>,
    /// Lower limit; null where a figure is not known.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
    /// What to make of it.
    pub verdict: Verdict,
}

/// What to make of a change.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is real and good.
    Better,
    /// It is real and bad.
    Worse,
    /// The figure is higher, which is neither good nor bad by itself.
    Higher,
    /// The figure is lower, which is neither good nor bad by itself.
    Lower,
    /// What differs may be noise.
    NoDifference,
    /// Half more, or a third less, could not be told from noise.
    NotEnoughData,
    /// It says more of the load than of the server.
    NotJudged,
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NoDifference => "no difference beyond noise",
            Self::NotEnoughData => "not enough data",
            Self::NotJudged => "not judged",
        }
    }

    /// Whether it says that something changed.
    pub const fn is_real(self) -> bool {
        !matches!(
            self,
            Self::NoDifference | Self::NotEnoughData | Self::NotJudged
        )
    }
}

/// Groups by one figure, the cheapest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Ranking {
    /// The figure.
    pub figure: String,
    /// Its name for people.
    pub title: String,
    /// Labels, the lowest figure first.
    pub order: Vec<String>,
    /// Runs of `order` in which every two groups may differ by noise alone; those of one
    /// group are left out. They may overlap.
    pub alike: Vec<Vec<String>>,
}

/// What completed handshakes used.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Mix {
    /// `group`, `cipher`, `signature` or `version`.
    pub of: String,
    /// How many handshakes, by group of reports.
    pub handshakes: Vec<f64>,
    /// What they used, the most frequent first.
    pub parts: Vec<MixPart>,
}

/// One thing that handshakes used.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct MixPart {
    /// Its name.
    pub name: String,
    /// Share of the handshakes, by group of reports; null where there were none.
    pub shares: Vec<Option<f64>>,
}

/// Where a finding is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct FindingPresence {
    /// Its kind.
    pub id: String,
    /// The service's role in it.
    pub role: Role,
    /// What it says in the first report that has it.
    pub title: String,
    /// In how many runs of each group.
    pub runs: Vec<u32>,
}

/// A service that is not compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct LeftOut {
    /// Its name.
    pub service_name: String,
    /// The groups that have it.
    pub labels: Vec<String>,
    /// `only_there` (other groups do not have it), `only_a_client` or `silent` (no
    /// handshakes and no connections).
    pub reason: Absence,
}
