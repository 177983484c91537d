//! Where samples are taken in windows.

use super::*;

/// A sample stands for half a second.
fn in_windows() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_sampling(Sampling::InWindows(millis(500)));
    ledger
}

#[test]
fn between_windows_time_is_divided_like_the_last_ones() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 30);
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 10);
    for _ in 0..32 {
        second(&mut ledger, millis(1000), millis(0));
    }
    assert_eq!(user(&ledger, Activity::Handshake), millis(24_000));
    assert_eq!(user(&ledger, Activity::Application), millis(8_000));

    // A window weighs as much as all before it.
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 20);
    second(&mut ledger, millis(8000), millis(0));
    assert_eq!(user(&ledger, Activity::Handshake), millis(24_000 + 3_000));
    assert_eq!(account(&ledger).activities.samples(), 60);
}

#[test]
fn a_busy_hour_does_not_outvote_what_a_service_does_now() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 1000);
    second(&mut ledger, millis(0), millis(0));
    second(&mut ledger, millis(1000), millis(0));
    for _ in 0..5 {
        ledger.advance(ledger.now() + Duration::from_secs(31));
        ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 100);
        second(&mut ledger, millis(1000), millis(0));
    }
    // A half of the first window, a quarter of the second, and so on.
    let handshakes = user(&ledger, Activity::Handshake).saturating_sub(millis(1000));
    assert!(
        handshakes.abs_diff(millis(968)) < millis(1),
        "{handshakes:?}"
    );
}

#[test]
fn a_window_that_hit_a_pause_says_little() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 1000);
    second(&mut ledger, millis(1000), millis(0));
    ledger.advance(ledger.now() + Duration::from_secs(31));
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 4);
    second(&mut ledger, millis(6800), millis(0));
    assert_eq!(user(&ledger, Activity::Application), millis(400));
}

#[test]
fn a_window_whose_samples_come_in_two_parts_is_one() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 30);
    second(&mut ledger, millis(1000), millis(0));
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 10);
    second(&mut ledger, millis(1000), millis(0));
    assert_eq!(user(&ledger, Activity::Handshake), millis(1750));
}

#[test]
fn few_samples_of_many_windows_do_not_vanish_beside_many() {
    let mut ledger = in_windows();
    for _ in 0..50 {
        ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 99);
        ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 1);
        second(&mut ledger, millis(1000), millis(0));
        ledger.advance(ledger.now() + Duration::from_secs(31));
    }
    let encryption = user(&ledger, Activity::Encryption);
    assert!(
        encryption.abs_diff(millis(500)) < millis(1),
        "{encryption:?}"
    );
}

#[test]
fn three_windows_without_a_sample_are_unattributed() {
    let mut ledger = in_windows();
    for _ in 0..100 {
        second(&mut ledger, millis(1000), millis(0));
        let unattributed = account(&ledger).activities.unattributed();
        assert_eq!(unattributed.total(), millis(0));
    }
    second(&mut ledger, millis(1000), millis(0));
    second(&mut ledger, millis(1000), millis(0));
    let unattributed = account(&ledger).activities.unattributed();
    assert_eq!(unattributed.total(), millis(102_000));
}

#[test]
fn primitives_between_windows_are_those_of_the_last_ones() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 4);
    second(&mut ledger, millis(1000), millis(0));
    let of = |primitive, count| {
        (
            (Activity::Handshake, primitive, Evidence::Name, None),
            count,
        )
    };
    let looked_up = [of(Primitive::P384, 3), of(Primitive::Sha, 1)];
    ledger.note_primitives(SERVICE, &looked_up.into());
    for _ in 0..31 {
        second(&mut ledger, millis(1000), millis(0));
    }
    let primitives = account(&ledger).activities.primitives();
    let cpu = |primitive| primitives.part(Activity::Handshake, primitive).cpu();
    assert_eq!(cpu(Primitive::P384), millis(24_000));
    assert_eq!(cpu(Primitive::Sha), millis(8_000));
}

/// The windows of a night, hours of samples all the time, and a first window again.
#[test]
fn windows_before_continuous_samples_are_out_of_date() {
    let mut ledger = in_windows();
    let looked_up = |primitive| ((Activity::Handshake, primitive, Evidence::Name, None), 10);
    let handshakes = |ledger: &mut Ledger, primitive| {
        ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 10);
        second(ledger, millis(1000), millis(0));
        ledger.note_primitives(SERVICE, &[looked_up(primitive)].into());
    };
    ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 10);
    second(&mut ledger, millis(1000), millis(0));
    ledger.advance(ledger.now() + Duration::from_secs(31));
    handshakes(&mut ledger, Primitive::P384);
    let night = user(&ledger, Activity::Encryption);

    ledger.set_sampling(Sampling::Every(PERIOD));
    handshakes(&mut ledger, Primitive::P256);

    ledger.set_sampling(Sampling::InWindows(millis(500)));
    // Nothing is known of the time before the first window.
    second(&mut ledger, millis(1000), millis(0));
    assert_eq!(account(&ledger).activities.waiting().total(), millis(1000));
    handshakes(&mut ledger, Primitive::P256);
    assert_eq!(user(&ledger, Activity::Encryption), night);
    let primitives = account(&ledger).activities.primitives();
    let p384 = primitives.part(Activity::Handshake, Primitive::P384);
    assert_eq!(p384.cpu() + night, millis(2000));
}

#[test]
fn time_without_windows_after_continuous_samples_is_given_up() {
    let mut ledger = in_windows();
    ledger.add_samples(SERVICE, Activity::Encryption, Mode::User, 10);
    second(&mut ledger, millis(1000), millis(0));
    ledger.set_sampling(Sampling::Every(PERIOD));
    ledger.add_samples(SERVICE, Activity::Handshake, Mode::User, 100);
    second(&mut ledger, millis(1000), millis(0));
    ledger.set_sampling(Sampling::InWindows(millis(500)));
    for _ in 0..102 {
        second(&mut ledger, millis(1000), millis(0));
    }
    let unattributed = account(&ledger).activities.unattributed();
    assert_eq!(unattributed.total(), millis(102_000));
}
