//! What must hold whatever comes: the activities add up to what the kernel accounts,
//! nothing decreases, and what was not sampled is in no activity.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod windows;

use proptest::prelude::*;

use super::*;
use crate::{Ledger, Limits, ServiceAccount};

const PERIOD: Duration = Duration::from_millis(10);
const SERVICE: &str = "nginx.service";

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn sampled() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_sampling(Sampling::Every(PERIOD));
    ledger
}

fn account(ledger: &Ledger) -> &ServiceAccount {
    ledger.service(SERVICE).unwrap()
}

fn user(ledger: &Ledger, activity: Activity) -> Duration {
    account(ledger).activities.part(activity, Mode::User).cpu()
}

/// Lets a second pass in which the kernel accounts that much.
fn second(ledger: &mut Ledger, user: Duration, system: Duration) {
    ledger.advance(ledger.now() + Duration::from_secs(1));
    ledger.add_cpu(SERVICE, user, system);
}

#[test]
fn an_interval_is_divided_like_its_samples() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 30);
    ledger.add_samples(SERVICE, Activity::SocketIo, Mode::System, 10);
    second(&mut ledger, millis(200), millis(200));
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 1);
    second(&mut ledger, millis(7), millis(0));

    assert_eq!(user(&ledger, Activity::Handshake), millis(300));
    let io = account(&ledger)
        .activities
        .part(Activity::SocketIo, Mode::System);
    assert_eq!((io.cpu(), io.samples), (millis(100), 10));
    assert_eq!(user(&ledger, Activity::Application), millis(7));
}

#[test]
fn where_samples_become_rarer_each_counts_as_what_it_stands_for() {
    let mut ledger = sampled();
    ledger.set_sampling(Sampling::Every(millis(1)));
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 500);
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 500);
    second(&mut ledger, millis(1000), millis(0));
    ledger.set_sampling(Sampling::Every(PERIOD));
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 100);
    second(&mut ledger, millis(1000), millis(0));

    assert_eq!(user(&ledger, Activity::Handshake), millis(500));
    let activities = &account(&ledger).activities;
    assert_eq!(activities.sampled(), millis(2000));
    // (1000 * 1 + 100 * 10)^2 / (1000 * 1 + 100 * 100)
    assert!((activities.effective_samples() - 4e6 / 11e3).abs() < 1e-9);
    let limits = activities.limits(0.5).scaled(0.5);
    assert!(limits.low < 0.25 - 0.04 && limits.high > 0.25 + 0.04);
}

/// Whatever the rates and shares: the range holds the true share in nearly 19 of 20 profiles.
#[test]
fn ranges_hold_where_rates_differ() {
    const PROFILES: usize = 2000;
    let mut random = 1_u64;
    let mut hit = |share: f64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 11) as f64 / (1_u64 << 53) as f64 <= share
    };
    let mut held = 0;
    for _ in 0..PROFILES {
        let mut ledger = sampled();
        for (period, samples) in [(millis(2), 200), (millis(10), 40)] {
            ledger.set_sampling(Sampling::Every(period));
            let of = (0..samples).filter(|_| hit(0.2)).count() as u64;
            ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, of);
            ledger.add_samples(SERVICE, Activity::Application, Mode::User, samples - of);
            second(&mut ledger, millis(400), millis(0));
        }
        let activities = &account(&ledger).activities;
        let seconds = user(&ledger, Activity::Handshake).as_secs_f64();
        let limits = activities.limits(seconds).scaled(1.0 / 0.8);
        held += usize::from((limits.low..=limits.high).contains(&0.2));
    }
    assert!(
        (PROFILES * 93 / 100..PROFILES * 97 / 100).contains(&held),
        "{held}"
    );
}

#[test]
fn time_without_a_sample_waits_for_the_next_one() {
    let mut ledger = sampled();
    for _ in 0..3 {
        second(&mut ledger, millis(3), millis(0));
    }
    let waiting = account(&ledger).activities.waiting();
    assert_eq!(waiting.total(), millis(9));
    assert_eq!(account(&ledger).activities.attributed(), millis(0));

    ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 1);
    second(&mut ledger, millis(3), millis(0));
    assert_eq!(user(&ledger, Activity::Encryption), millis(12));
}

