//! How much a scrape is, where everything is as diverse as it may be.
//!
//! Sizes and numbers are asserted, for docs/metrics.md names them; times are
//! printed (`cargo test --release cardinality -- --nocapture`), since a shared
//! machine proves nothing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use tlsprof_common::{Carries, Closer, Resumption, Role, Source, Whole};
use tlsprof_evidence::Comparison;
use tlsprof_evidence::hello::{Alert, AlertLevel, Direction, Facts, Group, Version, fixture};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_ledger::Ledger;

const SERVICES: usize = 200;
const MEGABYTE: usize = 1_000_000;
const CIPHERS_13: [&str; 3] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
];
const CIPHERS_12: [&str; 4] = [
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
];
const GROUPS: [&str; 3] = ["X25519MLKEM768", "x25519", "secp256r1"];
/// Names of application protocols, see evidence/hello/codes.rs.
const PROTOCOLS: usize = 36;
const SIGNATURES: [&str; 2] = ["rsa_2048", "ecdsa_p256"];

/// What a service may see of handshakes.
type Mix = Vec<Handshake>;

/// A public web server: TLS 1.2 and 1.3, two certificates, browsers old and new,
/// tickets and session ids, and clients that fail.
fn web_server() -> Mix {
    let mut mix = Mix::new();
    let mut add = |version, cipher, group, signature, resumption| {
        mix.push(Handshake {
            version,
            cipher,
            group,
            signature,
            resumption,
            ..handshake()
        });
    };
    for group in GROUPS {
        for cipher in CIPHERS_13 {
            for signature in SIGNATURES {
                add("TLS1.3", cipher, group, signature, Resumption::None);
            }
            add("TLS1.3", cipher, group, "none", Resumption::Psk);
        }
    }
    for cipher in CIPHERS_12 {
        let signature = SIGNATURES[usize::from(cipher.contains("ECDSA"))];
        for group in &GROUPS[1..] {
            add("TLS1.2", cipher, group, signature, Resumption::None);
        }
        add("TLS1.2", cipher, "none", "none", Resumption::Ticket);
        add("TLS1.2", cipher, "none", "none", Resumption::SessionId);
    }
    for outcome in [Outcome::Failed, Outcome::Abandoned] {
        mix.push(Handshake {
            outcome,
            version: "unknown",
            cipher: "unknown",
            group: "none",
            signature: "none",
            ..handshake()
        });
    }
    mix
}

/// More sets of labels than are kept apart, in both roles, with every kind of
/// resumption and outcome.
fn everything() -> Mix {
    let mut mix = Mix::new();
    let names: Vec<&'static str> = (0..400)
        .map(|n| &*format!("TLS_ECDHE_ECDSA_WITH_A_NAME_{n:03}_SHA384").leak())
        .collect();
    for (n, &cipher) in names.iter().enumerate() {
        for role in [Role::Server, Role::Client] {
            let resumption = Resumption::ALL[n % Resumption::ALL.len()];
            let outcome = [Outcome::Completed, Outcome::Failed, Outcome::Abandoned][n / 6 % 3];
            mix.push(Handshake {
                role,
                cipher,
                resumption,
                outcome,
                ..handshake()
            });
        }
    }
    mix
}

/// Every hello of the fixtures, as it is parsed.
fn hellos() -> Vec<Facts> {
    let fixtures = fixture::all().iter();
    fixtures
        .filter_map(|one| Some(*fixture::fed(one.whole()).into_facts()?))
        .collect()
}

/// The same, and peers that say everything that there are names for.
fn hostile_hellos() -> Vec<Facts> {
    let mut hellos = hellos();
    let mut hostile = hellos.first().cloned().unwrap();
    let offer = hostile.offer.as_mut().unwrap();
    let named = |name: &str| name != "other";
    offer.versions = (0..=u16::MAX).map(Version).collect();
    offer.versions.retain(|version| named(version.name()));
    offer.versions.push(Version(u16::MAX));
    offer.groups = (0..=u16::MAX).map(Group).collect();
    offer.groups.retain(|group| named(group.name()));
    offer.groups.push(Group(u16::MAX));
    for from in [Direction::FromClient, Direction::FromServer] {
        let all = (0..=u8::MAX).map(|code| (from, AlertLevel::Fatal, Alert(code)));
        hostile.alerts.extend(all);
    }
    hellos.push(hostile);
    // As many application protocols as there are names for, and `other`.
    let chosen = hellos.iter().find(|facts| facts.choice.is_some());
    let chosen = chosen.cloned().unwrap();
    for n in 0..PROTOCOLS {
        let mut facts = chosen.clone();
        if let Some(choice) = &mut facts.choice {
            choice.protocol = Some(format!("protocol/{n:02}").leak());
        }
        hellos.push(facts);
    }
    hellos
}

