//! Findings as the report shows them.

use crate::advise::{Finding, Prediction, Range, Saving};

use super::model;

pub(in crate::outlet) fn of(findings: &[Finding]) -> Vec<model::Finding> {
    findings.iter().map(finding).collect()
}

fn finding(finding: &Finding) -> model::Finding {
    let basis = finding.evidence.basis;
    let figures = finding.evidence.figures.iter();
    model::Finding {
        id: finding.id.label().to_owned(),
        service_name: finding.service.clone(),
        role: finding.role.label().to_owned(),
        severity: finding.severity.label().to_owned(),
        title: finding.title.clone(),
        observed: basis.observed.label().to_owned(),
        observed_count: basis.count,
        observed_seconds: basis.elapsed.as_secs_f64(),
        evidence: finding.evidence.statements.clone(),
        figures: figures
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        prediction: prediction(&finding.prediction),
        remedy: model::Remedy {
            server: finding.remedy.server.name().to_owned(),
            change: finding.remedy.change.to_owned(),
            directive: finding.remedy.directive.to_owned(),
        },
        risk: finding.id.risk().to_owned(),
        page: finding.id.page(),
    }
}

fn prediction(prediction: &Prediction) -> model::Prediction {
    match prediction {
        Prediction::Saving(saving) => figures("saving", saving, ""),
        Prediction::AtMost(saving, caveat) => figures("at_most", saving, caveat),
        Prediction::Latency(each) => model::Prediction {
            kind: "latency".to_owned(),
            latency_seconds: Some(range(*each)),
            ..model::Prediction::default()
        },
        Prediction::Unknown(reason) => model::Prediction {
            kind: "unknown".to_owned(),
            method: reason.clone(),
            ..model::Prediction::default()
        },
        Prediction::Nothing => model::Prediction {
            kind: "none".to_owned(),
            ..model::Prediction::default()
        },
    }
}

fn figures(kind: &str, saving: &Saving, caveat: &str) -> model::Prediction {
    let variants = saving.variants.iter();
    model::Prediction {
        kind: kind.to_owned(),
        cpu_seconds: Some(range(saving.cpu)),
        cpu_ratio: Some(range(saving.share)),
        capacity_ratio: Some(range(saving.capacity())),
        latency_seconds: None,
        source: Some(saving.source.label().to_owned()),
        method: saving.method.clone(),
        caveat: caveat.to_owned(),
        variants: variants
            .map(|variant| model::Variant {
                change: variant.change.clone(),
                cpu_ratio: range(variant.share),
            })
            .collect(),
    }
}

const fn range(range: Range) -> model::Range {
    model::Range {
        low: range.low,
        likely: range.likely,
        high: range.high,
    }
}
