//! Certificates: the kind of the server's key, and verification in its handshakes.

use crate::costs::in_steps;
use crate::subject::{Subject, whole};
use crate::{CostSource, Evidence, Finding, Id, Observed, Operation, Prediction, Range, Severity};
use tlsprof_common::units::{count, percent, time};
use tlsprof_common::{Outcome, Resumption, Role, Step};
use tlsprof_ledger::Alternatives;

const ECDSA: &str = "ecdsa_p256";
/// Kinds of keys whose signatures cost a multiple of ECDSA's on P-256.
const RSA: [&str; 4] = ["rsa_2048", "rsa_3072", "rsa_4096", "rsa_8192"];

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
    let kinds = RSA.into_iter().map(|key| {
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
pub(super) fn costly(subject: &Subject<'_>) -> Option<Finding> {
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
        "The certificate has an {} key, though clients accept ECDSA, which is faster",
        in_words(first.key)
    );
    let kind = (Id::CostlyCertificate, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

fn predict(subject: &Subject<'_>, kinds: &[Signed]) -> Option<Prediction> {
    let mut sum = (Range::default(), CostSource::ThisService);
    let mut bound = 0.0;
    let mut known = true;
    for kind in kinds {
        let (from, to) = (Operation::Signing(kind.key), Operation::Signing(ECDSA));
        let step = in_steps(subject.account, from);
        bound += step.map_or(kind.each, |step| step.likely) * kind.affected();
        match subject.costs.saved(subject.name, from, to) {
            Some((each, source)) => {
                sum = (sum.0.plus(each.times(kind.affected())), sum.1.max(source));
            }
            None => known = false,
        }
    }
    if known {
        let (cpu, source) = sum;
        let method = format!(
            "The signature as it is now, less one with ECDSA on P-256, measured in {}, times the \
             full handshakes whose clients accept it.",
            source.words()
        );
        return subject
            .worth(cpu.likely)
            .then(|| Prediction::Saving(subject.saving(cpu, source, method)));
    }
    subject.worth(bound).then(|| {
        Prediction::Unknown(format!(
            "no signature with ECDSA was measured on this host, and {}",
            subject.costs.no_calibration(subject.name)
        ))
    })
}

fn statement(subject: &Subject<'_>, kind: &Signed) -> String {
    let mut text = format!(
        "{} full handshakes were signed with {}; of the {} clients whose hello was read {} ({}) \
         accept ECDSA on P-256.",
        count(kind.count),
        in_words(kind.key),
        count(kind.offers.hellos),
        count(kind.offers.ecdsa),
        percent(kind.offers.ecdsa as f64 / kind.offers.hellos as f64),
    );
    match in_steps(subject.account, Operation::Signing(kind.key)) {
        Some(step) => text.push_str(&format!(
            " The signature takes {} of CPU in each.",
            time(step.likely)
        )),
        None if kind.each > 0.0 => text.push_str(&format!(
            " One such handshake takes {} of CPU.",
            time(kind.each)
        )),
        None => {}
    }
    text
}

fn in_words(key: &str) -> String {
    key.replace("rsa_", "RSA-")
}

/// Verification in the server's handshakes: client certificates, or its own chain.
pub(super) fn verification(subject: &Subject<'_>) -> Option<Finding> {
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
        "Verification takes {} of CPU in each of {} full handshakes, {} of the service's CPU.",
        time(each),
        count(full.count),
        subject.share_in_words(seconds)
    )];
    statements.push(if with_certificate > 0 {
        format!(
            "{} clients were seen to sign with a certificate of their own.",
            count(with_certificate)
        )
    } else {
        "No client was seen to bring a certificate; TLS 1.3 hides that. A server that does not \
         ask for one builds its own chain anew in each full handshake, because its intermediate \
         certificates are not configured."
            .to_owned()
    });
    let title = if with_certificate > 0 {
        "Client certificates are verified in each full handshake"
    } else {
        "Certificates are verified in each full handshake, perhaps the server's own"
    };
    let method = "All of the verification that was measured: it falls away in resumed handshakes, \
                  and where the server need not build its own chain.";
    let cpu = Range::around(seconds, 0.0);
    let saving = subject.saving(cpu, CostSource::ThisService, method.to_owned());
    let caveat = "clients that come without a session must still be verified".to_owned();
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, full.count),
        statements,
        figures: vec![
            ("full_handshakes", full.count as f64),
            ("verification_cpu_seconds", seconds),
            ("client_certificates", with_certificate as f64),
        ],
    };
    let kind = (Id::CertificateVerification, Role::Server);
    let prediction = Prediction::AtMost(saving, caveat);
    Some(subject.finding(
        kind,
        Severity::Medium,
        title.to_owned(),
        evidence,
        prediction,
    ))
}
