//! Certificate chains that take much of the wire.

use crate::costs::range;
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Server, Severity};
use tlsprof_common::units::{bytes, count, counted, percent, time};
use tlsprof_common::{Resumption, Role};
use tlsprof_ledger::{Flights, INITIAL_WINDOW, RoleAccount};

pub(crate) static KIND: Kind = Kind {
    label: "long-certificate-chain",
    page: include_str!("../../../../docs/findings/long-certificate-chain.md"),
    summary: "The certificate chain is long, and may cost a round trip in each full handshake",
    risk: "Clients that cannot build a chain to a trusted root fail. Test with old clients and with \
           clients other than browsers, which do not fetch missing intermediates.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Bytes of a server's messages in a full handshake with a certificate and one or two
/// that issued it: 4 kB of certificates and 1 kB of all else.
const USUAL: f64 = 5000.0;

/// What a long chain costs here.
enum Harm {
    /// Flights wait for a round trip: so many seconds of the time that full handshakes
    /// take, as a share (0 to 1) of it.
    RoundTrips(f64),
    /// Bytes beyond the usual, as a share (0 to 1) of all that is sent.
    Bytes(f64),
}

fn find(subject: &Subject<'_>) -> Option<Finding> {
    let role = subject.role(Role::Server)?;
    let flights = role.flights;
    if !subject.enough(flights.count) || flights.mean() <= USUAL {
        return None;
    }
    let sent = subject.connections(Role::Server)?.bytes_sent;
    let worth = |share: &f64| *share >= subject.thresholds.min_saving;
    let in_round_trips = round_trips(role).filter(worth).map(Harm::RoundTrips);
    let in_bytes = Some(beyond_usual(flights, sent)).filter(worth);
    let harm = in_round_trips.or(in_bytes.map(Harm::Bytes))?;
    Some(found(subject, role, &harm, sent))
}

/// Share of the time of full handshakes that flights too long for the first window
/// wait for the peer; None where no round trip of such was measured.
fn round_trips(role: &RoleAccount) -> Option<f64> {
    let flights = role.flights;
    let each = (flights.round_trips.count() > 0).then(|| flights.round_trips.mean())?;
    let full = role
        .costs
        .get(&Resumption::None)?
        .duration
        .mean()
        .as_secs_f64();
    let share = flights.beyond as f64 / flights.count.max(1) as f64;
    (full > 0.0).then_some((share * each / full).min(1.0))
}

fn beyond_usual(flights: Flights, sent: u64) -> f64 {
    (flights.mean() - USUAL) * flights.count as f64 / sent.max(1) as f64
}

fn found(subject: &Subject<'_>, role: &RoleAccount, harm: &Harm, sent: u64) -> Finding {
    let flights = role.flights;
    let mut statements = vec![
        format!(
            "In {0} full handshakes on connections that ended, the server sent {1} each: {2} of \
             all its bytes.",
            count(flights.count),
            in_bytes(flights.mean()),
            percent(flights.bytes as f64 / sent.max(1) as f64)
        ),
        certificates(role),
    ];
    let (title, severity, prediction) = match harm {
        Harm::RoundTrips(share) => {
            statements.push(format!(
                "{} of them did not fit into the initial window of {INITIAL_WINDOW} segments and \
                 waited for a round trip, at least {}: {} of the duration of full handshakes.",
                count(flights.beyond),
                time(flights.round_trips.mean()),
                percent(*share)
            ));
            (
                "The certificate chain is so long that clients wait for an extra round trip",
                Severity::Medium,
                range(flights.round_trips).map_or(Prediction::Nothing, Prediction::Latency),
            )
        }
        Harm::Bytes(share) => {
            statements.push(format!(
                "{} of all bytes exceed a chain of usual length. The CPU cost of sending and \
                 hashing them is part of the handshake and not measured separately.",
                percent(*share)
            ));
            (
                "The certificate chain is long, and a large part of the bytes that the server \
                 sends",
                Severity::Low,
                Prediction::Nothing,
            )
        }
    };
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, flights.count),
        statements,
        figures: figures(role),
    };
    let kind = (&KIND, Role::Server);
    subject.finding(kind, severity, title.to_owned(), evidence, prediction)
}

/// What is known of the certificates themselves.
fn certificates(role: &RoleAccount) -> String {
    let chains = role.hellos.chains;
    if chains.count == 0 {
        return "Nearly all of these bytes are certificates, unless the server requests client \
                certificates and names many issuers: TLS 1.3 encrypts both."
            .to_owned();
    }
    let each = |sum: u64| sum as f64 / chains.count as f64;
    format!(
        "{} up to TLS 1.2 carried {:.1} certificates on average, {} in total.",
        counted(chains.count, "handshake", "handshakes"),
        each(chains.certificates),
        in_bytes(each(chains.bytes))
    )
}

fn figures(role: &RoleAccount) -> Vec<(&'static str, f64)> {
    let (flights, chains) = (role.flights, role.hellos.chains);
    let mut figures = vec![
        ("full_handshakes", flights.count as f64),
        ("sent_bytes", flights.mean()),
        ("beyond_first_window", flights.beyond as f64),
    ];
    if chains.count > 0 {
        let each = |sum: u64| sum as f64 / chains.count as f64;
        figures.push(("certificates", each(chains.certificates)));
        figures.push(("certificate_bytes", each(chains.bytes)));
    }
    figures
}

fn in_bytes(mean: f64) -> String {
    bytes(crate::subject::whole(mean))
}

const CHANGE: &str = "Send the server's certificate and the intermediates up to a root that clients \
                      trust: no root, no cross-signed copies, nothing from another chain. If it is \
                      still long, use a chain with ECDSA keys.";

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Send the server's certificate and the intermediates up to a root that clients trust: \
             no root, no cross-signed copies, nothing from another chain. If it is still long, use \
             ECDSA keys, or compress it with nginx 1.29.1 and OpenSSL 3.2 or later \
             (`ssl_certificate_compression on`, off by default).",
            "# the server's certificate, then its intermediates, without the root\n\
             ssl_certificate /etc/nginx/site-chain.pem;",
        ),
        Server::Apache => (
            CHANGE,
            "# the server's certificate, then its intermediates, without the root\n\
             SSLCertificateFile /etc/apache2/site-chain.pem",
        ),
        Server::HaProxy => (
            CHANGE,
            "# key, certificate, then intermediates, without the root\n\
             bind :443 ssl crt /etc/haproxy/site.pem",
        ),
        Server::NodeJs => (CHANGE, "cert: serverCertificate + intermediates"),
        Server::Envoy => (
            CHANGE,
            "tls_certificates:\n\
             - certificate_chain: { filename: site-chain.pem }\n\
             \x20 private_key: { filename: site.key }",
        ),
        Server::Stunnel => (CHANGE, "cert = /etc/stunnel/site-chain.pem"),
        Server::Domino => (
            "Domino 12 and later: import the certificate into certstore.nsf again with the \
             intermediates up to a root that clients trust, and nothing else.",
            "certstore.nsf, TLS Credentials, Import TLS Credentials",
        ),
        Server::Caddy | Server::Unknown => (CHANGE, ""),
    }
}
