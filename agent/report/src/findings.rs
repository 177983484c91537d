//! Findings as the report shows them.

use tlsprof_advise::{Finding, Prediction, Range, Saving};

use super::model::{self, PredictionKind};

/// Findings as the report has them.
pub fn of(findings: &[Finding]) -> Vec<model::Finding> {
    findings.iter().map(finding).collect()
}

fn finding(finding: &Finding) -> model::Finding {
    let basis = finding.evidence.basis;
    let figures = finding.evidence.figures.iter();
    model::Finding {
        id: finding.kind.label.to_owned(),
        service_name: finding.service.clone(),
        role: finding.role.label().into(),
        severity: finding.severity.label().into(),
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
            server: finding.remedy.server.label().to_owned(),
            change: finding.remedy.change.to_owned(),
            directive: finding.remedy.directive.to_owned(),
        },
        risk: finding.kind.risk.to_owned(),
        page: finding.kind.page_path(),
    }
}

fn prediction(prediction: &Prediction) -> model::Prediction {
    match prediction {
        Prediction::Saving(saving) => figures(PredictionKind::Saving, saving, ""),
        Prediction::AtMost(saving, caveat) => figures(PredictionKind::AtMost, saving, caveat),
        Prediction::Latency(each) => model::Prediction {
            kind: PredictionKind::Latency,
            latency_seconds: Some(range(*each)),
            ..model::Prediction::default()
        },
        Prediction::Unknown(reason) => model::Prediction {
            method: reason.clone(),
            ..model::Prediction::default()
        },
        Prediction::Nothing => model::Prediction {
            kind: PredictionKind::None,
            ..model::Prediction::default()
        },
    }
}

fn figures(kind: PredictionKind, saving: &Saving, caveat: &str) -> model::Prediction {
    let variants = saving.variants.iter();
    model::Prediction {
        kind,
        cpu_seconds: Some(range(saving.cpu)),
        cpu_ratio: Some(range(saving.share)),
        capacity_ratio: Some(range(saving.capacity())),
        latency_seconds: None,
        source: Some(saving.source.label().into()),
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
