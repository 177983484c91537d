//! An RSA certificate where clients accept ECDSA.

use crate::costs::{self, in_steps};
use crate::finding::{Advice, Kind, Target};
use crate::subject::{Subject, clients, whole};
use crate::sum::Sum;
use crate::{
    CostSource, Evidence, Finding, Observed, Operation, Prediction, Server, Severity, Work,
};
use tlsprof_common::units::{count, time};
use tlsprof_common::{Outcome, Role};
use tlsprof_ledger::Alternatives;

pub(crate) static KIND: Kind = Kind {
    label: "costly-certificate",
    page: include_str!("../../../../docs/findings/costly-certificate.md"),
    summary: "RSA key, although clients accept ECDSA",
    risk: "Clients from before 2014 may not support ECDSA: keep the RSA certificate beside the new \
           one. Clients that pin the old key need the new pin first.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: Some(Work::PublicKeys),
};

const ECDSA: &str = "ecdsa_p256";

/// Kinds of keys whose signatures cost a multiple of ECDSA's on P-256; and those that TLS 1.3 hides, if code tells
/// that they are such.
const RSA: [&str; 5] = ["rsa_2048", "rsa_3072", "rsa_4096", "rsa_8192", HIDDEN];
const HIDDEN: &str = "unknown";

/// Handshakes that one RSA key signed.
struct Signed {
    key: &'static str,
    count: u64,
    /// CPU time of one whole handshake, in seconds.
    each: f64,
    offers: Alternatives,
}

impl Signed {
    fn affected(&self) -> f64 {
        self.count as f64 * self.offers.ecdsa as f64 / self.offers.hellos.max(1) as f64
    }
}

fn signed(subject: &Subject<'_>) -> Vec<Signed> {
    let Some(role) = subject.role(Role::Server) else {
        return Vec::new();
    };
    let consequences = &role.hellos.consequences;
    let is_hidden_rsa = subject.account.hidden_signature() == Some("rsa");
    let kinds = RSA
        .into_iter()
        .filter(|key| *key != HIDDEN || is_hidden_rsa);
    let kinds = kinds.map(|key| {
        let tally = subject.handshakes(|one| {
            one.role == Role::Server && one.outcome == Outcome::Completed && one.signature == key
        });
        Signed {
            key,
            count: tally.count,
            each: tally.each(),
            offers: consequences.alternatives(|chosen| chosen.signature == key),
        }
    });
    let mut kinds: Vec<Signed> = kinds.filter(|kind| kind.affected() > 0.0).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    kinds
}

/// RSA signatures for clients that accept ECDSA.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let kinds = signed(subject);
    let first = kinds.first()?;
    let affected: f64 = kinds.iter().map(Signed::affected).sum();
    let affected_count = whole(affected);
    if !subject.enough(affected_count) {
        return None;
    }
    let prediction = predict(subject, &kinds)?;
    let hellos: u64 = kinds.iter().map(|kind| kind.offers.hellos).sum();
    let accepting: u64 = kinds.iter().map(|kind| kind.offers.ecdsa).sum();
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, affected_count),
        statements: kinds.iter().map(|kind| statement(subject, kind)).collect(),
        figures: vec![
            ("affected_handshakes", affected.round()),
            (
                "handshakes",
                kinds.iter().map(|kind| kind.count as f64).sum(),
            ),
            ("accept_ecdsa_ratio", accepting as f64 / hellos as f64),
        ],
    };
    let title = format!(
        "The certificate has an {} key, although clients accept ECDSA, which is faster",
        in_words(first.key)
    );
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

fn predict(subject: &Subject<'_>, kinds: &[Signed]) -> Option<Prediction> {
    let mut sum = Sum::default();
    let mut bound = 0.0;
    for kind in kinds {
        let (from, to) = (Operation::Signing(kind.key), Operation::Signing(ECDSA));
        let step = in_steps(subject.account, from);
        bound += step.map_or(kind.each, |step| step.likely) * kind.affected();
        let each = subject.costs.saved(subject.name, from, to);
        sum.add(each, kind.affected());
    }
    let method = |source: CostSource| {
        format!(
            "Estimate: (current cost - cost with ECDSA P-256) x full handshakes whose clients \
             accept it; ECDSA was measured in {}.",
            source.words()
        )
    };
    sum.predict(subject, bound, method, || {
        format!(
            "no ECDSA signature was measured on this host, and {}",
            subject.costs.no_calibration(subject.name)
        )
    })
}

fn statement(subject: &Subject<'_>, kind: &Signed) -> String {
    let mut text = format!(
        "{} full handshakes were signed with {}; {} accept ECDSA P-256.",
        count(kind.count),
        in_words(kind.key),
        clients(kind.offers.ecdsa, kind.offers.hellos),
    );
    if kind.key == HIDDEN {
        text.push_str(
            " TLS 1.3 encrypts the certificate: the code of the signatures tells the kind of key.",
        );
    }
    match costs::in_words(subject.account, Operation::Signing(kind.key)) {
        Some(cost) => text.push_str(&format!(" Cost of the signature: {cost}.")),
        None if kind.each > 0.0 => text.push_str(&format!(
            " Cost of such a handshake: {} of CPU.",
            time(kind.each)
        )),
        None => {}
    }
    text
}

fn in_words(key: &str) -> String {
    match key {
        HIDDEN => "RSA".to_owned(),
        key => key.replace("rsa_", "RSA-"),
    }
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Add a certificate with an ECDSA key on P-256 beside the RSA one; each client gets one \
             that it accepts.",
            "ssl_certificate     /etc/nginx/site-ecdsa.pem;\n\
             ssl_certificate_key /etc/nginx/site-ecdsa.key;",
        ),
        Server::Apache => (
            "Add a certificate with an ECDSA key on P-256 beside the RSA one; each client gets one \
             that it accepts.",
            "SSLCertificateFile    /etc/apache2/site-ecdsa.pem\n\
             SSLCertificateKeyFile /etc/apache2/site-ecdsa.key",
        ),
        Server::HaProxy => (
            "Add a certificate with an ECDSA key beside the RSA one, in files that differ only in \
             their suffix; `crt` then names the common part.",
            "# /etc/haproxy/site.pem.rsa and /etc/haproxy/site.pem.ecdsa\n\
             bind :443 ssl crt /etc/haproxy/site.pem",
        ),
        Server::NodeJs => (
            "Pass two certificates with their keys in the server's options.",
            "cert: [ecdsaCert, rsaCert], key: [ecdsaKey, rsaKey]",
        ),
        Server::Envoy => (
            "Add a second entry with an ECDSA key to the listener's common_tls_context.",
            "tls_certificates:\n\
             - certificate_chain: { filename: site-ecdsa.pem }\n\
             \x20 private_key: { filename: site-ecdsa.key }\n\
             - certificate_chain: { filename: site-rsa.pem }\n\
             \x20 private_key: { filename: site-rsa.key }",
        ),
        Server::Domino => (
            "Domino 12 and later: create TLS credentials with an ECDSA key in certstore.nsf for the \
             same host names, and keep the RSA ones.",
            "certstore.nsf, TLS Credentials, Key type: ECDSA, Curve: NIST P-256",
        ),
        Server::Stunnel => (
            "stunnel has one certificate per service: use one with an ECDSA key if all clients \
             accept it.",
            "cert = /etc/stunnel/site-ecdsa.pem",
        ),
        Server::Caddy | Server::Unknown => (
            "Get a certificate with an ECDSA key on P-256 and configure it beside the RSA one, or \
             replace the RSA one if the server supports only one.",
            "",
        ),
    }
}
