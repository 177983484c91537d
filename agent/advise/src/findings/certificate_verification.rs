//! Verification of certificates in the server's handshakes: client certificates, or its own chain.

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{CostSource, Evidence, Finding, Observed, Prediction, Range, Server, Severity};
use tlsprof_common::units::{count, time};
use tlsprof_common::{Outcome, Resumption, Role, Step};

pub(crate) static KIND: Kind = Kind {
    label: "certificate-verification",
    page: include_str!("../../../../docs/findings/certificate-verification.md"),
    summary: "Certificates are verified in each full handshake: those of clients, or the server's \
              own chain",
    risk: "A revoked certificate stays accepted until its session expires: resumption does not \
           verify it again.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Verification in the server's handshakes: client certificates, or its own chain.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let role = subject.role(Role::Server)?;
    let seconds = role.steps.cpu(Step::Verification).as_secs_f64();
    let full = subject.handshakes(|key| {
        key.role == Role::Server
            && key.outcome == Outcome::Completed
            && key.resumption == Resumption::None
    });
    if !subject.enough(full.count) || !subject.worth(seconds) {
        return None;
    }
    let with_certificate = role.hellos.consequences.client_certificates;
    let each = seconds / full.count as f64;
    let mut statements = vec![format!(
        "Verification costs {} of CPU in each of {} full handshakes, {} of the service's CPU.",
        time(each),
        count(full.count),
        subject.share_in_words(seconds)
    )];
    statements.push(if with_certificate > 0 {
        format!(
            "{} clients authenticated with a certificate.",
            count(with_certificate)
        )
    } else {
        "No client certificate was seen; TLS 1.3 encrypts them. If the server does not request one, \
         it builds its own chain in each full handshake, because its intermediate certificates are \
         not configured."
            .to_owned()
    });
    let title = if with_certificate > 0 {
        "Client certificates are verified in each full handshake"
    } else {
        "Certificates are verified in each full handshake, perhaps the server's own"
    };
    let method = "Upper bound: all measured verification. Resumed handshakes need none, nor does a \
                  server with its chain configured.";
    let cpu = Range::around(seconds, 0.0);
    let saving = subject.saving(cpu, CostSource::ThisService, method.to_owned());
    let caveat = "clients without a session must still be verified".to_owned();
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, full.count),
        statements,
        figures: vec![
            ("full_handshakes", full.count as f64),
            ("verification_cpu_seconds", seconds),
            ("client_certificates", with_certificate as f64),
        ],
    };
    let kind = (&KIND, Role::Server);
    let prediction = Prediction::AtMost(saving, caveat);
    Some(subject.finding(
        kind,
        Severity::Medium,
        title.to_owned(),
        evidence,
        prediction,
    ))
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "With client certificates: enable session resumption, so that certificates are not \
             verified again, and keep the issuers' chain short.",
            "ssl_session_cache shared:TLS:10m;\nssl_session_timeout 1h;",
        ),
        Server::Apache => (
            "Without client certificates: append the intermediate certificates to the file, so \
             that OpenSSL does not search for them in each handshake. With client certificates: \
             enable session resumption.",
            "# the server's certificate, then its intermediates\n\
             SSLCertificateFile /etc/apache2/site-fullchain.pem",
        ),
        Server::HaProxy => (
            "With client certificates: enable session resumption, so that certificates are not \
             verified again. Without: put the intermediate certificates into the crt file.",
            "tune.ssl.cachesize 100000\ntune.ssl.lifetime 3600",
        ),
        Server::NodeJs => (
            "Append the intermediate certificates to the server's in `cert`. With client \
             certificates: enable session resumption, with the same ticket keys in all workers.",
            "cert: serverCertificate + intermediates, ticketKeys: sharedKeys",
        ),
        Server::Envoy | Server::Domino | Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Configure the server's complete chain, so that it is not built in each handshake. \
             With client certificates: enable session resumption, so that certificates are not \
             verified again, and keep the issuers' chain short.",
            "",
        ),
    }
}
