//! What the CPU time of a service went on, and what a unit of its work costs.

use crate::ledger::interval::of_count;
use crate::outlet::report::model::{
    ActivityCpu, Connections, CpuSamples, Report, Service, SoftirqDivision, UnitCost,
};
use crate::outlet::terminal::table::{Align, Table};
use crate::outlet::terminal::units::{count, counted, percent, time};
use crate::outlet::terminal::{Paint, Style, bar, printable, wrap};

use super::service::section;
use super::{paint_lines, words};

/// Shares are told apart from others only if they rest on this many samples.
const FEW_SAMPLES: u64 = 100;
/// Samples that stand for less than this of the kernel's time were lost, beyond what
/// chance does to [`FEW_SAMPLES`] or more of them.
const TOO_FEW: f64 = 0.8;

/// The share of encryption; None where no sample says so.
pub(super) fn encryption(service: &Service) -> Option<f64> {
    let mut activities = service.activities.iter();
    let found = activities.find(|one| one.activity == "encryption")?;
    (found.samples > 0).then_some(found.share)
}

/// Whether samples show TLS at work.
pub(in crate::outlet::report) fn has_tls(service: &Service) -> bool {
    let mut tls = service.activities.iter();
    tls.any(|one| one.samples > 0 && matches!(one.activity.as_str(), "handshake" | "encryption"))
}

/// The ledger of CPU time: its parts add up to the total of the head.
pub(super) fn activities(service: &Service, style: Style) -> String {
    let Some(samples) = &service.cpu_samples else {
        return String::new();
    };
    let mut rows: Vec<&ActivityCpu> = service.activities.iter().collect();
    rows.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    let mut table = Table::new()
        .left("activity")
        .right("share")
        .left("")
        .painted(Paint::Cyan)
        .right("CPU")
        .right("user")
        .right("system")
        .optional("95% range", Align::Right);
    let bar_width = (style.width / 4).min(36);
    for row in rows {
        table.row([
            words(&row.activity),
            percent(row.share),
            bar(row.share, bar_width),
            time(row.cpu_seconds),
            time(row.user_seconds),
            time(row.system_seconds),
            range(percent(row.share_low), &percent(row.share_high)),
        ]);
    }
    if samples.unattributed_seconds > 0.0 {
        let share = samples.unattributed_seconds / service.cpu_seconds.total();
        table.row([
            "not sampled".to_owned(),
            percent(share),
            bar(share, bar_width),
            time(samples.unattributed_seconds),
            "-".to_owned(),
            "-".to_owned(),
            String::new(),
        ]);
    }
    let number = counted(samples.count, "sample", "samples");
    let mut out = section(&format!("What the CPU time went on ({number})"), style);
    out.push_str(&table.render(style, 4));
    out.push_str(&softirq(service, style));
    out.push_str(&sample_notes(samples, style));
    out
}

fn range(low: String, high: &str) -> String {
    low + " to " + high
}

/// CPU time of the service per request, and of how many; None where that is not known.
pub(in crate::outlet::report) fn by_request(service: &Service) -> Option<(f64, String)> {
    let known = service.known_requests()?;
    let each = service.cpu_seconds.total() / known.count;
    let requests = counted(rounded(known.count), "request", "requests");
    let by = known.counted_by.map_or_else(String::new, |by| {
        format!(" as {} says, exact", printable(by))
    });
    Some((each, requests + &by))
}

/// Kernel work for the service that is in none of its processes' time; empty if there is none.
pub(in crate::outlet::report) fn softirq_in_words(service: &Service) -> String {
    let mut parts: Vec<&ActivityCpu> = service.activities.iter().collect();
    parts.retain(|one| one.softirq_samples > 0);
    if parts.is_empty() {
        return String::new();
    }
    parts.sort_by(|a, b| b.softirq_seconds.total_cmp(&a.softirq_seconds));
    let total = parts.iter().fold(0.0, |sum, one| sum + one.softirq_seconds);
    let named: Vec<String> = parts
        .iter()
        .map(|one| format!("{} {}", words(&one.activity), time(one.softirq_seconds)))
        .collect();
    let samples = parts.iter().map(|one| one.softirq_samples).sum();
    let timed = parts.iter().map(|one| one.softirq_timed_samples).sum();
    let limits = of_count(samples).scaled(total / samples.max(1) as f64);
    format!(
        "Besides, the kernel worked {} ({}, 95% range {} to {}) for its connections outside its \
         processes (softirq): {}. This is its share {}.",
        time(total),
        counted(samples, "sample", "samples"),
        time(limits.low),
        time(limits.high),
        named.join(", "),
        division_in_words(samples, timed)
    )
}

/// By what samples of softirqs are this service's, and what that leaves open.
fn division_in_words(samples: u64, timed: u64) -> String {
    if timed == 0 {
        return "by connections and bytes, as if each cost the same".to_owned();
    }
    let by_events = samples.saturating_sub(timed);
    let rest = if by_events == 0 {
        String::new()
    } else {
        let share = percent(by_events as f64 / samples.max(1) as f64);
        format!(", and of {share} of it by connections and bytes")
    };
    format!("by the time that its packets took{rest}")
}

fn softirq(service: &Service, style: Style) -> String {
    let text = softirq_in_words(service);
    if text.is_empty() {
        return text;
    }
    wrap(&text, 4, style.width)
}

