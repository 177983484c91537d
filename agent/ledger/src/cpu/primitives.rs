//! CPU time of TLS by cryptographic primitive: that of each activity, divided like the samples of it
//! whose code was looked up.
//!
//! Looking up takes a second or more, so that samples come after the CPU time that they speak for. It waits,
//! and the parts of an activity add up to its CPU time but for what waits. Where samples are taken in
//! windows, it is divided like those of the last ones.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::since::sums;
use tlsprof_common::Step;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::{Evidence, Primitive};

use super::part::Part;
use super::reconcile::{LastWindows, shares};
use super::time::Key;

/// With the step that it was called for, if the callers show that.
type Computed = (Activity, Primitive, Option<Step>);

/// CPU time in handshakes and encryption of one service, by primitive.
#[derive(Clone, Debug, Default)]
pub struct PrimitiveAccount {
    parts: BTreeMap<Computed, Part>,
    identified: BTreeMap<Evidence, u64>,
    /// Nanoseconds that wait for samples.
    cpu: BTreeMap<Activity, u64>,
    /// Samples that wait for CPU time.
    samples: BTreeMap<Computed, u64>,
    last: BTreeMap<Activity, LastWindows<Computed>>,
}

sums!(PrimitiveAccount: parts, identified; empty: cpu, samples, last);

impl PrimitiveAccount {
    /// The activities whose CPU time is divided.
    pub const ACTIVITIES: [Activity; 2] = [Activity::Handshake, Activity::Encryption];

    /// Whether no sample was ever looked up.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A primitive in one of [`ACTIVITIES`](Self::ACTIVITIES).
    pub fn part(&self, activity: Activity, primitive: Primitive) -> Part {
        let parts = self.parts(activity).filter(|(one, _, _)| *one == primitive);
        parts.fold(Part::default(), |mut sum, (_, _, part)| {
            sum.add(part);
            sum
        })
    }

    /// All primitives in an activity, each by the step that it was called for; None where its callers do not show that.
    pub(crate) fn parts(
        &self,
        activity: Activity,
    ) -> impl Iterator<Item = (Primitive, Option<Step>, Part)> {
        let parts = self.parts.iter();
        let parts = parts.filter(move |((of, _, _), _)| *of == activity);
        parts.map(|(&(_, primitive, step), &part)| (primitive, step, part))
    }

    /// How many samples were looked up.
    pub fn samples(&self) -> u64 {
        self.parts.values().map(|part| part.samples).sum()
    }

    /// CPU time of all primitives.
    pub fn cpu(&self) -> Duration {
        self.parts.values().map(|part| part.cpu()).sum()
    }

    /// How many samples were identified so.
    pub fn identified(&self, by: Evidence) -> u64 {
        self.identified.get(&by).copied().unwrap_or_default()
    }

