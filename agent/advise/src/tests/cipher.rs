//! Encryption of data.

use std::time::Duration;

use super::{ENOUGH, SERVICE, SETTING, find, found, is_unknown, likely_seconds};
use crate::{
    Calibration, Calibrations, CostSource, Finding, Operation, Protection, Range, Records, Setting,
    Thresholds, advise,
};
use tlsprof_common::{Carries, Connection, Role};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::{CipherSuite, Facts, Offer, Version};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_ledger::{Ledger, Sampling};

const CBC: &str = "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384";
const CBC_NUMBER: u16 = 0xc028;
const GCM_NUMBER: u16 = 0xc030;
const GCM: &str = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
const CHACHA: &str = "TLS_CHACHA20_POLY1305_SHA256";
const CHACHA_NUMBER: u16 = 0x1303;
const GCM_13_NUMBER: u16 = 0x1302;
/// Megabytes of a service here.
const MEGABYTES: u64 = 100;

/// So many samples of encryption and as many of the application, of 100 MB in answers
/// of so many bytes.
struct Served {
    samples: u64,
    cipher: &'static str,
    offered: &'static [u16],
    answer: u64,
}

impl Served {
    fn book(&self, ledger: &mut Ledger, service: &str) {
        for activity in [Activity::Encryption, Activity::Application] {
            ledger.add_samples(service, activity, Mode::User, self.samples);
        }
        let mut facts = Facts::default();
        facts.offer = Some(Offer {
            versions: vec![Version::TLS13, Version::TLS12],
            ciphers: self.offered.iter().copied().map(CipherSuite).collect(),
            ..Offer::default()
        });
        let one = Handshake {
            cipher: self.cipher,
            hello: Some(Box::new(facts)),
            cpu: Duration::ZERO,
            ..handshake()
        };
        ledger.record(service, &one);
        ledger.record_opening(service, &opening(Role::Server));
        let bytes = MEGABYTES * 1_000_000;
        let turns = u32::try_from(bytes / self.answer).ok();
        let closed = Connection {
            carries: Carries::Tls,
            cipher: self.cipher,
            application_sent: bytes,
            bytes_sent: bytes,
            whole: connection()
                .whole
                .map(|whole| tlsprof_common::Whole { turns, ..whole }),
            ..connection()
        };
        ledger.record_connection(service, &closed);
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = sampled();
        self.book(&mut ledger, SERVICE);
        ledger
    }
}

fn sampled() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
    ledger
}

const fn cbc(samples: u64) -> Served {
    Served {
        samples,
        cipher: CBC,
        offered: &[CBC_NUMBER, GCM_NUMBER],
        answer: 1_000_000,
    }
}

/// Seconds of a megabyte with CBC and with GCM, in long and in short records.
fn calibration(cbc: f64, gcm: f64) -> Calibration {
    let by = Protection::of(CBC).unwrap();
    let costs = [(by, cbc), (Protection::Aes256Gcm, gcm)];
    let each = costs.into_iter().flat_map(|(by, seconds)| {
        [(Records::Long, 1.0), (Records::Short, 3.0)].map(|(records, times)| {
            let operation = Operation::Encryption(by, records);
            (operation, Range::around(seconds * times, 0.0))
        })
    });
    each.collect()
}

fn calibrated(ledger: Ledger, cpu: f64, calibration: Calibration) -> Option<Finding> {
    let all = found(ledger, cpu, calibration);
    all.into_iter()
        .find(|finding| finding.kind.label == "costly-cipher")
}

#[test]
fn costly_cipher_at_its_thresholds() {
    let costs = || calibration(0.005, 0.001);
    assert_eq!(calibrated(cbc(ENOUGH - 1).ledger(), 1.0, costs()), None);
    let finding = calibrated(cbc(ENOUGH).ledger(), 1.0, costs()).unwrap();
    assert_eq!(finding.severity.label(), "high");
    // Of half the CPU time, four fifths are saved at most; 5% of all is the threshold.
    let share = |gcm: f64| {
        let finding = calibrated(cbc(ENOUGH).ledger(), 1.0, calibration(0.005, gcm));
        finding.map(|finding| finding.prediction.saving().unwrap().share.likely)
    };
    assert!(share(0.005 * 0.89).is_some_and(|share| (share - 0.055).abs() < 1e-3));
    assert_eq!(share(0.005 * 0.91), None);
    assert_eq!(share(0.006), None, "GCM is the slow one here");
}

