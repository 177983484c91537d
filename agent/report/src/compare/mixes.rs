//! What is counted and not judged: what handshakes used, and findings.

use std::collections::BTreeMap;

use super::model::{FindingPresence, Mix, MixPart};
use super::reading::Reading;
use crate::model::{HandshakeGroup, Outcome, Report, Service};

/// Parts of a mix that are told; the rest is one part.
const PARTS: usize = 12;
const OTHER: &str = "other";

type Found<'a> = [Vec<(&'a Report, &'a Service)>];
type Part = fn(&HandshakeGroup) -> &str;

/// What completed handshakes used, by group of runs.
pub fn of(found: &Found<'_>) -> Vec<Mix> {
    let kinds: [(&str, Part); 4] = [
        ("version", |one| &one.version),
        ("group", |one| &one.group),
        ("signature", |one| &one.signature),
        ("cipher", |one| &one.cipher),
    ];
    let mixes = kinds.into_iter().map(|(of, part)| mix(found, of, part));
    mixes.filter(|mix| !mix.parts.is_empty()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "shares")]
fn mix(found: &Found<'_>, of: &str, part: Part) -> Mix {
    let counts: Vec<BTreeMap<&str, f64>> = found
        .iter()
        .map(|runs| {
            let mut counts = BTreeMap::new();
            for (_, service) in runs {
                let role = Reading::new(service, 0.0).role();
                let groups = service.handshakes.iter();
                let those =
                    groups.filter(|one| one.role == role && one.outcome == Outcome::Completed);
                for group in those.filter(|one| one.count > 0) {
                    *counts.entry(part(group)).or_default() += group.count as f64;
                }
            }
            counts
        })
        .collect();
    let handshakes: Vec<f64> = counts.iter().map(|of| of.values().sum()).collect();
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, count) in counts.iter().flatten() {
        *parts.entry(name).or_default() += count;
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let share = |of: f64, all: f64| (all > 0.0).then(|| of / all);
    let shares = |name: &str| {
        let groups = counts.iter().zip(&handshakes);
        groups
            .map(|(counts, all)| share(counts.get(name).copied().unwrap_or(0.0), *all))
            .collect()
    };
    let mut told: Vec<MixPart> = parts
        .iter()
        .take(PARTS)
        .map(|(name, _)| MixPart {
            name: (*name).to_owned(),
            shares: shares(name),
        })
        .collect();
    if parts.len() > PARTS {
        told.push(rest(&told, handshakes.len()));
    }
    Mix {
        of: of.to_owned(),
        handshakes,
        parts: told,
    }
}

/// What is left to one.
fn rest(told: &[MixPart], groups: usize) -> MixPart {
    let left = |at: usize| {
        let shares = told
            .iter()
            .map(|part| part.shares.get(at).copied().flatten());
        let sum = shares.sum::<Option<f64>>()?;
        Some((1.0 - sum).max(0.0))
    };
    MixPart {
        name: OTHER.to_owned(),
        shares: (0..groups).map(left).collect(),
    }
}

/// In how many runs of each group a finding is.
pub fn findings(found: &Found<'_>) -> Vec<FindingPresence> {
    let mut all: Vec<FindingPresence> = Vec::new();
    for (at, runs) in found.iter().enumerate() {
        for (report, service) in runs {
            let findings = report.findings.iter();
            for finding in findings.filter(|one| one.service_name == service.service_name) {
                let same =
                    |one: &&mut FindingPresence| one.id == finding.id && one.role == finding.role;
                let known = all.iter_mut().find(same);
                if let Some(known) = known {
                    bump(known, at);
                    continue;
                }
                let mut new = FindingPresence {
                    id: finding.id.clone(),
                    role: finding.role,
                    title: finding.title.clone(),
                    runs: vec![0; found.len()],
                };
                bump(&mut new, at);
                all.push(new);
            }
        }
    }
    all
}

fn bump(presence: &mut FindingPresence, at: usize) {
    if let Some(runs) = presence.runs.get_mut(at) {
        *runs = runs.saturating_add(1);
    }
}
