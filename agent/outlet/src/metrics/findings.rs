//! Findings that stand, one series each: it ends when the finding does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_advise::{Finding, Severity};
use tlsprof_common::Role;

use super::families::FINDING;
use super::rows::write;

/// Each finding of a service in a role, by its gravest severity: of one there is never
/// more than one series.
pub(super) type Standing = BTreeMap<(String, Role, &'static str), Severity>;

/// What is to be exported of findings.
pub(super) fn standing(findings: &[Finding]) -> Standing {
    let mut standing = Standing::new();
    for finding in findings {
        let key = (finding.service.clone(), finding.role, finding.kind.label);
        let severity = standing.entry(key).or_insert(finding.severity);
        // The gravest comes first.
        *severity = finding.severity.min(*severity);
    }
    standing
}

/// The findings that stand.
#[derive(Debug)]
pub(super) struct FindingsCollector(pub(super) Arc<RwLock<Standing>>);

impl Collector for FindingsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let standing = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let rows = standing
            .iter()
            .map(|((service_name, role, label), severity)| {
                let labels = [service_name, role.label(), label, severity.label()];
                (labels, 1_u64)
            });
        write(&mut encoder, &FINDING, rows)
    }
}