    pub(super) fn add_samples(&mut self, key: Computed, by: Evidence, count: u64) {
        let part = self.parts.entry(key).or_default();
        part.samples = part.samples.saturating_add(count);
        for sum in [
            self.samples.entry(key).or_default(),
            self.identified.entry(by).or_default(),
        ] {
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn add_cpu(&mut self, (activity, mode): Key, nanos: u64) {
        if mode != Mode::Softirq && Self::ACTIVITIES.contains(&activity) {
            let cpu = self.cpu.entry(activity).or_default();
            *cpu = cpu.saturating_add(nanos);
        }
    }

    /// Whether CPU time of that activity waits for samples.
    pub(super) fn has_waiting(&self, activity: Activity) -> bool {
        self.cpu.get(&activity).is_some_and(|nanos| *nanos > 0)
    }

    /// Divides what waits among the samples that wait. Windows before these are out of date.
    pub(super) fn divide(&mut self) {
        self.last.clear();
        for activity in Self::ACTIVITIES {
            let samples = self.waiting_samples(activity);
            self.divide_activity(activity, &samples);
        }
    }

    /// Divides what waits among the samples of the last windows.
    pub(super) fn divide_in_windows(&mut self, now: Duration) {
        for activity in Self::ACTIVITIES {
            if self.cpu.contains_key(&activity) {
                let new = self.waiting_samples(activity);
                let samples = self.last.entry(activity).or_default().with(&new, now);
                self.divide_activity(activity, &samples);
            }
        }
    }

    fn waiting_samples(&self, activity: Activity) -> BTreeMap<Computed, u64> {
        let waiting = self.samples.iter();
        let samples = waiting.filter(|((of, _, _), _)| *of == activity);
        samples.map(|(key, count)| (*key, *count)).collect()
    }

    fn divide_activity(&mut self, activity: Activity, samples: &BTreeMap<Computed, u64>) {
        let cpu = self.cpu.get(&activity).copied().unwrap_or_default();
        if cpu == 0 || samples.is_empty() {
            return;
        }
        for (key, nanos) in shares(cpu, samples) {
            let part = self.parts.entry(key).or_default();
            part.nanos = part.nanos.saturating_add(nanos);
        }
        self.cpu.remove(&activity);
        self.samples.retain(|(of, _, _), _| *of != activity);
    }

    /// No more samples come: what waits is divided like all before it.
    pub(super) fn settle(&mut self) {
        self.divide();
        let so_far = self.parts.iter();
        self.samples = so_far.map(|(key, part)| (*key, part.samples)).collect();
        self.divide();
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::since::Since as _;
    use proptest::prelude::*;

    const USER: Key = (Activity::Handshake, Mode::User);

    fn seconds(account: &PrimitiveAccount, primitive: Primitive) -> f64 {
        let of = |activity| account.part(activity, primitive).cpu().as_secs_f64();
        PrimitiveAccount::ACTIVITIES.map(of).iter().sum()
    }

    fn add(account: &mut PrimitiveAccount, primitive: Primitive, count: u64) {
        account.add_samples(
            (Activity::Handshake, primitive, None),
            Evidence::Name,
            count,
        );
    }

    #[test]
    fn cpu_time_waits_for_its_samples() {
        let mut account = PrimitiveAccount::default();
        account.add_cpu(USER, 4_000_000_000);
        account.divide();
        assert!(account.is_empty());
        add(&mut account, Primitive::P256, 3);
        add(&mut account, Primitive::Kernel, 1);
        account.divide();
        assert_eq!(seconds(&account, Primitive::P256), 3.0);
        assert_eq!(seconds(&account, Primitive::Kernel), 1.0);
        add(&mut account, Primitive::Aes, 1);
        account.divide();
        assert_eq!(seconds(&account, Primitive::Aes), 0.0);
        account.add_cpu(USER, 1_000_000_000);
        account.divide();
        assert_eq!(seconds(&account, Primitive::Aes), 1.0);
        assert_eq!(account.samples(), 5);
    }

    #[test]
    fn other_activities_and_softirqs_are_not_divided() {
        let mut account = PrimitiveAccount::default();
        account.add_cpu((Activity::Application, Mode::User), 1);
        account.add_cpu((Activity::Encryption, Mode::Softirq), 1);
        assert!(account.cpu.is_empty());
    }

    #[test]
    fn at_the_end_what_waits_is_divided_like_all_before_it() {
        let mut account = PrimitiveAccount::default();
        account.add_cpu(USER, 100);
        add(&mut account, Primitive::P256, 1);
        account.divide();
        account.add_cpu(USER, 7);
        account.settle();
        assert_eq!(account.cpu(), Duration::from_nanos(107));
        let before = account.clone();
        account.add_cpu(USER, 5);
        add(&mut account, Primitive::Sha, 2);
        account.divide();
        let new = account.since(&before);
        assert_eq!((new.cpu(), new.samples()), (Duration::from_nanos(5), 2));
        assert_eq!(new.identified(Evidence::Name), 2);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_what_was_divided(
            steps in proptest::collection::vec((0_u64..1000, 0_usize..21, 0_u64..5), 1..40)
        ) {
            let mut account = PrimitiveAccount::default();
            let mut total = 0;
            for (nanos, at, count) in steps {
                let primitive = Primitive::ALL.get(at).copied();
                account.add_cpu(USER, nanos);
                total += nanos;
                if let Some(primitive) = primitive.filter(|_| count > 0) {
                    add(&mut account, primitive, count);
                }
                account.divide();
            }
            account.settle();
            let expected = if account.is_empty() { 0 } else { total };
            prop_assert_eq!(account.cpu(), Duration::from_nanos(expected));
        }
    }
}
