//! Encryption of data: slow ciphers where clients would have taken AES-GCM.

use std::collections::BTreeMap;

use crate::finding::{Advice, Kind, Target};
use crate::subject::{Subject, clients, whole};
use crate::{
    CostSource, Evidence, Finding, Observed, Prediction, Protection, Range, Server, Severity, Work,
};
use tlsprof_common::Role;
use tlsprof_common::units::{count, time};
use tlsprof_ledger::{CipherOffers, ServiceAccount, Unit, UnitCost};

pub(crate) static KIND: Kind = Kind {
    label: "costly-cipher",
    page: include_str!("../../../../docs/findings/costly-cipher.md"),
    summary: "Slow cipher, although clients offer AES-GCM",
    risk: "Clients without AES instructions, such as old phones, prefer ChaCha20: keep it in the \
           list. Negotiate it with clients that prefer it. Dropping CBC suites is no risk: they \
           have a history of padding and timing attacks (Lucky Thirteen), and the blocks of 3DES \
           are too short for long connections (Sweet32).",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: Some(Work::Encryption),
};

/// From this share of the bytes on, what encryption costs is the cost of one suite.
const DOMINANT: f64 = 0.95;

/// Records of another service are taken for alike up to this factor of their length.
const ALIKE: f64 = 2.0;

/// A calibration times encryption alone, on a CPU that nothing disturbs: it is known no
/// better than this as a share of the same work in a service.
const MARGIN: f64 = 0.1;

/// A service is not taken to be slower at a cipher than its calibration by more than this:
/// Apache httpd with AES-CBC was by 1.2 to 1.3.
const COLDER: f64 = 1.25;

/// Megabytes of TLS connections by how they are protected, both roles and directions.
#[derive(Default)]
struct Bytes {
    by: BTreeMap<Protection, f64>,
    all: f64,
}

impl Bytes {
    fn of(account: &ServiceAccount) -> Self {
        let mut bytes = Self::default();
        for (suite, carried) in account.roles.values().flat_map(|role| &role.application) {
            let megabytes = carried.received.saturating_add(carried.sent) as f64 / 1e6;
            bytes.all += megabytes;
            if let Some(protection) = Protection::of(suite) {
                *bytes.by.entry(protection).or_default() += megabytes;
            }
        }
        bytes
    }
}

/// Data that one slow suite protects, of clients that offered AES-GCM.
struct Slow {
    suite: &'static str,
    by: Protection,
    megabytes: f64,
    offers: CipherOffers,
}

impl Slow {
    /// Megabytes of clients that would have taken AES-GCM: those whose hello was read
    /// speak for the rest.
    fn affected(&self) -> f64 {
        self.megabytes * self.offers.aes_gcm as f64 / self.offers.hellos.max(1) as f64
    }
}

fn slow_suites(subject: &Subject<'_>) -> Vec<Slow> {
    let Some(role) = subject.role(Role::Server) else {
        return Vec::new();
    };
    let offers = &role.hellos.consequences.ciphers;
    let suites = role.application.iter().filter_map(|(suite, carried)| {
        let by = Protection::of(suite).filter(|by| !by.is_gcm())?;
        // Without AES in hardware it is the fast one.
        if by == Protection::ChaCha20 && !subject.setting.aes_in_hardware {
            return None;
        }
        Some(Slow {
            suite,
            by,
            megabytes: carried.received.saturating_add(carried.sent) as f64 / 1e6,
            offers: offers.get(suite).copied().unwrap_or_default(),
        })
    });
    let mut suites: Vec<Slow> = suites.filter(|slow| slow.affected() > 0.0).collect();
    suites.sort_by(|a, b| b.megabytes.total_cmp(&a.megabytes));
    suites
}