#[test]
fn the_saving_is_the_calibrated_difference_and_never_more_than_was_spent() {
    // 100 MB take 0.5 s by the calibration. 1 s in the service: libssl is in it.
    let of = |cpu: f64| {
        let finding = calibrated(cbc(1000).ledger(), cpu, calibration(0.005, 0.001)).unwrap();
        assert_eq!(
            finding.prediction.saving().unwrap().source,
            CostSource::Calibration
        );
        finding
    };
    assert!((likely_seconds(&of(2.0)) - 0.4 * 1.25).abs() < 1e-9);
    // Slower by a fifth: half of that may be the cipher.
    assert!((likely_seconds(&of(1.2)) - 0.4 * 1.1).abs() < 1e-9);
    assert!(of(2.0).prediction.saving().unwrap().cpu.high > 0.8);
    // Only 0.25 s: this CPU is twice as fast, or CBC had one pass.
    assert!((likely_seconds(&of(0.5)) - 0.2).abs() < 1e-9);
}

#[test]
fn short_records_cost_more_for_each_byte() {
    let of = |answer: u64| {
        let served = Served {
            answer,
            ..cbc(1000)
        };
        likely_seconds(&calibrated(served.ledger(), 5.0, calibration(0.005, 0.001)).unwrap())
    };
    assert!((of(16_384) - 0.5).abs() < 1e-9);
    assert!((of(1_000) - 1.5).abs() < 1e-9);
    assert!(of(4_096) > 0.56 && of(4_096) < 0.9);
}

#[test]
fn another_service_of_this_host_tells_the_cost_of_gcm() {
    let mut kept = cbc(1000).ledger();
    let gcm = Served {
        cipher: GCM,
        ..cbc(1000)
    };
    gcm.book(&mut kept, "fast.service");
    kept.add_cpu("fast.service", Duration::from_millis(400), Duration::ZERO);
    let finding = find(kept, 2.0, "costly-cipher").unwrap();
    let saving = finding.prediction.saving().unwrap();
    assert_eq!(saving.source, CostSource::ThisHost);
    // 1 s less 0.2 s.
    assert!((saving.cpu.likely - 0.8).abs() < 1e-9);
    let mut kept = cbc(1000).ledger();
    let short = Served {
        answer: 400_000,
        ..gcm
    };
    short.book(&mut kept, "fast.service");
    kept.add_cpu("fast.service", Duration::from_millis(400), Duration::ZERO);
    let finding = find(kept, 2.0, "costly-cipher").unwrap();
    assert!(is_unknown(&finding), "answers of another length");
}

#[test]
fn clients_that_offer_nothing_better_and_gcm_are_no_finding() {
    let only = Served {
        offered: &[CBC_NUMBER, GCM_13_NUMBER],
        ..cbc(1000)
    };
    assert_eq!(find(only.ledger(), 2.0, "costly-cipher"), None);
    let gcm = Served {
        cipher: GCM,
        ..cbc(1000)
    };
    assert_eq!(find(gcm.ledger(), 2.0, "costly-cipher"), None);
}

#[test]
fn without_a_cost_of_gcm_all_encryption_is_held_against_the_threshold() {
    let none = |ledger, cpu| calibrated(ledger, cpu, Calibration::new());
    let finding = none(cbc(ENOUGH).ledger(), 2.0).unwrap();
    assert!(is_unknown(&finding));
    assert!(finding.wants_calibrated().is_some());
    let mut little = cbc(ENOUGH).ledger();
    little.add_samples(SERVICE, Activity::SocketIo, Mode::System, 19 * ENOUGH);
    assert_eq!(none(little, 2.0), None);
}

#[test]
fn chacha_is_slow_beside_aes_in_hardware_unless_clients_ask_for_it() {
    let gcm_first: &[u16] = &[GCM_13_NUMBER, CHACHA_NUMBER];
    let chacha_first = &[CHACHA_NUMBER, GCM_13_NUMBER];
    for (offered, aes_in_hardware, expected) in [
        (gcm_first, true, true),
        (gcm_first, false, false),
        (chacha_first, true, false),
    ] {
        let chacha = Served {
            cipher: CHACHA,
            offered,
            ..cbc(1000)
        };
        let mut ledger = chacha.ledger();
        ledger.add_cpu(SERVICE, Duration::from_secs(2), Duration::ZERO);
        let setting = Setting {
            aes_in_hardware,
            ..SETTING
        };
        let none = Calibrations::new();
        let all = advise(&ledger, &none, |_| None, setting, Thresholds::default());
        let is_found = all.iter().any(|one| one.kind.label == "costly-cipher");
        assert_eq!(is_found, expected, "{offered:?}");
    }
}
