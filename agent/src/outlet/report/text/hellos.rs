//! What hellos say: sessions that are taken up, what clients offer, alerts.

use crate::outlet::report::model::{AttemptCount, Hellos, NameCount, Service};
use crate::outlet::terminal::table::Table;
use crate::outlet::terminal::units::{bytes, count, counted, percent};
use crate::outlet::terminal::{Paint, Style, bar, wrap};

use super::service::{ROWS, section, with_role};
use super::{paint_lines, words};

/// Names of one list that are shown; the JSON has all.
const NAMES: usize = 8;

pub(super) fn hellos(service: &Service, style: Style) -> String {
    let mut out = String::new();
    for hellos in &service.hellos {
        out.push_str(&resumption(service, hellos, style));
        out.push_str(&offers(service, hellos, style));
    }
    out.push_str(&alerts(service, style));
    out.push_str(&application(service, style));
    out
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn resumption(service: &Service, hellos: &Hellos, style: Style) -> String {
    let mut table = Table::new()
        .left("earlier session")
        .right("handshakes")
        .right("share")
        .left("")
        .painted(Paint::Cyan);
    for attempt in &hellos.attempts {
        let share = share(attempt.count, hellos.count);
        table.row([
            with_role(service, &hellos.role, &in_words(attempt)),
            count(attempt.count),
            percent(share),
            bar(share, (style.width / 4).min(36)),
        ]);
    }
    let mut out = section("Session resumption", style) + &table.render(style, 4);
    let of = |attempt: &str| -> u64 {
        let those = hellos.attempts.iter().filter(|it| it.attempt == attempt);
        those.map(|it| it.count).sum()
    };
    let mut notes = Vec::new();
    if of("refused") > 0 {
        let number = counted(of("refused"), "client", "clients");
        notes.push(format!(
            "{number} brought a session that was refused and paid for a full handshake."
        ));
    }
    if of("unknown") > 0 {
        notes.push(
            "Unknown: the outcome was not seen, or a session id was sent that nobody is known \
             to have issued; some clients make one up."
                .to_owned(),
        );
    }
    for note in notes {
        let lines = wrap(&note, 4, style.width);
        out.push_str(&paint_lines(style, Paint::Dim, &lines));
    }
    out
}

fn in_words(attempt: &AttemptCount) -> String {
    let what = words(&attempt.attempt);
    match attempt.means.as_str() {
        "none" => what,
        means => format!("{what} ({})", words(means)),
    }
}

fn offers(service: &Service, hellos: &Hellos, style: Style) -> String {
    let shares = |all: &[NameCount]| -> String {
        let shown = all.iter().take(NAMES);
        let named = shown.map(|one| {
            let share = share(one.count, hellos.count);
            format!("{} {}", one.name, percent(share))
        });
        let mut text = named.collect::<Vec<_>>().join(", ");
        if let Some(more) = all.len().checked_sub(NAMES).filter(|more| *more > 0) {
            text.push_str(&format!(", and {more} more"));
        }
        text
    };
    let features: Vec<NameCount> = hellos
        .features
        .iter()
        .map(|one| NameCount {
            name: feature_in_words(&one.name).to_owned(),
            ..one.clone()
        })
        .collect();
    let title = if hellos.role == "client" {
        "What it offers as a client"
    } else {
        "What clients offer"
    };
    let number = counted(hellos.count, "ClientHello", "ClientHellos");
    let mut out = section(&format!("{title} ({number})"), style);
    for (what, text) in [
        ("TLS versions", shares(&hellos.offered_versions)),
        ("key exchange", shares(&hellos.offered_groups)),
        ("also", shares(&features)),
        (
            "protocol chosen (ALPN, up to TLS 1.2)",
            shares(&hellos.application_protocols),
        ),
        ("TLS began within", shares(&hellos.upgrades)),
    ] {
        if !text.is_empty() {
            let line = with_role(service, &hellos.role, &format!("{what}: {text}"));
            out.push_str(&wrap(&line, 4, style.width));
        }
    }
    out
}

fn feature_in_words(feature: &str) -> &str {
    match feature {
        "server_name" => "names the host (SNI)",
        "post_quantum" => "a post-quantum key exchange",
        "early_data" => "early data",
        "hello_retry_request" => "asked for another key share, a round trip more",
        "proxy_protocol" => "a PROXY protocol header",
        other => other,
    }
}

fn alerts(service: &Service, style: Style) -> String {
    if service.alerts.is_empty() {
        return String::new();
    }
    let mut table = Table::new().right("").painted(Paint::Yellow).left("");
    for alert in service.alerts.iter().take(ROWS) {
        let what = format!("{} {}", alert.direction, words(&alert.description));
        table.row([count(alert.count), with_role(service, &alert.role, &what)]);
    }
    section("Alerts in clear", style) + &table.render(style, 4)
}

fn application(service: &Service, style: Style) -> String {
    if service.application_bytes.is_empty() {
        return String::new();
    }
    let mut table = Table::new().left("cipher").right("received").right("sent");
    for one in service.application_bytes.iter().take(ROWS) {
        table.row([
            with_role(service, &one.role, &one.cipher),
            bytes(one.received),
            bytes(one.sent),
        ]);
    }
    section("Application data of TLS connections that ended", style) + &table.render(style, 4)
}
