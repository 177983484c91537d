//! What is booked when: always both sources over the same time, or neither.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use tlsprof_common::Steps;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::{Evidence, Primitive};
use tlsprof_evidence::sample::handshake;

use super::*;
use crate::{Ledger, Sampling};

const SERVICE: &str = "nginx.service";
const MS: Duration = Duration::from_millis(1);

/// A full handshake of 10 ms with X25519 and RSA, measured by step.
fn measured() -> Handshake {
    let millis = [1, 6, 0, 0, 1, 2].map(Duration::from_millis);
    Handshake {
        cpu: millis.iter().sum(),
        steps: Some(Steps {
            cpu: millis,
            key_derivation_observed: true,
        }),
        ..handshake()
    }
}

/// The same while no step probes are attached.
fn unmeasured() -> Handshake {
    Handshake {
        steps: None,
        ..measured()
    }
}

/// The same while key derivation is not probed: it is in `other`.
fn without_key_derivation() -> Handshake {
    let millis = [1, 6, 0, 0, 0, 3].map(Duration::from_millis);
    Handshake {
        steps: Some(Steps {
            cpu: millis,
            key_derivation_observed: false,
        }),
        ..measured()
    }
}

struct Books(Ledger);

impl Books {
    fn new() -> Self {
        let mut ledger = Ledger::default();
        ledger.set_sampling(Sampling::Every(MS));
        Self(ledger)
    }

    fn handshakes(&mut self, one: &Handshake, count: usize) {
        (0..count).for_each(|_| self.0.record(SERVICE, one));
    }

    /// One second, in which the service uses this many milliseconds of CPU, all in handshakes.
    fn second(&mut self, millis: u32) {
        self.0.advance(self.0.now() + Duration::from_secs(1));
        self.0
            .add_samples(SERVICE, Activity::Handshake, Mode::User, millis.into());
        self.0.add_cpu(SERVICE, MS * millis, Duration::ZERO);
    }

    /// Samples whose code was looked up.
    fn computed(&mut self, samples: &[(Primitive, u64)]) {
        let counts = samples.iter();
        let counts = counts.map(|&(primitive, count)| {
            (
                (Activity::Handshake, primitive, Evidence::Name, None),
                count,
            )
        });
        self.0.note_primitives(SERVICE, &counts.collect());
    }

    /// A second of measured handshakes, looked up at once.
    fn whole_second(&mut self) {
        self.second_of(&measured());
    }

    /// A second of ten such handshakes, looked up at once.
    fn second_of(&mut self, one: &Handshake) {
        self.handshakes(one, 10);
        self.computed(&TEN);
        self.second(100);
    }

    /// Milliseconds by library probes and by samples.
    fn booked(&self) -> BTreeMap<String, [u128; 2]> {
        let account = self.0.service(SERVICE).unwrap();
        let booked = account.step_agreement();
        booked
            .map(|(steps, cpu)| (steps.label(), cpu.map(|cpu| cpu.as_millis())))
            .collect()
    }

    fn sums(&self) -> [u128; 2] {
        let account = self.0.service(SERVICE).unwrap();
        let sums = account
            .step_agreement()
            .fold([Duration::ZERO; 2], |sums, (_, cpu)| {
                let ([library, samples], [more, of_samples]) = (sums, cpu);
                [library + more, samples + of_samples]
            });
        sums.map(|sum| sum.as_millis())
    }
}

/// Samples of ten handshakes.
const TEN: [(Primitive, u64); 4] = [
    (Primitive::Curve25519, 9),
    (Primitive::RsaDh, 58),
    (Primitive::KeyDerivation, 4),
    (Primitive::Sha, 29),
];

fn rows<const N: usize>(rows: [(&str, [u128; 2]); N]) -> BTreeMap<String, [u128; 2]> {
    rows.map(|(step, cpu)| (step.to_owned(), cpu)).into()
}

#[test]
fn both_sources_are_booked_once_the_samples_are_looked_up() {
    let mut books = Books::new();
    books.handshakes(&measured(), 10);
    books.second(100);
    assert_eq!(books.booked(), rows([]));
    // These end after the reading: they belong to the next round.
    books.handshakes(&measured(), 3);
    books.computed(&TEN);
    let expected = rows([
        ("key_exchange", [10, 9]),
        ("signing", [60, 58]),
        ("other", [30, 33]),
    ]);
    assert_eq!(books.booked(), expected);
    books.second(30);
    assert_eq!(books.sums(), [100, 100]);
    books.computed(&[(Primitive::RsaDh, 30)]);
    assert_eq!(books.sums(), [130, 130]);
}

#[test]
fn a_round_lasts_until_all_cpu_time_is_divided() {
    let mut books = Books::new();
    books.handshakes(&measured(), 10);
    books.second(100);
    books.handshakes(&measured(), 5);
    books.second(50);
    assert_eq!(books.sums(), [0, 0]);
    books.computed(&TEN);
    assert_eq!(books.sums(), [150, 150]);
}

