//! Code for several elliptic curves.

use super::*;

/// Of Java, whose `XECOperations` serves X25519 and X448, and `ECOperations` all other curves.
#[test]
fn code_for_several_curves_is_key_exchange_where_rsa_signs() {
    use Primitive::{Curve448, Curve25519, EllipticCurve, P256, RsaDh};
    for (group, own) in [
        ("x25519", Curve25519),
        ("x448", Curve448),
        ("X25519MLKEM768", Curve25519),
        ("secp256r1", P256),
    ] {
        for signature in ["rsa_2048", "unknown"] {
            expect(
                &[with(group, signature)],
                &[(own, 100), (EllipticCurve, 30), (RsaDh, 600)],
                &[("key_exchange", 130), ("signing", 600)],
            );
        }
    }
    let resumed = resumed("x25519");
    expect(&[resumed], &[(EllipticCurve, 30)], &[("key_exchange", 30)]);
}

#[test]
fn code_for_several_curves_is_not_key_exchange_where_a_curve_may_sign() {
    use Primitive::{BigNumber, Curve25519, EllipticCurve, P256, RsaDh};
    for signature in ["ecdsa_p256", "unknown"] {
        expect(
            &[with("x25519", signature)],
            &[(Curve25519, 100), (EllipticCurve, 30), (P256, 200)],
            &[("key_exchange", 100), ("signing", 230)],
        );
        expect(
            &[with("secp256r1", signature)],
            &[(P256, 300), (EllipticCurve, 30)],
            &[("key_exchange+signing", 330)],
        );
    }
    // Big numbers may be those of a curve, and clients may have certificates of any kind.
    expect(
        &[with("x25519", "unknown")],
        &[(Curve25519, 100), (EllipticCurve, 30), (BigNumber, 200)],
        &[("key_exchange", 100), ("signing", 230)],
    );
    let verifies = Handshake {
        client_authenticates: true,
        ..with("x25519", "rsa_2048")
    };
    expect(
        &[verifies],
        &[(Curve25519, 100), (EllipticCurve, 30), (RsaDh, 600)],
        &[
            ("key_exchange+verification", 100),
            ("verification", 30),
            ("signing+verification", 600),
        ],
    );
    // No curve at all.
    expect(
        &[with("ffdhe2048", "rsa_2048")],
        &[(EllipticCurve, 30)],
        &[("other", 30)],
    );
}

/// Of ring, whose P-384 has some functions of its own, which are hit now and then, and loops for any length.
#[test]
fn a_little_code_of_its_own_does_not_take_a_curve_from_big_numbers() {
    use Primitive::{BigNumber, P384, RsaDh};
    for signature in ["rsa_2048", "unknown"] {
        for own in [0, 30, 60, 90] {
            expect(
                &[with("secp384r1", signature)],
                &[(P384, own), (BigNumber, 2000), (RsaDh, 1400)],
                &[("key_exchange", 2000 + own), ("signing", 1400)],
            );
        }
    }
    // Of OpenSSL, whose P-384 is all its own: what is left is RSA's.
    expect(
        &[with("secp384r1", "rsa_2048")],
        &[(P384, 2000), (BigNumber, 300)],
        &[("key_exchange", 2000), ("signing", 300)],
    );
}
