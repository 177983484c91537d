//! Where costs come from, and in which order.

use super::{SERVICE, handshake, ledger};
use crate::{Calibration, Calibrations, CostSource, Costs, Operation, Range};

const FROM: Operation = Operation::KeyExchange("secp384r1");
const TO: Operation = Operation::KeyExchange("x25519");

/// `slow`: seconds of the slow operation.
fn calibrations(slow: f64) -> Calibrations {
    let calibration = Calibration::from([
        (FROM, Range::around(slow, 0.0)),
        (TO, Range::around(0.2e-3, 0.0)),
    ]);
    Calibrations::from([(SERVICE.to_owned(), Ok(calibration))])
}

#[test]
fn this_service_then_this_host_then_a_calibration() {
    let calibrations = calibrations(1.3e-3);
    let mut kept = ledger(20, |ledger| {
        ledger.record(SERVICE, &handshake("secp384r1", "rsa_2048", [1100, 900]));
    });
    let source = |kept: &_| {
        Costs::new(kept, &calibrations)
            .saved(SERVICE, FROM, TO)
            .unwrap()
    };
    assert_eq!(source(&kept).1, CostSource::Calibration);
    for _ in 0..20 {
        kept.record(
            "other.service",
            &handshake("x25519", "ecdsa_p256", [150, 50]),
        );
    }
    let (range, by) = source(&kept);
    assert_eq!(by, CostSource::ThisHost);
    assert!((range.likely - 950e-6).abs() < 1e-12);
    for _ in 0..20 {
        kept.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
    }
    let (range, by) = source(&kept);
    assert_eq!(by, CostSource::ThisService);
    assert!((range.likely - 1e-3).abs() < 1e-12);
}

#[test]
fn no_more_can_be_saved_than_the_operation_costs_in_the_service() {
    // A busy host slowed the calibration down tenfold.
    let calibrations = calibrations(11e-3);
    let kept = ledger(20, |ledger| {
        ledger.record(SERVICE, &handshake("secp384r1", "rsa_2048", [1100, 900]));
    });
    let costs = Costs::new(&kept, &calibrations);
    let (range, _) = costs.saved(SERVICE, FROM, TO).unwrap();
    assert!((range.likely - 900e-6).abs() < 1e-12);
    // The mean and 3%.
    assert!((range.high - 1_133e-6).abs() < 1e-12, "{range:?}");
}

#[test]
fn a_few_handshakes_make_no_cost() {
    let none = Calibrations::new();
    let mut kept = ledger(20, |ledger| {
        ledger.record(SERVICE, &handshake("secp384r1", "rsa_2048", [1100, 900]));
    });
    for _ in 0..9 {
        kept.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
    }
    assert_eq!(Costs::new(&kept, &none).saved(SERVICE, FROM, TO), None);
    kept.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
    assert!(Costs::new(&kept, &none).saved(SERVICE, FROM, TO).is_some());
}

#[test]
fn spread_widens_the_range() {
    let none = Calibrations::new();
    let of = |spread: u64| {
        let mut kept = ledger(20, |ledger| {
            ledger.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
        });
        for n in 0..20_u64 {
            let micros = if n % 2 == 0 {
                1100 - spread
            } else {
                1100 + spread
            };
            kept.record(SERVICE, &handshake("secp384r1", "rsa_2048", [micros, 900]));
        }
        let (range, _) = Costs::new(&kept, &none).saved(SERVICE, FROM, TO).unwrap();
        range.high - range.low
    };
    assert!(of(500) > 2.0 * of(0));
}