#[test]
fn key_derivation_is_in_other_by_both_sources_whether_it_is_probed_or_not() {
    let mut books = Books::new();
    books.handshakes(&measured(), 5);
    books.handshakes(&without_key_derivation(), 5);
    books.computed(&TEN);
    books.second(100);
    assert_eq!(books.booked().get("other"), Some(&[30, 33]));
    assert_eq!(books.booked().get("key_derivation"), None);
}

#[test]
fn what_samples_cannot_separate_is_a_row_of_its_own() {
    let mut books = Books::new();
    books.handshakes(&measured(), 1);
    books.computed(&[(Primitive::PublicKey, 7), (Primitive::Sha, 3)]);
    books.second(10);
    let expected = rows([
        ("key_exchange", [1, 0]),
        ("signing", [6, 0]),
        ("key_exchange+signing", [0, 7]),
        ("other", [3, 3]),
    ]);
    assert_eq!(books.booked(), expected);
}

#[test]
fn nothing_is_booked_while_the_budget_takes_step_probes_away() {
    let mut books = Books::new();
    books.whole_second();
    let before = books.booked();
    // A window of 1 s in 10, which is never in step with the readings.
    for second in 0..60 {
        let measured_now = usize::from(second % 10 < 2) * 5;
        books.handshakes(&measured(), measured_now);
        books.handshakes(&unmeasured(), 10 - measured_now);
        books.computed(&TEN);
        books.second(100);
    }
    assert_eq!(books.booked(), before);
}

#[test]
fn comparing_goes_on_ten_seconds_after_probes_measure_all_handshakes_again() {
    let mut books = Books::new();
    books.whole_second();
    books.second_of(&unmeasured());
    for _ in 0..9 {
        books.whole_second();
    }
    assert_eq!(books.sums(), [100, 100]);
    for _ in 0..3 {
        books.whole_second();
    }
    assert_eq!(books.sums(), [400, 400]);
}

#[test]
fn samples_in_windows_are_compared_with_nothing() {
    let mut books = Books::new();
    books.whole_second();
    // That rung has no probes in libraries.
    books.0.set_sampling(Sampling::InWindows(6 * MS));
    for _ in 0..30 {
        books.second_of(&unmeasured());
    }
    assert_eq!(books.sums(), [100, 100]);
}

#[test]
fn one_handshake_in_many_may_be_unmeasured() {
    let mut books = Books::new();
    books.handshakes(&measured(), 198);
    books.handshakes(&unmeasured(), 2);
    books.computed(&[(Primitive::RsaDh, 2000)]);
    books.second(2000);
    assert_eq!(books.sums(), [1980, 2000]);
    books.handshakes(&measured(), 197);
    books.handshakes(&unmeasured(), 3);
    books.computed(&[(Primitive::RsaDh, 2000)]);
    books.second(2000);
    assert_eq!(books.sums(), [1980, 2000]);
}

#[test]
fn cpu_time_that_no_sample_hit_is_compared_with_nothing() {
    let mut books = Books::new();
    books.whole_second();
    // Sampling failed: CPU time waits, and is given up.
    for _ in 0..13 {
        books.handshakes(&measured(), 10);
        books.0.advance(books.0.now() + Duration::from_secs(1));
        books.0.add_cpu(SERVICE, MS * 100, Duration::ZERO);
    }
    assert_eq!(books.sums(), [100, 100]);
    books.handshakes(&measured(), 10);
    books.computed(&TEN);
    books.second(100);
    // The second before waited for these samples.
    assert_eq!(books.sums(), [300, 300]);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Measured(usize),
    Unmeasured(usize),
    Second,
    LookedUp,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1_usize..20).prop_map(Event::Measured),
        1 => (1_usize..20).prop_map(Event::Unmeasured),
        8 => Just(Event::Second),
        8 => Just(Event::LookedUp),
    ]
}

proptest! {
    /// Samples that are as exact as probes: then the two sums are the same at any time, but for what strays.
    #[test]
    fn both_sources_cover_the_same_handshakes(events in prop::collection::vec(any_event(), 1..80)) {
        let mut books = Books::new();
        let mut before = [0, 0];
        // Milliseconds since the last reading, and samples that are not looked up yet.
        let (mut used, mut unknown) = (0, 0);
        for event in events {
            match event {
                Event::Measured(count) => {
                    books.handshakes(&measured(), count);
                    used += 10 * u32::try_from(count).unwrap();
                }
                Event::Unmeasured(count) => {
                    books.handshakes(&unmeasured(), count);
                    used += 10 * u32::try_from(count).unwrap();
                }
                Event::Second if used > 0 => {
                    books.second(used);
                    unknown += u64::from(std::mem::take(&mut used));
                }
                Event::LookedUp if unknown > 0 => {
                    books.computed(&[(Primitive::RsaDh, std::mem::take(&mut unknown))]);
                }
                Event::Second | Event::LookedUp => {}
            }
            if books.0.service(SERVICE).is_some() {
                let [library, samples] = books.sums();
                prop_assert!(library <= samples && samples <= library + library / 50 + 1);
                prop_assert!(before.iter().zip([library, samples]).all(|(was, is)| *was <= is));
                before = [library, samples];
            }
        }
    }
}
