//! What hellos say: sessions that are taken up, what clients offer, alerts.

use crate::document::{Block, Cell, Shade, Table, Tone};
use tlsprof_common::units::{bytes, count, counted, percent};
use tlsprof_report::model::{
    Attempt, AttemptCount, HandshakeGroup, Hellos, NameCount, Resumption, Role, Service,
};

use super::wording::{ROWS, with_role, words};

/// Names of one list that are shown; the JSON has all.
const NAMES: usize = 8;
/// Why there may be no name for an alert.
const ENCRYPTED: &str = "TLS 1.3 encrypts most alerts: the record's length shows that it is an \
                         alert, but not which one. The handshake counts as failed.";

pub(super) fn hellos(service: &Service) -> Vec<Block> {
    let mut blocks = Vec::new();
    for hellos in &service.hellos {
        blocks.push(resumption(service, hellos));
        blocks.push(offers(service, hellos));
    }
    blocks.extend(alerts(service));
    blocks.extend(application(service));
    blocks
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn resumption(service: &Service, hellos: &Hellos) -> Block {
    let mut table = Table::new("Handshakes by resumption result")
        .words("resumption")
        .numbers(["handshakes", "share"])
        .bar("share, drawn");
    for attempt in &hellos.attempts {
        let share = share(attempt.count, hellos.count);
        table.row([
            with_role(service, hellos.role, &in_words(attempt)).into(),
            count(attempt.count).into(),
            percent(share).into(),
            Cell::bar(share, Shade::Handshake),
        ]);
    }
    let of = |attempt| -> u64 {
        let those = hellos.attempts.iter().filter(|it| it.attempt == attempt);
        those.map(|it| it.count).sum()
    };
    let refused = of(Attempt::Refused);
    let notes = [
        (refused > 0).then(|| {
            let number = counted(refused, "client", "clients");
            format!("{number} offered a session that was refused, and needed a full handshake.")
        }),
        (of(Attempt::Unknown) > 0).then(|| {
            "Unknown: the outcome was not seen, or the client sent a session ID of unknown origin; \
             some clients make one up."
                .to_owned()
        }),
    ];
    let mut blocks = vec![table.into()];
    blocks.extend(Block::remarks(notes.into_iter().flatten()));
    Block::section("Session resumption", blocks)
}

fn in_words(attempt: &AttemptCount) -> String {
    let what = words(attempt.attempt.label());
    match attempt.means {
        Resumption::None => what,
        means => format!("{what} ({})", words(means.label())),
    }
}

fn offers(service: &Service, hellos: &Hellos) -> Block {
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
    let title = if hellos.role == Role::Client {
        "What it offers as a client"
    } else {
        "What clients offer"
    };
    let number = counted(hellos.count, "ClientHello", "ClientHellos");
    let lists = [
        ("TLS versions", shares(&hellos.offered_versions)),
        ("key exchange", shares(&hellos.offered_groups)),
        ("also", shares(&features)),
        (
            "protocol chosen (ALPN, up to TLS 1.2)",
            shares(&hellos.application_protocols),
        ),
        ("TLS started by", shares(&hellos.upgrades)),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let lines = lists.map(|(what, names)| {
        Block::Text(with_role(service, hellos.role, &format!("{what}: {names}")))
    });
    Block::section(format!("{title} ({number})"), lines.collect())
}

fn feature_in_words(feature: &str) -> &str {
    match feature {
        "server_name" => "server name (SNI)",
        "post_quantum" => "post-quantum key exchange",
        "early_data" => "early data",
        "hello_retry_request" => "HelloRetryRequest (an extra round trip)",
        "proxy_protocol" => "PROXY protocol header",
        other => other,
    }
}

fn alerts(service: &Service) -> Option<Block> {
    let mut blocks = Vec::new();
    if !service.alerts.is_empty() {
        let mut table = Table::new("Cleartext alerts")
            .number("")
            .titled("count")
            .words("")
            .titled("alert")
            .fold(ROWS);
        for alert in &service.alerts {
            let what = format!("{} {}", alert.direction, words(&alert.description));
            table.row([
                Cell::from(count(alert.count)).tone(Tone::Look),
                with_role(service, alert.role, &what).into(),
            ]);
        }
        blocks.push(table.into());
    }
    let mut groups = service.handshakes.iter();
    if groups.any(HandshakeGroup::may_hide_its_alert) {
        blocks.extend(Block::remarks([ENCRYPTED.to_owned()]));
    }
    (!blocks.is_empty()).then(|| Block::section("Cleartext alerts", blocks))
}

fn application(service: &Service) -> Option<Block> {
    if service.application_bytes.is_empty() {
        return None;
    }
    let mut table = Table::new("By cipher suite, as carried by TCP")
        .words("cipher")
        .numbers(["received", "sent"])
        .fold(ROWS);
    for one in &service.application_bytes {
        let cells = [
            with_role(service, one.role, &one.cipher),
            bytes(one.received),
            bytes(one.sent),
        ];
        table.row(cells.map(Cell::from));
    }
    let title = "Application data of TLS connections that ended";
    Some(Block::section(title, vec![table.into()]))
}
