//! Key exchange with a slow group, though clients offer a faster one.

use std::collections::BTreeMap;

use crate::costs::{self, in_steps};
use crate::finding::Kind;
use crate::groups::{P256, SLOW_HYBRID, X25519, fast_first, in_words, with_group};
use crate::hybrid::X25519MLKEM768;
use crate::subject::{Subject, Tally, clients, whole};
use crate::sum::Sum;
use crate::{
    CostSource, Evidence, Finding, Hybrid, Observed, Operation, Prediction, Severity, Work,
};
use tlsprof_common::Role;
use tlsprof_common::units::{count, time};
use tlsprof_ledger::Alternatives;

pub(crate) static KIND: Kind = Kind {
    label: "slow-key-exchange",
    page: include_str!("../../../../docs/findings/slow-key-exchange.md"),
    summary: "Slow group, although clients offer a faster one",
    risk: "None for security, unless X25519MLKEM768 leaves the list. Without it, clients lose \
           protection against future quantum computers. X25519 and P-256 give 128-bit security, \
           like AES-128. Without the slow group, clients that offer no other cannot connect.",
    rules: &[(Role::Server, find)],
    remedy: fast_first,
    calibration: Some(Work::PublicKeys),
};

/// Groups that cost a multiple of X25519 in every library, or of X25519MLKEM768. RSA key transport is none
/// of them: beside an RSA certificate it costs no more than ECDHE with its signature.
fn is_slow(group: &str) -> bool {
    matches!(group, "secp384r1" | "secp521r1" | "x448" | SLOW_HYBRID)
        || ["ffdhe", "dhe_", "brainpool", "sect"]
            .iter()
            .any(|family| group.starts_with(family))
}

/// Handshakes with one slow group, as far as their clients offered a faster one.
struct Slow {
    group: &'static str,
    all: Tally,
    offers: Alternatives,
    hybrid: Hybrid,
}

impl Slow {
    /// Clients whose ClientHello was read, by the group that they would get instead. A hybrid
    /// group comes first where both sides have it, and nothing less takes the place of one.
    fn offered(&self) -> [(u64, &'static str); 3] {
        let Alternatives {
            x25519,
            hybrid,
            secp256r1_only,
            ..
        } = self.offers;
        match (self.group, self.hybrid) {
            (SLOW_HYBRID, _) => [(hybrid, X25519MLKEM768), (0, X25519), (0, P256)],
            (_, Hybrid::Has) => [
                (hybrid, X25519MLKEM768),
                (x25519.saturating_sub(hybrid), X25519),
                (secp256r1_only, P256),
            ],
            _ => [
                (0, X25519MLKEM768),
                (x25519, X25519),
                (secp256r1_only, P256),
            ],
        }
    }

    /// How many clients offered a faster group.
    fn offers(&self) -> u64 {
        self.offered().iter().map(|(number, _)| number).sum()
    }

    /// The faster group that most would get.
    fn faster(&self) -> &'static str {
        let most = self
            .offered()
            .into_iter()
            .rev()
            .max_by_key(|(number, _)| *number);
        most.map_or(X25519, |(_, group)| group)
    }

    /// How many handshakes would use which group: clients whose ClientHello was read speak for
    /// the rest.
    fn spared(&self) -> [(f64, &'static str); 3] {
        let share = self.all.count as f64 / self.offers.hellos as f64;
        self.offered()
            .map(|(number, group)| (number as f64 * share, group))
    }

    fn affected(&self) -> f64 {
        self.spared().iter().map(|(number, _)| number).sum()
    }

    fn add_saving(&self, subject: &Subject<'_>, sum: &mut Sum) {
        let from = Operation::KeyExchange(self.group);
        for (number, to) in self.spared() {
            if number > 0.0 {
                let to = Operation::KeyExchange(to);
                sum.add(subject.costs.saved(subject.name, from, to), number);
            }
        }
    }

    /// What the key exchange of the affected takes now: more cannot be saved.
    fn bound(&self, subject: &Subject<'_>) -> f64 {
        let step = in_steps(subject.account, Operation::KeyExchange(self.group));
        let each = step.map_or_else(|| self.all.each(), |step| step.likely);
        each * self.affected()
    }
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
        hybrid: subject.hybrid,
    });
    let mut groups: Vec<Slow> = groups.filter(|slow| slow.affected() > 0.0).collect();
    groups.sort_by_key(|slow| std::cmp::Reverse(slow.all.count));
    groups
}

/// Handshakes with a slow group whose clients offered a faster one.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let groups = slow_groups(subject);
    let first = groups.first()?;
    let affected: f64 = groups.iter().map(Slow::affected).sum();
    let affected_count = whole(affected);
    if !subject.enough(affected_count) {
        return None;
    }
    let prediction = predict(subject, &groups)?;
    let title = format!(
        "Key exchange uses {}, although clients offer {}, which is faster",
        in_words(first.group),
        in_words(first.faster())
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
                let faster: u64 = groups.iter().map(Slow::offers).sum();
                faster as f64 / hellos as f64
            }),
        ],
    };
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, Severity::Medium, title, evidence, prediction))
}

/// The saving over all slow groups; None where it is not worth a change.
fn predict(subject: &Subject<'_>, groups: &[Slow]) -> Option<Prediction> {
    let mut sum = Sum::default();
    for slow in groups {
        slow.add_saving(subject, &mut sum);
    }
    let bound = groups.iter().map(|slow| slow.bound(subject)).sum();
    let method = |source: CostSource| {
        format!(
            "Estimate: (current cost - cost with the faster group) x affected handshakes; the faster \
             group was measured in {}.",
            source.words()
        )
    };
    sum.predict(subject, bound, method, || {
        format!(
            "no handshake with the faster group was measured on this host, and {}",
            subject.costs.no_calibration(subject.name)
        )
    })
}

fn statement(subject: &Subject<'_>, slow: &Slow) -> String {
    let offered = slow.offers();
    let faster: Vec<String> = slow
        .offered()
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(_, group)| in_words(group))
        .collect();
    let who = clients(offered, slow.offers.hellos);
    let mut text = format!(
        "{} handshakes used {}; {who} offered {}.",
        count(slow.all.count),
        in_words(slow.group),
        faster.join(" or "),
    );
    let exchange = Operation::KeyExchange(slow.group);
    match costs::in_words(subject.account, exchange) {
        Some(cost) => text.push_str(&format!(" Cost of the key exchange: {cost}.")),
        None if slow.all.count > 0 => text.push_str(&format!(
            " Cost of such a handshake: {} of CPU.",
            time(slow.all.each())
        )),
        None => {}
    }
    text
}
