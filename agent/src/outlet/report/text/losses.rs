//! Data that was lost, in words, and what that means for the figures.

use crate::outlet::report::model::{Loss, Report};
use crate::outlet::terminal::units::{count, counted};
use crate::outlet::terminal::{Paint, Style, printable, wrap};

use super::{paint_lines, words};

/// Reasons of losses that do not make the figures of the profile's own time
/// wrong: they are told at the end.
const HARMLESS: [&str; 5] = [
    "began_before_attach",
    "hello_gap",
    "hello_table_full",
    "packet_table_full",
    "packet_program_skipped",
];

/// Whether a loss makes the figures of the profile's own time wrong.
pub fn is_serious(loss: &Loss) -> bool {
    !HARMLESS.contains(&loss.reason.as_str())
}

/// Losses that make the figures wrong: the alarm and its reasons.
pub fn serious_losses(report: &Report) -> Option<(String, Vec<String>)> {
    let serious: Vec<&Loss> = report
        .losses
        .iter()
        .filter(|loss| is_serious(loss))
        .collect();
    let total: u64 = serious.iter().map(|loss| loss.count).sum();
    let alarm = format!(
        "Data was lost: {}. The figures below are too low.",
        counted(total, "record or call", "records or calls")
    );
    let line = |loss: &&Loss| format!("{}: {}", count(loss.count), loss_in_words(&loss.reason));
    (!serious.is_empty()).then(|| (alarm, serious.iter().map(line).collect()))
}

/// The same, where it cannot be overlooked.
pub(super) fn losses(report: &Report, style: Style) -> String {
    let Some((alarm, reasons)) = serious_losses(report) else {
        return String::new();
    };
    let mut out = style.paint(Paint::Red, &alarm);
    out.push('\n');
    for line in reasons {
        out.push_str(&paint_lines(
            style,
            Paint::Red,
            &wrap(&line, 2, style.width),
        ));
    }
    out
}

/// What was lost, by its reason.
pub(super) fn loss_in_words(reason: &str) -> String {
    match reason {
        "event_ring_full" => "handshakes ended faster than the agent could read them; it needs \
                              more CPU"
            .to_owned(),
        "handshake_table_full" => "more handshakes were in progress at once than \
                                   limits.handshakes_in_progress allows"
            .to_owned(),
        "thread_table_full" => "more threads were in handshakes at once than there is room \
                                for"
        .to_owned(),
        "nested_handshake" => "handshakes began inside a call of another handshake on the same \
                               thread"
            .to_owned(),
        "began_before_attach" => {
            "calls belonged to handshakes that began before the profile; they are not counted"
                .to_owned()
        }
        "hello_gap" => "connections have first bytes that could not be read: what was negotiated \
                        on them is partly unknown"
            .to_owned(),
        "hello_table_full" => "connections were dropped before their handshake, for want of \
                               room: what was negotiated on them is unknown"
            .to_owned(),
        "handshake_queue_full" => "handshakes were booked before both sources were heard; some \
                                   may be counted twice"
            .to_owned(),
        "exchange_table_full" => {
            "handshakes were not followed on their sockets: more were in progress at once than \
             limits.handshakes_in_progress allows"
                .to_owned()
        }
        "hello_not_followed" => "connections whose first bytes could not be read or followed \
                                 (io_uring, sendfile): if they are TLS, socket calls do not \
                                 show their handshakes"
            .to_owned(),
        "sample_table_full" => "CPU samples found no room: more were different in a second than \
                                limits.samples allows; what they show is in no activity"
            .to_owned(),
        "sample_without_stack" => {
            "CPU samples in the kernel have no stack; what they show is in no activity".to_owned()
        }
        "packet_table_full" => "timed packets found no room: too many processes and ports in a \
                                second; softirqs are divided by the others"
            .to_owned(),
        "connection_no_memory" => "TCP connections found no room for their state".to_owned(),
        "program_skipped" => {
            "runs of programs were skipped by the kernel, because a thread had been \
                              interrupted or preempted inside one on the same CPU"
                .to_owned()
        }
        "packet_program_skipped" => {
            "runs of the program that tells whose a timed packet is were skipped by the kernel; \
             softirqs are divided by the others"
                .to_owned()
        }
        other => words(&printable(other)),
    }
}
