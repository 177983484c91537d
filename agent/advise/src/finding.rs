//! A finding: a conclusion with its evidence, predicted saving and remedy.

use std::fmt;
use std::time::Duration;

use tlsprof_common::{Role, labelled};

use super::subject::{Subject, is_server};
use super::{Hybrid, Prediction, Server, Work};

/// Why nothing is predicted of a service that spent more on handshakes than in all.
const DISAGREEMENT: &str =
    "the CPU time of its handshakes exceeds the CPU time that the kernel accounts to it";

/// No change saves this part of a service's CPU time.
pub const NEARLY_ALL: f64 = 0.99;

labelled! {
    /// How much a finding matters, gravest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// A fifth of the service's CPU time or more, or clients that are turned away.
        High = "high",
        /// Worth a change soon.
        Medium = "medium",
        /// Worth a change.
        Low = "low",
        /// A fact to know; nothing is wrong.
        Info = "info",
    }
}

impl Severity {
    /// Of a change that saves a share (0 to 1) of the service's CPU time.
    pub fn of_share(share: f64) -> Self {
        match share {
            s if s >= 0.20 => Self::High,
            s if s >= 0.10 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// A rule: looks at one service and says what is wrong with it, if anything.
type Rule = fn(&Subject<'_>) -> Option<Finding>;

/// The change in a sentence or two, and what to write, line by line; empty where there is
/// nothing to write.
pub(crate) type Advice = (&'static str, &'static str);

/// The service that a remedy is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub role: Role,
    pub server: Server,
    pub hybrid: Hybrid,
}

/// A kind of finding.
pub struct Kind {
    /// The stable name, as in reports, and in the page's file name: an interface.
    pub label: &'static str,
    /// The page on it in `docs/findings/`.
    pub(crate) page: &'static str,
    /// What is wrong, in the index of the pages.
    pub summary: &'static str,
    /// What the change may break.
    pub risk: &'static str,
    /// Its rule in each role in which a service may have it.
    pub(crate) rules: &'static [(Role, Rule)],
    /// What to change.
    pub(crate) remedy: fn(Target) -> Advice,
    /// What to calibrate where no cost is known to predict the saving from.
    pub(crate) calibration: Option<Work>,
}

impl Kind {
    /// The page on it, as Markdown.
    pub const fn page(&self) -> &'static str {
        self.page
    }

    /// Where the page is, from the root of the repository.
    pub fn page_path(&self) -> String {
        format!("docs/findings/{}.md", self.label)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label)
    }
}

labelled! {
    /// What a finding rests on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Observed {
        /// Handshakes.
        Handshakes = "handshakes",
        /// TCP connections.
        Connections = "connections",
        /// CPU samples.
        Samples = "samples",
    }
}

/// How much was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// What.
    pub observed: Observed,
    /// How many.
    pub count: u64,
    /// In what time.
    pub elapsed: Duration,
}

/// Figures of the ledger, in sentences and as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// How much was seen.
    pub basis: Basis,
    /// What was seen, in sentences.
    pub statements: Vec<String>,
    /// The figures of it: a name that ends in its unit, and the value in base units.
    pub figures: Vec<(&'static str, f64)>,
}

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The server that it is for.
    pub server: Server,
    /// The change in a sentence or two.
    pub change: &'static str,
    /// What to write, line by line; empty where there is nothing to write.
    pub directive: &'static str,
}

impl Remedy {
    pub(super) const fn new(server: Server, (change, directive): Advice) -> Self {
        Self {
            server,
            change,
            directive,
        }
    }

    pub(super) fn of(kind: &Kind, target: Target) -> Self {
        Self::new(target.server, (kind.remedy)(target))
    }
}

/// A conclusion on one service.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: &'static Kind,
    /// The service, by the name it is booked under.
    pub service: String,
    /// The service's role in what was seen.
    pub role: Role,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, in words of an administrator, without a full stop.
    pub title: String,
    /// What it rests on.
    pub evidence: Evidence,
    /// What a change would save.
    pub prediction: Prediction,
    /// What to change.
    pub remedy: Remedy,
}

impl Finding {
    /// What could tell the saving, if it were timed in the service's library.
    pub const fn wants_calibrated(&self) -> Option<Work> {
        match &self.prediction {
            Prediction::Unknown(_) => self.kind.calibration,
            Prediction::Saving(saving) if saving.is_lower_bound => self.kind.calibration,
            _ => None,
        }
    }
}

impl Subject<'_> {
    /// A prediction, if it can be true.
    fn credible(&self, prediction: Prediction) -> Prediction {
        match prediction.saving() {
            Some(_) if !self.agrees() => Prediction::Unknown(DISAGREEMENT.to_owned()),
            Some(saving) if saving.share.likely >= NEARLY_ALL => Prediction::Unknown(
                "it would be all of the service's CPU, so the known costs do not fit this profile"
                    .to_owned(),
            ),
            _ => prediction,
        }
    }

    pub const fn basis(&self, observed: Observed, count: u64) -> Basis {
        Basis {
            observed,
            count,
            elapsed: self.setting.elapsed,
        }
    }

    /// A finding in a role; its severity is that of the saving, or of `otherwise`. In
    /// the client role of what is no server it is low at most.
    pub(crate) fn finding(
        &self,
        (kind, role): (&'static Kind, Role),
        otherwise: Severity,
        title: String,
        evidence: Evidence,
        prediction: Prediction,
    ) -> Finding {
        let target = Target {
            role,
            server: self.server,
            hybrid: self.hybrid,
        };
        let prediction = self.credible(prediction);
        let severity = match &prediction {
            Prediction::Saving(saving) => Severity::of_share(saving.share.likely),
            _ if role == Role::Client
                && prediction.saving().is_some()
                && !is_server(self.account) =>
            {
                Severity::Low
            }
            _ => otherwise,
        };
        Finding {
            kind,
            service: self.name.to_owned(),
            role,
            severity,
            title,
            evidence,
            prediction,
            remedy: Remedy::of(kind, target),
        }
    }
}