#[test]
fn samples_wait_for_time_as_well() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 1);
    second(&mut ledger, millis(0), millis(0));
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 1);
    second(&mut ledger, millis(20), millis(0));
    assert_eq!(user(&ledger, Activity::Encryption), millis(10));
    assert_eq!(user(&ledger, Activity::Application), millis(10));
}

#[test]
fn time_that_should_have_had_samples_long_ago_is_unattributed() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 100);
    second(&mut ledger, millis(1000), millis(0));
    for _ in 0..30 {
        second(&mut ledger, millis(600), millis(400));
    }
    ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 100);
    second(&mut ledger, millis(1000), millis(0));

    let activities = &account(&ledger).activities;
    // Twelve seconds at a time: when the first of them has waited for more than ten.
    assert_eq!(activities.unattributed().user, millis(600 * 24));
    assert_eq!(activities.unattributed().system, millis(400 * 24));
    assert_eq!(user(&ledger, Activity::Handshake), millis(1000));
    assert_eq!(user(&ledger, Activity::Encryption), millis(7000));
}

#[test]
fn at_the_end_what_waits_is_divided_like_all_before_it() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 1);
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 3);
    second(&mut ledger, millis(40), millis(0));
    second(&mut ledger, millis(4), millis(0));
    ledger.settle_cpu();
    assert_eq!(user(&ledger, Activity::Handshake), millis(11));
    assert_eq!(user(&ledger, Activity::Application), millis(33));
    assert_eq!(account(&ledger).activities.samples(), 4);
    assert_eq!(
        account(&ledger).activities.check().unwrap().error_ratio,
        0.0
    );
}

#[test]
fn at_the_end_much_time_without_samples_is_unattributed() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 4);
    second(&mut ledger, millis(40), millis(0));
    second(&mut ledger, millis(900), millis(60));
    ledger.settle_cpu();
    assert_eq!(user(&ledger, Activity::Handshake), millis(40));
    assert_eq!(
        account(&ledger).activities.unattributed().total(),
        millis(960)
    );
    let check = account(&ledger).activities.check().unwrap();
    assert_eq!(check.error_ratio, 0.96);
    assert_eq!(check.sampled_ratio, 0.04);
}

#[test]
fn without_samples_nothing_is_invented() {
    for sampling in [Sampling::OFF, Sampling::Every(PERIOD)] {
        let mut ledger = Ledger::default();
        ledger.set_sampling(sampling);
        second(&mut ledger, millis(30), millis(20));
        ledger.settle_cpu();
        let activities = &account(&ledger).activities;
        assert_eq!(activities.attributed(), millis(0));
        assert_eq!(activities.parts().count(), 0);
        assert_eq!(activities.unattributed().user, millis(30));
        assert_eq!(activities.unattributed().system, millis(20));
        assert_eq!(activities.check().unwrap().error_ratio, 1.0);
    }
}

#[test]
fn softirq_is_apart_and_each_sample_is_a_period() {
    let mut ledger = sampled();
    ledger.add_samples(SERVICE, Activity::TcpClose, Mode::Softirq, 5);
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 1);
    second(&mut ledger, millis(30), millis(0));
    let activities = &account(&ledger).activities;
    assert_eq!(
        activities.part(Activity::TcpClose, Mode::Softirq).cpu(),
        millis(50)
    );
    assert_eq!(activities.attributed(), millis(30));
    assert_eq!((activities.samples(), activities.sampled()), (1, PERIOD));
}

#[test]
fn the_check_forgets_what_is_older_than_a_minute() {
    let mut ledger = sampled();
    for _ in 0..100 {
        second(&mut ledger, millis(10), millis(0));
    }
    assert!(account(&ledger).activities.check().unwrap().error_ratio > 0.9);
    for _ in 0..70 {
        ledger.add_samples(SERVICE, Activity::Application, Mode::User, 1);
        second(&mut ledger, millis(20), millis(0));
    }
    let check = account(&ledger).activities.check().unwrap();
    assert_eq!((check.error_ratio, check.sampled_ratio), (0.0, 0.5));
}

#[derive(Clone, Debug)]
enum Event {
    Samples(Key, u64),
    Cpu(u64, u64),
}

