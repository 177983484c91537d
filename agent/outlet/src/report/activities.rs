//! What the CPU time of a service went on, and what a unit of its work costs.

use crate::document::{Block, Cell, Drawn, Part, Shade, Table};
use tlsprof_common::units::{count, counted, percent, time};
use tlsprof_ledger::interval::of_count;
use tlsprof_report::model::{
    Activity, ActivityCpu, Connections, CpuSamples, Report, Service, Unit, UnitCost,
};

use super::shares::share;
use super::wording::words;

/// Shares are told apart from others only if they rest on this many samples.
const FEW_SAMPLES: u64 = 100;
/// Samples that stand for less than this of the kernel's time were lost, beyond what
/// chance does to [`FEW_SAMPLES`] or more of them.
const TOO_FEW: f64 = 0.8;

/// The share of encryption; None where no sample says so.
pub(super) fn encryption(service: &Service) -> Option<f64> {
    let mut activities = service.activities.iter();
    let found = activities.find(|one| one.activity == Activity::Encryption)?;
    (found.samples > 0).then_some(found.share)
}

/// Whether samples show TLS at work.
pub(super) fn has_tls(service: &Service) -> bool {
    let mut tls = service.activities.iter();
    tls.any(|one| {
        one.samples > 0 && matches!(one.activity, Activity::Handshake | Activity::Encryption)
    })
}

/// The ledger of CPU time: its parts add up to the total of the head.
pub(super) fn activities(service: &Service) -> Option<Block> {
    let samples = service.cpu_samples.as_ref()?;
    let mut rows: Vec<&ActivityCpu> = service.activities.iter().collect();
    rows.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    let number = counted(samples.count, "sample", "samples");
    let mut table = Table::new(format!("CPU time by activity, from {number}"))
        .words("activity")
        .number("share")
        .bar("share, drawn; line: 95% CI")
        .numbers(["CPU", "user", "system"])
        .number("95% CI")
        .help("95% confidence interval, from the number of samples")
        .optional();
    for row in &rows {
        let shade = shade(row.activity);
        let limits = Some((row.share_low, row.share_high));
        table.row([
            Cell::from(words(row.activity.label())).drawn(Drawn::Swatch(shade)),
            percent(row.share).into(),
            Cell::default().drawn(Drawn::Bar(row.share, shade, limits)),
            time(row.cpu_seconds).into(),
            time(row.user_seconds).into(),
            time(row.system_seconds).into(),
            range(percent(row.share_low), &percent(row.share_high)).into(),
        ]);
    }
    let part = |one: &ActivityCpu| Part {
        name: words(one.activity.label()),
        share: one.share,
        shade: shade(one.activity),
    };
    let mut parts: Vec<Part> = service.activities.iter().map(part).collect();
    if samples.unattributed_seconds > 0.0 {
        let share = samples.unattributed_seconds / service.cpu_seconds.total();
        let (name, shade) = ("not sampled".to_owned(), Shade::Rest);
        table.row([
            Cell::from(&name).drawn(Drawn::Swatch(shade)),
            percent(share).into(),
            Cell::bar(share, shade),
            time(samples.unattributed_seconds).into(),
            "-".into(),
            "-".into(),
            Cell::default(),
        ]);
        parts.push(Part { name, share, shade });
    }
    let drawn = format!("CPU time of {} by activity", service.service_name);
    let mut blocks = vec![Block::Whole(drawn, parts), table.into()];
    blocks.extend(softirq(service).map(Block::Text));
    blocks.extend(Block::remarks(sample_notes(samples)));
    let title = format!("CPU time by activity ({number})");
    Some(Block::section(title, blocks))
}

/// The colour of an activity.
const fn shade(activity: Activity) -> Shade {
    match activity {
        Activity::Handshake => Shade::Handshake,
        Activity::Encryption => Shade::Encryption,
        Activity::SocketIo => Shade::SocketIo,
        Activity::TcpOpen => Shade::TcpOpen,
        Activity::TcpClose => Shade::TcpClose,
        Activity::Application => Shade::Application,
        Activity::Unknown => Shade::Rest,
    }
}

fn range(low: String, high: &str) -> String {
    low + " to " + high
}

/// CPU time of the service per request, and of how many; None where that is not known, or the
/// two accounts of its CPU time disagree: of a short profile the kernel may have counted none.
pub(super) fn by_request(service: &Service) -> Option<(f64, String)> {
    share(service)?;
    let known = service.known_requests()?;
    let each = service.cpu_seconds.total() / known.count;
    let requests = counted(rounded(known.count), "request", "requests");
    let by = known
        .counted_by
        .map_or_else(String::new, |by| format!(" as counted by {by}"));
    Some((each, requests + &by))
}

/// Kernel work for the service that is in none of its processes' time; empty if there is none.
fn softirq(service: &Service) -> Option<String> {
    let mut parts: Vec<&ActivityCpu> = service.activities.iter().collect();
    parts.retain(|one| one.softirq_samples > 0);
    if parts.is_empty() {
        return None;
    }
    parts.sort_by(|a, b| b.softirq_seconds.total_cmp(&a.softirq_seconds));
    let total = parts.iter().fold(0.0, |sum, one| sum + one.softirq_seconds);
    let named: Vec<String> = parts
        .iter()
        .map(|one| {
            format!(
                "{} {}",
                words(one.activity.label()),
                time(one.softirq_seconds)
            )
        })
        .collect();
    let samples = parts.iter().map(|one| one.softirq_samples).sum();
    let limits = of_count(samples).scaled(total / samples.max(1) as f64);
    Some(format!(
        "The kernel spent another {} ({}, 95% CI {} to {}) in softirq on its behalf: {}. Estimate: \
         softirq time divided among services by connections and bytes.",
        time(total),
        counted(samples, "sample", "samples"),
        time(limits.low),
        time(limits.high),
        named.join(", "),
    ))
}

