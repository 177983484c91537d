//! Key exchange: slow groups, and what post-quantum groups cost.

use std::collections::BTreeMap;

use crate::advise::costs::in_steps;
use crate::advise::subject::{Subject, Tally, whole};
use crate::advise::{
    CostSource, Evidence, Finding, Id, Observed, Operation, Prediction, Range, Severity,
};
use crate::evidence::{Outcome, Role};
use crate::ledger::{Alternatives, HandshakeKey};
use crate::units::{count, percent, time};

/// The groups that others are compared with; both are of 128 bits.
const X25519: &str = "x25519";
const P256: &str = "secp256r1";

/// Groups that cost a multiple of X25519 in every library. RSA key transport is none
/// of them: beside an RSA certificate it costs no more than ECDHE with its signature.
fn is_slow(group: &str) -> bool {
    matches!(group, "secp384r1" | "secp521r1" | "x448")
        || ["ffdhe", "dhe_", "brainpool", "sect"]
            .iter()
            .any(|family| group.starts_with(family))
}

/// Handshakes with one slow group, as far as their clients offered a faster one.
struct Slow {
    group: &'static str,
    all: Tally,
    offers: Alternatives,
}

impl Slow {
    /// How many of the clients offered X25519, and P-256 but not X25519: those whose
    /// hello was read speak for the rest.
    fn spared(&self) -> [(f64, &'static str); 2] {
        let of = |part: u64| self.all.count as f64 * part as f64 / self.offers.hellos as f64;
        [
            (of(self.offers.x25519), X25519),
            (of(self.offers.secp256r1_only), P256),
        ]
    }

    fn affected(&self) -> f64 {
        self.spared().iter().map(|(number, _)| number).sum()
    }

    fn saving(&self, subject: &Subject<'_>) -> Option<(Range, CostSource)> {
        let mut sum = (Range::default(), CostSource::ThisService);
        for (number, to) in self
            .spared()
            .into_iter()
            .filter(|(number, _)| *number > 0.0)
        {
            let from = Operation::KeyExchange(self.group);
            let to = Operation::KeyExchange(to);
            let (each, source) = subject.costs.saved(subject.name, from, to)?;
            sum = (sum.0.plus(each.times(number)), sum.1.max(source));
        }
        Some(sum)
    }

    /// What the key exchange of the affected takes now: more cannot be saved.
    fn bound(&self, subject: &Subject<'_>) -> f64 {
        let step = in_steps(subject.account, Operation::KeyExchange(self.group));
        let each = step.map_or_else(|| self.all.each(), |step| step.likely);
        each * self.affected()
    }
}

fn with_group(group: &'static str) -> impl Fn(&HandshakeKey) -> bool {
    move |key| key.role == Role::Server && key.outcome == Outcome::Completed && key.group == group
}

fn slow_groups(subject: &Subject<'_>) -> Vec<Slow> {
    let Some(role) = subject.role(Role::Server) else {
        return Vec::new();
    };
    let mut by_group: BTreeMap<&'static str, Alternatives> = BTreeMap::new();
    for (chosen, offers) in &role.hellos.consequences.chosen {
        if is_slow(chosen.group) {
            let sum = by_group.entry(chosen.group).or_default();
            *sum = sum.plus(*offers);
        }
    }
    let groups = by_group.into_iter().map(|(group, offers)| Slow {
        group,
        all: subject.handshakes(with_group(group)),
        offers,
    });
    let mut groups: Vec<Slow> = groups.filter(|slow| slow.affected() > 0.0).collect();
    groups.sort_by_key(|slow| std::cmp::Reverse(slow.all.count));
    groups
}

/// Handshakes with a slow group whose clients offered a faster one.
pub(super) fn slow(subject: &Subject<'_>) -> Option<Finding> {
    let groups = slow_groups(subject);
    let first = groups.first()?;
    let affected: f64 = groups.iter().map(Slow::affected).sum();
    let affected_count = whole(affected);
    if !subject.enough(affected_count) {
        return None;
    }
    let prediction = predict(subject, &groups)?;
    let faster = if first.offers.x25519 > 0 {
        "X25519"
    } else {
        "P-256"
    };
    let title = format!(
        "Key exchange uses {}, though clients offer {faster}, which is faster",
        in_words(first.group)
    );
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, affected_count),
        statements: groups.iter().map(|one| statement(subject, one)).collect(),
        figures: vec![
            ("affected_handshakes", affected.round()),
            (
                "handshakes",
                groups.iter().map(|one| one.all.count as f64).sum(),
            ),
            ("offered_faster_ratio", {
                let hellos: u64 = groups.iter().map(|one| one.offers.hellos).sum();
                let faster: u64 = groups
                    .iter()
                    .map(|one| one.offers.x25519 + one.offers.secp256r1_only)
                    .sum();
                faster as f64 / hellos as f64
            }),
        ],
    };
    let kind = (Id::SlowKeyExchange, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

/// The saving over all slow groups; None where it is not worth a change.
fn predict(subject: &Subject<'_>, groups: &[Slow]) -> Option<Prediction> {
    let savings: Option<Vec<_>> = groups.iter().map(|slow| slow.saving(subject)).collect();
    if let Some(savings) = savings {
        let cpu = savings
            .iter()
            .fold(Range::default(), |sum, one| sum.plus(one.0));
        let source = savings.iter().map(|one| one.1).max()?;
        let method = format!(
            "The key exchange as it is now, less that with the faster group, measured in {}, times \
             the handshakes whose clients offered it.",
            source.words()
        );
        return subject
            .worth(cpu.likely)
            .then(|| Prediction::Saving(subject.saving(cpu, source, method)));
    }
    let bound: f64 = groups.iter().map(|slow| slow.bound(subject)).sum();
    subject.worth(bound).then(|| {
        Prediction::Unknown(format!(
            "no handshake with the faster group was measured on this host, and {}",
            subject.costs.no_calibration(subject.name)
        ))
    })
}

fn statement(subject: &Subject<'_>, slow: &Slow) -> String {
    let offered = slow.offers.x25519 + slow.offers.secp256r1_only;
    let faster = match (slow.offers.x25519, slow.offers.secp256r1_only) {
        (_, 0) => "X25519",
        (0, _) => "P-256",
        _ => "X25519 or P-256",
    };
    let mut text = format!(
        "{} handshakes used {}; of the {} clients whose hello was read {} ({}) offered {faster}.",
        count(slow.all.count),
        in_words(slow.group),
        count(slow.offers.hellos),
        count(offered),
        percent(offered as f64 / slow.offers.hellos as f64),
    );
    match in_steps(subject.account, Operation::KeyExchange(slow.group)) {
        Some(step) => text.push_str(&format!(
            " The key exchange takes {} of CPU in each.",
            time(step.likely)
        )),
        None if slow.all.count > 0 => text.push_str(&format!(
            " One such handshake takes {} of CPU.",
            time(slow.all.each())
        )),
        None => {}
    }
    text
}

/// A group by the name that server configurations have.
fn in_words(group: &str) -> String {
    match group {
        "secp256r1" => "P-256".to_owned(),
        "secp384r1" => "P-384".to_owned(),
        "secp521r1" => "P-521".to_owned(),
        "x25519" => "X25519".to_owned(),
        "x448" => "X448".to_owned(),
        dhe => dhe
            .strip_prefix("dhe_")
            .map_or_else(|| dhe.to_owned(), |bits| format!("DHE with {bits} bits")),
    }
}

/// Groups that withstand a quantum computer, with what they are without.
const POST_QUANTUM: [(&str, &str); 5] = [
    ("X25519MLKEM768", X25519),
    ("SecP256r1MLKEM768", P256),
    ("SecP384r1MLKEM1024", "secp384r1"),
    ("MLKEM768", X25519),
    ("MLKEM1024", X25519),
];

/// What post-quantum key exchange costs: a fact, at any share of the CPU.
pub(super) fn post_quantum(subject: &Subject<'_>) -> Option<Finding> {
    let used =
        POST_QUANTUM.map(|(group, plain)| (group, plain, subject.handshakes(with_group(group))));
    let (group, plain, tally) = used.into_iter().max_by_key(|(.., tally)| tally.count)?;
    if !subject.enough(tally.count) {
        return None;
    }
    let (from, to) = (Operation::KeyExchange(group), Operation::KeyExchange(plain));
    let present = in_steps(subject.account, from);
    let mut statements = vec![format!(
        "{} handshakes used {group}, which withstands a quantum computer.",
        count(tally.count)
    )];
    if let Some(present) = present {
        statements.push(format!(
            "Its key exchange takes {} of CPU in each, {} of the service's CPU in all.",
            time(present.likely),
            subject.share_in_words(present.likely * tally.count as f64)
        ));
    }
    let prediction = match subject.costs.saved(subject.name, from, to) {
        Some((each, source)) => {
            let method = format!(
                "What it takes more than {} alone, measured in {}. Not advised: it is what that \
                 protection costs.",
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
    let title = format!("What post-quantum key exchange ({group}) costs");
    let kind = (Id::PostQuantumCost, Role::Server);
    let mut finding = subject.finding(kind, Severity::Info, title, evidence, prediction);
    finding.severity = Severity::Info;
    Some(finding)
}