/// Data that is encrypted by a slow cipher for clients that offer AES-GCM.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let suites = slow_suites(subject);
    let first = suites.first()?;
    let cost = megabyte(subject.account)?;
    if !subject.enough(cost.samples) {
        return None;
    }
    let bytes = Bytes::of(subject.account);
    let prediction = predict(subject, &suites, &bytes, &cost)?;
    let affected: f64 = suites.iter().map(Slow::affected).sum();
    let hellos: u64 = suites.iter().map(|slow| slow.offers.hellos).sum();
    let faster: u64 = suites.iter().map(|slow| slow.offers.aes_gcm).sum();
    let evidence = Evidence {
        basis: subject.basis(Observed::Samples, cost.samples),
        statements: statements(subject, &suites, &bytes, &cost),
        figures: vec![
            ("affected_bytes", (affected * 1e6).round()),
            ("bytes", (bytes.all * 1e6).round()),
            ("offered_aes_gcm_ratio", faster as f64 / hellos as f64),
            ("encryption_seconds_per_megabyte", cost.seconds),
        ],
    };
    let title = format!(
        "Data is encrypted with {}, although clients offer AES-GCM, which is faster",
        first.by.label()
    );
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

/// What a megabyte costs now.
fn megabyte(account: &ServiceAccount) -> Option<UnitCost> {
    let mut costs = account.unit_costs().into_iter();
    costs.find(|cost| cost.unit == Unit::Megabyte)
}

/// All encryption, in CPU seconds.
fn spent(cost: &UnitCost) -> Range {
    Range {
        low: cost.limits.low,
        likely: cost.seconds,
        high: cost.limits.high,
    }
    .times(cost.count)
}

fn predict(
    subject: &Subject<'_>,
    suites: &[Slow],
    bytes: &Bytes,
    cost: &UnitCost,
) -> Option<Prediction> {
    let affected: f64 = suites.iter().map(Slow::affected).sum();
    let spent = spent(cost);
    let known = beside_others(subject, suites, bytes, spent)
        .map(|cpu| (cpu, CostSource::ThisHost))
        .or_else(|| {
            let cpu = calibrated(subject, suites, bytes, spent)?;
            Some((cpu, CostSource::Calibration))
        });
    if let Some((cpu, source)) = known {
        let method = format!(
            "Estimate: (current cost - cost with AES-GCM) x bytes of clients that offered it; \
             AES-GCM was measured in {}.",
            source.words()
        );
        return subject
            .worth(cpu.likely)
            .then(|| Prediction::Saving(subject.saving(cpu, source, method)));
    }
    // More than all of it cannot be saved.
    let bound = spent.likely * affected / bytes.all;
    subject.worth(bound).then(|| {
        Prediction::Unknown(format!(
            "no other service on this host encrypts records of similar length with AES-GCM, and {}",
            subject.costs.no_calibration(subject.name)
        ))
    })
}

/// By the calibration of the service's library: the difference that it shows, but no
/// more than the same share of what encryption takes in the service.
fn calibrated(
    subject: &Subject<'_>,
    suites: &[Slow],
    bytes: &Bytes,
    spent: Range,
) -> Option<Range> {
    let length = answer(subject.account);
    let of = |by| subject.costs.encryption(subject.name, by, length);
    let mut all = 0.0;
    for (by, megabytes) in &bytes.by {
        all += of(*by)?.likely * megabytes;
    }
    let mut difference = Range::default();
    for slow in suites {
        let each = of(slow.by)?.minus(of(slow.by.gcm())?);
        difference = difference.plus(each.times(slow.affected()));
    }
    // Above 1 is what libssl does beside the cipher, which stays, and a CPU with colder
    // caches, which is slower at any cipher: halfway, as nothing tells them apart.
    let slower = spent.map(|seconds| seconds / all);
    let halfway = |slower: f64| slower.min(f64::midpoint(slower, 1.0)).min(COLDER);
    let range = Range {
        low: difference.low * (1.0 - MARGIN) * slower.low.min(1.0),
        likely: difference.likely * halfway(slower.likely),
        high: difference.high * (1.0 + MARGIN) * slower.high.max(1.0),
    };
    let ceiling = spent.high;
    Some(range.map(|seconds| seconds.min(ceiling)))
}