fn any_key() -> impl Strategy<Value = Key> {
    let activity = prop::sample::select(Activity::ALL.to_vec());
    (activity, prop::sample::select(Mode::ALL.to_vec()))
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any_key(), 1u64..200).prop_map(|(key, count)| Event::Samples(key, count)),
        (0u64..3_000_000_000, 0u64..3_000_000_000).prop_map(|(u, s)| Event::Cpu(u, s)),
        (0u64..3, 0u64..3).prop_map(|(u, s)| Event::Cpu(u, s)),
    ]
}

fn apply(ledger: &mut Ledger, event: &Event) {
    match *event {
        Event::Samples((activity, mode), count) => {
            ledger.add_samples(SERVICE, activity, mode, count);
        }
        Event::Cpu(user, system) => second(
            ledger,
            Duration::from_nanos(user),
            Duration::from_nanos(system),
        ),
    }
}

fn sums(ledger: &Ledger) -> Vec<Duration> {
    let account = ledger.service(SERVICE);
    let part = |key: Key| {
        account.map_or(Duration::ZERO, |account| {
            account.activities.part(key.0, key.1).cpu()
        })
    };
    let keys = Activity::ALL
        .into_iter()
        .flat_map(|activity| Mode::ALL.map(|mode| (activity, mode)));
    let unattributed = account.map(|account| account.activities.unattributed().total());
    keys.map(part)
        .chain([unattributed.unwrap_or_default()])
        .collect()
}

proptest! {
    #[test]
    fn all_time_is_somewhere_once_and_nothing_decreases(
        events in prop::collection::vec(any_event(), 1..60),
        settled in any::<bool>(),
    ) {
        let mut ledger = sampled();
        let mut before = sums(&ledger);
        for event in &events {
            apply(&mut ledger, event);
            let now = sums(&ledger);
            prop_assert!(before.iter().zip(&now).all(|(was, is)| was <= is));
            before = now;
        }
        if settled {
            ledger.settle_cpu();
        }
        if let Some(account) = ledger.service(SERVICE) {
            let activities = &account.activities;
            let waiting = activities.waiting().total();
            let sum = activities.attributed() + activities.unattributed().total() + waiting;
            prop_assert_eq!(sum, account.cpu_user + account.cpu_system);
            prop_assert!(!settled || waiting.is_zero());
            for ((_, mode), part) in activities.parts().filter(|(_, part)| part.samples == 0) {
                prop_assert!(part.cpu().is_zero(), "{:?}", mode);
            }
        }
    }

    #[test]
    fn the_order_of_samples_in_an_interval_does_not_matter(
        mut samples in prop::collection::vec((any_key(), 1u64..200), 1..30),
        nanos in 0u64..5_000_000_000,
    ) {
        let book = |samples: &[(Key, u64)]| {
            let mut ledger = sampled();
            for &(key, count) in samples {
                apply(&mut ledger, &Event::Samples(key, count));
            }
            apply(&mut ledger, &Event::Cpu(nanos, 0));
            sums(&ledger)
        };
        let in_order = book(&samples);
        samples.reverse();
        prop_assert_eq!(in_order, book(&samples));
    }

    #[test]
    fn shares_are_exact(
        total in any::<u64>(),
        weights in prop::collection::btree_map(any_key(), 1u64..1_000_000, 1..18),
    ) {
        let sum: u64 = weights.values().sum();
        let parts: Vec<(Key, u64)> = shares(total, &weights).collect();
        prop_assert_eq!(parts.iter().map(|(_, part)| u128::from(*part)).sum::<u128>(), u128::from(total));
        for (key, part) in parts {
            let exact = u128::from(total) * u128::from(weights[&key]);
            let off = exact.abs_diff(u128::from(part) * u128::from(sum));
            prop_assert!(off <= u128::from(sum), "off by more than 1");
        }
    }
}

#[test]
fn services_beyond_the_limit_share_an_account() {
    let mut ledger = Ledger::new(Limits {
        services: 1,
        label_sets: 1,
    });
    ledger.set_sampling(Sampling::Every(PERIOD));
    for service in ["a", "b", "c"] {
        ledger.add_samples(service, Activity::Application, Mode::User, 2);
        ledger.note_unclassified(service, 1);
        ledger.note_cipher_alone(service, 1);
        ledger.add_cpu(service, millis(20), millis(0));
    }
    let other = &ledger.service(crate::OTHER).unwrap().activities;
    assert_eq!((other.samples(), other.unclassified()), (4, 2));
    assert_eq!(other.cipher_alone(), 2);
    assert_eq!(other.attributed(), millis(40));
}