/// What makes these figures weak.
pub(in crate::outlet::report) fn sample_notes_in_words(samples: &CpuSamples) -> Vec<String> {
    let mut notes = Vec::new();
    if samples.unclassified > 0 {
        notes.push(format!(
            "{} of its {} in the kernel are in functions that tlsprof does not know; they are \
             in application.",
            percent(samples.unclassified as f64 / samples.system.max(1) as f64),
            counted(samples.system, "sample", "samples"),
        ));
    }
    if samples.cipher_alone > 0 {
        notes.push(
            "Encryption is the cipher alone: it is known by its instructions, what frames and \
             copies records is not told from application."
                .to_owned(),
        );
    }
    if samples.count < FEW_SAMPLES {
        notes.push("Few samples: profile for longer, or under load.".to_owned());
    } else if let Some(ratio) = samples.sampled_ratio.filter(|ratio| *ratio < TOO_FEW) {
        notes.push(format!(
            "The samples stand for only {} of the CPU time that the kernel accounted: some were \
             lost, and what they were on may differ.",
            percent(ratio)
        ));
    }
    notes
}

fn sample_notes(samples: &CpuSamples, style: Style) -> String {
    let notes = sample_notes_in_words(samples);
    let lines = if notes.is_empty() {
        String::new()
    } else {
        wrap(&notes.join(" "), 4, style.width)
    };
    paint_lines(style, Paint::Dim, &lines)
}

/// What a handshake, a turn and a megabyte cost.
pub(super) fn unit_costs(service: &Service, style: Style) -> String {
    if service.unit_costs.is_empty() {
        return String::new();
    }
    let mut table = Table::new()
        .left("one")
        .right("CPU")
        .right("95% range")
        .right("samples")
        .right("of");
    for cost in &service.unit_costs {
        table.row([
            unit_in_words(service, cost).to_owned(),
            time(cost.cpu_seconds),
            range(time(cost.low_seconds), &time(cost.high_seconds)),
            count(cost.samples),
            how_many(cost),
        ]);
    }
    let mut out = section("What a unit of work costs, by samples", style);
    out.push_str(&table.render(style, 4));
    out.push_str(&unit_notes(service, style));
    out
}

/// Its unit.
pub(in crate::outlet::report) fn unit_in_words<'a>(
    service: &Service,
    cost: &'a UnitCost,
) -> &'a str {
    match cost.unit.as_str() {
        "turn" if !service.turns_are_requests() => "turn (may carry several requests)",
        "turn" => "request and response",
        "megabyte" => "MB encrypted",
        unit => unit,
    }
}

/// Why there is no CPU time per request.
pub(in crate::outlet) const HTTP2: &str = "Clients offered HTTP/2, which the server chose or may have chosen: \
    a turn may carry several requests. For the CPU per request, pass --requests N, or let `report -- COMMAND` \
    run ab, wrk, h2load, hey, oha or k6.";

/// What belongs to these costs, or is missing among them.
pub(in crate::outlet::report) fn unit_notes_in_words(service: &Service) -> Vec<String> {
    let mut notes = Vec::new();
    let ciphers = service
        .unit_costs
        .iter()
        .filter_map(|cost| cost.cipher.as_ref());
    notes.extend(ciphers.map(|cipher| format!("Nearly all bytes went with {cipher}.")));
    if !service.turns_are_requests() {
        notes.push(HTTP2.to_owned());
    }
    let has_turns = service.unit_costs.iter().any(|cost| cost.unit == "turn");
    let ended: u64 = service
        .connections
        .iter()
        .map(Connections::closed_count)
        .sum();
    let open = service.connection_count().saturating_sub(ended);
    // As the ledger has it: `connections_are_whole`.
    if !has_turns && 10 * open > service.connection_count() {
        notes.push(format!(
            "Requests and bytes are counted when a connection ends. {} of {} were open before or \
             still are: the cost of a request and of a MB is not known.",
            count(open),
            counted(service.connection_count(), "connection", "connections")
        ));
    }
    notes
}

fn unit_notes(service: &Service, style: Style) -> String {
    let notes = unit_notes_in_words(service);
    let lines = notes.iter().map(|note| wrap(note, 4, style.width));
    paint_lines(style, Paint::Dim, &lines.collect::<String>())
}

/// How many units there were.
pub(in crate::outlet::report) fn how_many(cost: &UnitCost) -> String {
    if cost.unit == "megabyte" && cost.count < 10.0 {
        return format!("{:.2}", cost.count);
    }
    count(rounded(cost.count))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count, not negative"
)]
const fn rounded(count: f64) -> u64 {
    count.round() as u64
}

/// How the kernel's work outside of processes was divided.
fn softirq_note(division: &SoftirqDivision) -> String {
    let reason = division.reason.as_ref();
    match (division.packets, division.packets_timed) {
        (Some(all), Some(timed)) => format!(
            "The kernel's work outside of processes (softirq) is divided among services by the \
             time that their packets took: {} of {} were timed.{}",
            count(timed),
            counted(all, "packet", "packets"),
            reason.map_or_else(String::new, |what| format!(" Not timed: {what}.")),
        ),
        _ => format!(
            "The kernel's work outside of processes (softirq) is divided among services by \
             connections opened and closed and by bytes, as if each cost the same: packets are \
             not timed ({}).",
            reason.map_or("", String::as_str)
        ),
    }
}

/// What to know of samples in this report.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = &report.sampling.unavailable {
        notes.push(format!(
            "No CPU samples: {reason}. What the CPU time beside handshakes went on is not known."
        ));
    }
    if let Some(period) = report.sampling.period_seconds {
        notes.push(format!(
            "Activities come from one sample of each CPU every {}, scaled to the CPU time that \
             the kernel accounts to the service. User and system are divided by samples too: \
             the kernel's own division misjudges short-lived processes.",
            time(period)
        ));
    }
    notes.extend(report.sampling.softirqs.as_ref().map(softirq_note));
    notes
}