/// 200 services that all have seen that mix of handshakes, and every way in
/// which a connection may end.
fn filled(mix: &Mix, roles: &[Role], hellos: &[Facts]) -> Metrics {
    let ledger = SharedLedger::new(RwLock::new(Ledger::default()));
    let metrics = Metrics::new(&ledger);
    for n in 0..SERVICES {
        let service = format!("checkout-backend-{n:03}.service");
        let mut ledger = ledger.write().unwrap();
        for (n, one) in mix.iter().enumerate() {
            let spread = Duration::from_micros(37 * (n as u64 + 1));
            let one = Handshake {
                source: [Source::Library, Source::Socket][n % 2],
                flights: (n % 2 == 1).then_some([spread; 2]),
                cpu: one.cpu + spread,
                duration: one.duration + 50 * spread,
                ..one.clone()
            };
            ledger.record(&service, &one);
            metrics.observe(&service, &Evidence::Handshake(Box::new(one)));
        }
        for &role in roles {
            for facts in hellos {
                let with_hello = Handshake {
                    role,
                    hello: Some(Box::new(facts.clone())),
                    ..mix[0].clone()
                };
                ledger.record(&service, &with_hello);
            }
            book_connections(&mut ledger, &metrics, &service, role, mix);
        }
        ledger.add_cpu(&service, Duration::from_secs(9), Duration::from_secs(1));
    }
    metrics
}

fn book_connections(ledger: &mut Ledger, metrics: &Metrics, service: &str, role: Role, mix: &Mix) {
    let compared = Comparison {
        process: 1,
        comm: "nginx".into(),
        role,
        began: Duration::ZERO,
        connection: None,
        library: Duration::from_millis(2),
        socket: Duration::from_millis(2),
    };
    ledger.record_comparison(service, &compared);
    ledger.record_opening(service, &opening(role));
    for (n, one) in mix.iter().enumerate() {
        let mut closed = Connection {
            carries: Carries::Tls,
            cipher: one.cipher,
            application_received: 700,
            application_sent: 9_000,
            closed_by: Closer::ALL[n % Closer::ALL.len()],
            ..connection()
        };
        closed.whole = closed.whole.map(|whole| Whole {
            role,
            turns: Some(n as u32),
            duration: Duration::from_millis(1) * (n as u32 + 1),
            ..whole
        });
        ledger.record_connection(service, &closed);
        metrics.observe(service, &Evidence::Closed(Box::new(closed)));
    }
}

/// What one scrape is.
#[derive(Debug)]
struct Size {
    series_per_service: usize,
    text: usize,
    /// Text on its way to a scraper that takes gzip, as Prometheus does.
    gzip: usize,
    protobuf: usize,
}

fn gzip(text: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let begun = Instant::now();
    encoder.write_all(text.as_bytes()).unwrap();
    let size = encoder.finish().unwrap().len();
    println!("gzip in {:?}", begun.elapsed());
    size
}

fn measure(name: &str, metrics: &Metrics) -> Size {
    let begun = Instant::now();
    let text = metrics.encode(Format::OpenMetrics).unwrap();
    let text_took = begun.elapsed();
    let begun = Instant::now();
    let protobuf = metrics.encode(Format::Protobuf).unwrap();
    let protobuf_took = begun.elapsed();
    let lines = String::from_utf8(text).unwrap();
    let series = |line: &&str| line.contains("service_name=\"checkout-backend-007.service\"");
    let size = Size {
        series_per_service: lines.lines().filter(series).count(),
        text: lines.len(),
        gzip: gzip(&lines),
        protobuf: protobuf.len(),
    };
    println!("{name}: {size:?}, text in {text_took:?}, protobuf in {protobuf_took:?}");
    size
}

/// No more than what docs/metrics.md says of a service.
fn assert_documented(size: &Size, most: &str) {
    let page = include_str!("../../../../docs/metrics.md");
    assert!(page.contains(&format!("{most} series")), "{most}");
    let most: usize = most.replace(',', "").parse().unwrap();
    assert!(size.series_per_service <= most, "{size:?}");
}

#[test]
fn two_hundred_web_servers() {
    let metrics = filled(&web_server(), &[Role::Server], &hellos());
    let size = measure("web servers", &metrics);
    assert_documented(&size, "400");
    // What a Prometheus with native histograms scrapes.
    assert!(size.protobuf < 5 * MEGABYTE, "{size:?}");
    assert!(size.text < 11 * MEGABYTE, "{size:?}");
    assert!(size.gzip < MEGABYTE, "{size:?}");
}

/// Nothing makes it more than this, whatever peers do.
#[test]
fn two_hundred_services_at_every_limit() {
    let roles = [Role::Server, Role::Client];
    let metrics = filled(&everything(), &roles, &hostile_hellos());
    let size = measure("every limit", &metrics);
    assert_documented(&size, "1,500");
    assert!(
        size.text < 45 * MEGABYTE && size.gzip < 5 * MEGABYTE && size.protobuf < 30 * MEGABYTE,
        "{size:?}"
    );
}
