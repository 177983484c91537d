//! Steps of handshakes by CPU samples.

use crate::document::{Block, Cell, Drawn, Shade, Table};
use tlsprof_common::units::{counted, percent, time};
use tlsprof_report::model::{SampledStep, Service, Step};

use super::words;

/// The table of steps by samples. Where probes measured them too, it only checks these: it is folded.
pub(super) fn sampled_steps(service: &Service) -> Option<Block> {
    let samples: u64 = service.sampled_steps.iter().map(|one| one.samples).sum();
    if samples == 0 {
        return None;
    }
    let measured = is_measured(service);
    let handshakes = service.handshake_count().max(1) as f64;
    let mut table = Table::new("Handshake CPU by step, from samples")
        .words("step")
        .number("share")
        .bar("share, drawn; line: 95% CI")
        .numbers(["CPU", "per handshake"])
        .number("95% CI")
        .help("with so many samples, the true share lies in this range in 95 of 100 profiles");
    if measured {
        table = table
            .number("by probes")
            .help("the share of the same step as the probes in the TLS library measured it");
    }
    for one in &service.sampled_steps {
        let limits = Some((one.share_low, one.share_high));
        let mut row: Vec<Cell> = vec![
            name(one).into(),
            percent(one.share).into(),
            Cell::default().drawn(Drawn::Bar(one.share, Shade::Handshake, limits)),
            time(one.cpu_seconds).into(),
            time(one.cpu_seconds / handshakes).into(),
            format!("{} to {}", percent(one.share_low), percent(one.share_high)).into(),
        ];
        row.extend(measured.then(|| one.measured_share.map_or("-".to_owned(), percent).into()));
        table.row(row);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(Block::remarks(notes(service)));
    let number = counted(samples, "sample", "samples");
    let section = Block::section(format!("Handshake CPU by step, from {number}"), blocks);
    Some(match measured {
        true => Block::Fold(vec![section], Vec::new()),
        false => section,
    })
}

/// Whether probes measured steps too.
fn is_measured(service: &Service) -> bool {
    let mut steps = service.sampled_steps.iter();
    steps.any(|one| one.measured_share.is_some())
}

/// Whether samples show steps, and nothing else does.
pub(super) fn alone(service: &Service) -> bool {
    !service.sampled_steps.is_empty() && !is_measured(service)
}

fn notes(service: &Service) -> Vec<String> {
    let mut notes = vec![
        "Steps include only code that samples identify as theirs. Memory, hashing and calls around it are \
         in `other`."
            .to_owned(),
    ];
    if service.sampled_steps.iter().any(|one| one.steps.len() > 1) {
        notes.push(
            "Steps in one row run the same code, or code whose algorithm is unknown: samples cannot separate \
             them."
                .to_owned(),
        );
    }
    if let Some(kind) = &service.hidden_signature {
        notes.push(format!(
            "TLS 1.3 encrypts the server's certificate. The code of its signatures tells the kind of its key: {}.",
            key(kind)
        ));
    }
    notes
}

/// `ECDSA P-256`.
fn key(kind: &str) -> String {
    match kind.split_once("_p") {
        Some((algorithm, curve)) => format!("{} P-{curve}", algorithm.to_uppercase()),
        None if kind.starts_with("ed") => kind.replacen('e', "E", 1),
        None => kind.to_uppercase(),
    }
}

/// `key exchange or signing`.
pub(super) fn name(one: &SampledStep) -> String {
    let names: Vec<String> = one.steps.iter().map(|step| words(step.label())).collect();
    names.join(" or ")
}

/// A step with fewer samples is not the headline.
const FEW_SAMPLES: u64 = 5;

/// The most expensive step by samples and its share; None where none is known.
pub(super) fn most_expensive(service: &Service) -> Option<(String, f64)> {
    let mut steps = service.sampled_steps.iter();
    let first = steps.find(|one| one.steps != [Step::Other] && one.samples >= FEW_SAMPLES)?;
    Some((name(first), first.share))
}