/// What makes these figures weak.
fn sample_notes(samples: &CpuSamples) -> Vec<String> {
    let mut notes = Vec::new();
    if samples.unclassified > 0 {
        notes.push(format!(
            "{} of its {} in the kernel hit functions that tlsprof does not know; they count as \
             application.",
            percent(samples.unclassified as f64 / samples.system.max(1) as f64),
            counted(samples.system, "sample", "samples"),
        ));
    }
    if samples.cipher_alone > 0 {
        notes.push(
            "Encryption includes only the cipher, which tlsprof identifies by its instructions; \
             framing and copying of records count as application."
                .to_owned(),
        );
    }
    if samples.count < FEW_SAMPLES {
        notes.push("Few samples: profile longer or under load.".to_owned());
    } else if let Some(ratio) = samples.sampled_ratio.filter(|ratio| *ratio < TOO_FEW) {
        notes.push(format!(
            "The samples cover only {} of the CPU time that the kernel accounted: some were lost, \
             and their activities may differ.",
            percent(ratio)
        ));
    }
    notes
}

/// What a handshake, a turn and a megabyte cost.
pub(super) fn unit_costs(service: &Service) -> Option<Block> {
    if service.unit_costs.is_empty() {
        return None;
    }
    let highest = service.unit_costs.iter().map(|cost| cost.high_seconds);
    let span = (0.0, highest.fold(0.0, f64::max));
    let mut table = Table::new("CPU time from samples, divided by exact counts")
        .words("one")
        .help("the unit that the CPU time is divided by: a handshake, a megabyte, a connection")
        .number("CPU")
        .interval("95% CI")
        .number("samples")
        .number("of");
    for cost in &service.unit_costs {
        let ends = [cost.low_seconds, cost.cpu_seconds, cost.high_seconds];
        let limits = range(time(cost.low_seconds), &time(cost.high_seconds));
        table.row([
            unit_in_words(service, cost.unit).into(),
            time(cost.cpu_seconds).into(),
            Cell::from(limits).drawn(Drawn::Interval { ends, span }),
            count(cost.samples).into(),
            how_many(cost).into(),
        ]);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(Block::remarks(unit_notes(service)));
    Some(Block::section("CPU per unit of work, from samples", blocks))
}

/// Its unit.
fn unit_in_words(service: &Service, unit: Unit) -> &'static str {
    match unit {
        Unit::Turn if !service.turns_are_requests() => "turn (may carry several requests)",
        Unit::Turn => "request and response",
        Unit::Megabyte => "MB encrypted",
        Unit::Handshake | Unit::Unknown => unit.label(),
    }
}

/// Why there is no CPU time per request.
pub(crate) const HTTP2: &str = "Clients offered HTTP/2, and the server chose it or may have chosen \
                                it: a turn may carry several requests. For the CPU per request, \
                                pass --requests N, or let `report -- COMMAND` run ab, wrk, h2load, \
                                hey, oha or k6.";

/// What belongs to these costs, or is missing among them.
fn unit_notes(service: &Service) -> Vec<String> {
    let mut notes = Vec::new();
    let ciphers = service
        .unit_costs
        .iter()
        .filter_map(|cost| cost.cipher.as_ref());
    notes.extend(ciphers.map(|cipher| format!("Nearly all bytes were encrypted with {cipher}.")));
    if !service.turns_are_requests() {
        notes.push(HTTP2.to_owned());
    }
    let has_turns = service
        .unit_costs
        .iter()
        .any(|cost| cost.unit == Unit::Turn);
    let ended: u64 = service
        .connections
        .iter()
        .map(Connections::closed_count)
        .sum();
    let open = service.connection_count().saturating_sub(ended);
    // As the ledger has it: `connections_are_whole`.
    if !has_turns && 10 * open > service.connection_count() {
        notes.push(format!(
            "Requests and bytes are counted when a connection ends. {} of {} were open before the \
             profile or are still open: the costs per request and per MB are unknown.",
            count(open),
            counted(service.connection_count(), "connection", "connections")
        ));
    }
    notes
}

/// How many units there were.
fn how_many(cost: &UnitCost) -> String {
    if cost.unit == Unit::Megabyte && cost.count < 10.0 {
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

/// What to know of samples in this report.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = &report.sampling.unavailable {
        notes.push(format!(
            "No CPU samples: {reason}. The activities of CPU time outside handshakes are unknown."
        ));
    }
    if let Some(period) = report.sampling.period_seconds {
        let later = time(period);
        let every = match report.sampling.first_period_seconds {
            Some(first) => format!("{} at first, later every {later}", time(first)),
            None => later,
        };
        notes.push(format!(
            "Activities come from one sample of each CPU every {every}, scaled to the CPU time that the \
             kernel accounts to the service. Samples also divide user and system time, since the \
             kernel's own split is inaccurate for short-lived processes."
        ));
        notes.push(
            "Kernel time outside of processes (softirq) is divided among services by connections \
             opened and closed and by bytes, at equal cost each."
                .to_owned(),
        );
    }
    notes
}
