//! What post-quantum key exchange costs.

use crate::costs::{self, in_steps};
use crate::finding::{Advice, Kind, Target};
use crate::groups::{P256, SLOW_HYBRID, X25519, fast_first, in_words, with_group};
use crate::hybrid::X25519MLKEM768;
use crate::subject::Subject;
use crate::{Evidence, Finding, Hybrid, Observed, Operation, Prediction, Server, Severity, Work};
use tlsprof_common::Role;
use tlsprof_common::units::count;

pub(crate) static KIND: Kind = Kind {
    label: "post-quantum-cost",
    page: include_str!("../../../../docs/findings/post-quantum-cost.md"),
    summary: "Not a problem: post-quantum key exchange, and its CPU cost",
    risk: "None from keeping it. Without it, traffic recorded today can be decrypted once a large \
           enough quantum computer exists.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: Some(Work::PublicKeys),
};

/// Groups that withstand a quantum computer, with what they are without.
const POST_QUANTUM: [(&str, &str); 5] = [
    (X25519MLKEM768, X25519),
    ("SecP256r1MLKEM768", P256),
    (SLOW_HYBRID, "secp384r1"),
    ("MLKEM768", X25519),
    ("MLKEM1024", X25519),
];

/// What post-quantum key exchange costs: a fact, at any share of the CPU.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let used =
        POST_QUANTUM.map(|(group, plain)| (group, plain, subject.handshakes(with_group(group))));
    let (group, plain, tally) = used.into_iter().max_by_key(|(.., tally)| tally.count)?;
    if !subject.enough(tally.count) {
        return None;
    }
    let (from, to) = (Operation::KeyExchange(group), Operation::KeyExchange(plain));
    let present = in_steps(subject.account, from);
    let mut statements = vec![format!(
        "{} handshakes used {group}, which resists quantum computers.",
        count(tally.count)
    )];
    let cost = costs::in_words(subject.account, from);
    if let (Some(present), Some(cost)) = (present, cost) {
        statements.push(format!(
            "Cost of its key exchange: {cost}, {} of the service's CPU in total.",
            subject.share_in_words(present.likely * tally.count as f64)
        ));
    }
    let prediction = match subject.costs.saved(subject.name, from, to) {
        Some((each, _)) if each.likely <= 0.0 => Prediction::Unknown(format!(
            "what was measured of this key exchange costs no more than {} alone: samples show a part of it",
            in_words(plain)
        )),
        Some((each, source)) => {
            let method = format!(
                "This is the cost of the protection compared with {} alone, measured in {}. It is \
                 worth it: keep the group.",
                in_words(plain),
                source.words()
            );
            let cpu = each.times(tally.count as f64);
            Prediction::Saving(subject.saving(cpu, source, method))
        }
        None => Prediction::Unknown(format!(
            "no handshake with {} alone was measured on this host, and {}",
            in_words(plain),
            subject.costs.no_calibration(subject.name)
        )),
    };
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, tally.count),
        statements,
        figures: vec![
            ("handshakes", tally.count as f64),
            (
                "key_exchange_seconds",
                present.map_or(0.0, |present| present.likely),
            ),
        ],
    };
    let title = format!("Post-quantum key exchange ({group}): what it costs, and why to keep it");
    let kind = (&KIND, Role::Server);
    let mut finding = subject.finding(kind, Severity::Info, title, evidence, prediction);
    finding.severity = Severity::Info;
    Some(finding)
}

fn remedy(target: Target) -> Advice {
    let change = "Keep it: it protects traffic recorded today against future quantum computers, and \
                  is worth this cost. Keep X25519MLKEM768 first: SecP384r1MLKEM1024 is far more \
                  expensive. To save CPU, let clients resume sessions and keep connections open.";
    let (_, directive) = fast_first(Target {
        hybrid: Hybrid::Has,
        ..target
    });
    (
        change,
        match target.server {
            Server::Domino => "",
            _ => directive,
        },
    )
}
