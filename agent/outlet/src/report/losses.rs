//! Data that was lost, in words, and what that means for the figures.

use crate::document::{Block, Tone};
use tlsprof_common::units::{count, counted};
use tlsprof_report::model::{Loss, Report};

/// Losses that make the figures wrong, where they cannot be overlooked.
pub(super) fn losses(report: &Report) -> Option<Block> {
    let serious = report.losses.iter().filter(|loss| loss.reason.is_serious());
    let total: u64 = serious.clone().map(|loss| loss.count).sum();
    let alarm = format!(
        "Data was lost: {}. The figures below are too low.",
        counted(total, "record or call", "records or calls")
    );
    let line = |loss: &Loss| format!("{}: {}", count(loss.count), loss.reason.words());
    let reasons: Vec<String> = serious.map(line).collect();
    (!reasons.is_empty()).then_some(Block::Alarm(Tone::Bad, alarm, reasons))
}

/// The others, in sentences.
pub(super) fn harmless(report: &Report) -> impl Iterator<Item = String> {
    let those = report
        .losses
        .iter()
        .filter(|loss| !loss.reason.is_serious());
    those.map(|loss| format!("{} {}.", count(loss.count), loss.reason.words()))
}