/// By another service of this host that encrypts records of the same length with
/// AES-GCM: where one slow suite carries nearly all bytes.
fn beside_others(
    subject: &Subject<'_>,
    suites: &[Slow],
    bytes: &Bytes,
    spent: Range,
) -> Option<Range> {
    let first = suites.first()?;
    let length = answer(subject.account);
    let is_gcm = |cost: &UnitCost| {
        let by = cost.cipher.and_then(Protection::of);
        by.is_some_and(Protection::is_gcm) && subject.enough(cost.samples)
    };
    let others = subject.costs.others(subject.name).filter(|other| {
        let there = answer(other);
        there <= length * ALIKE && length <= there * ALIKE
    });
    let costs = others.filter_map(megabyte).filter(is_gcm);
    let there = costs.max_by_key(|cost| cost.samples)?;
    if first.megabytes < DOMINANT * bytes.all {
        return None;
    }
    let share = first.affected() / bytes.all;
    let gcm = Range {
        low: there.limits.low,
        likely: there.seconds,
        high: there.limits.high,
    };
    Some(spent.minus(gcm.times(bytes.all)).times(share))
}

/// Bytes that a server sends in an answer, on average: as long are its records, up to the
/// longest that there are.
fn answer(account: &ServiceAccount) -> f64 {
    let Some(kept) = account.connections.get(&Role::Server) else {
        return f64::INFINITY;
    };
    kept.turns().map_or(f64::INFINITY, |turns| {
        kept.bytes_sent as f64 / turns.max(1) as f64
    })
}

fn statements(
    subject: &Subject<'_>,
    suites: &[Slow],
    bytes: &Bytes,
    cost: &UnitCost,
) -> Vec<String> {
    let mut all: Vec<String> = suites.iter().map(|slow| statement(slow, bytes)).collect();
    let spent = cost.seconds * cost.count;
    all.push(format!(
        "Encryption costs {} of CPU per megabyte, {} of the service's CPU in total.",
        time(cost.seconds),
        subject.share_in_words(spent)
    ));
    all
}

fn statement(slow: &Slow, bytes: &Bytes) -> String {
    format!(
        "{} MB of {} were encrypted with {}; {} offered AES-GCM.",
        count(whole(slow.megabytes)),
        count(whole(bytes.all)),
        slow.suite,
        clients(slow.offers.aes_gcm, slow.offers.hellos),
    )
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Put AES-GCM suites first and let the server's order decide, except for clients that \
             put ChaCha20 first.",
            "ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;\n\
             ssl_prefer_server_ciphers on;\n\
             ssl_conf_command Options PrioritizeChaCha;",
        ),
        Server::Apache => (
            "Put AES-GCM suites first and let the server's order decide, except for clients that \
             put ChaCha20 first.",
            "SSLCipherSuite ECDHE+AESGCM:ECDHE+CHACHA20\n\
             SSLHonorCipherOrder on\n\
             SSLOpenSSLConfCmd Options PrioritizeChaCha",
        ),
        Server::HaProxy => (
            "Put AES-GCM suites first, in the global section and on bind lines with their own \
             lists; TLS 1.3 has ssl-default-bind-ciphersuites. Remove `prefer-client-ciphers`: \
             clients that put ChaCha20 first get it anyway.",
            "ssl-default-bind-ciphers ECDHE+AESGCM:ECDHE+CHACHA20",
        ),
        Server::NodeJs => (
            "Put AES-GCM suites first in the options of tls.createServer, https.createServer or \
             http2.createSecureServer. A list without TLS 1.3 suites would disable TLS 1.3.",
            "ciphers: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:' +\n\
             \x20 'TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20',\n\
             honorCipherOrder: true",
        ),
        Server::Envoy => (
            "Use AES-GCM suites in the listener's common_tls_context. The client chooses among \
             suites in brackets. TLS 1.3 suites are not configurable.",
            "tls_params:\n\
             \x20 cipher_suites:\n\
             \x20 - \"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]\"\n\
             \x20 - \"[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]\"",
        ),
        Server::Domino => (
            "From 10.0.1 on, enable only AES-GCM suites in the Internet Site document, or in the \
             Server document (Ports, Internet Ports); before that, list them in notes.ini. Then \
             restart the HTTP task.",
            "SSLCipherSpec=C02BC02CC02FC030",
        ),
        Server::Stunnel => (
            "Put AES-GCM suites first, in the service's section.",
            "ciphers = ECDHE+AESGCM:ECDHE+CHACHA20\n\
             options = CIPHER_SERVER_PREFERENCE\n\
             options = PRIORITIZE_CHACHA",
        ),
        Server::Caddy | Server::Unknown => (
            "Put AES-GCM suites first in the server's list and let its order decide; leave out CBC \
             and 3DES.",
            "",
        ),
    }
}
