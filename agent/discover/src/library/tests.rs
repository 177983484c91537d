//! Installed libraries and images built for the purpose.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is a failed test"
)]

use std::fs::File;
use std::path::Path;

use super::super::elf::fixture::{BASE, CODE, Fixture};
use super::*;
use crate::sample::installed;
use tlsprof_library::openssl::{AWS_LC, BORINGSSL, LIBRESSL_OR_OLD, UNKNOWN_FORK};

/// The editions.
const V1_1_1: &str = "OpenSSL 1.1.1";
const V3: &str = "OpenSSL 3 or later";

fn detect_file(path: impl AsRef<Path>) -> Detection {
    detect(&ElfView::open(File::open(path).unwrap()).unwrap()).unwrap()
}

/// What an image is that defines or imports these functions.
fn detect_names(defined: &[&'static str], imported: &[&'static str]) -> Detection {
    let defined = defined.iter().map(|name| (*name, BASE + CODE, 1));
    let imported = imported.iter().map(|name| (*name, 0, 0));
    let image = Fixture {
        exported: defined.chain(imported).collect(),
        versions: vec![2; 16],
        ..Fixture::default()
    };
    let view = ElfView::new(Box::new(image.build())).unwrap();
    let detection = detect(&view).unwrap();
    assert_eq!(may_switch_stacks(&view).unwrap(), detection.switches_stacks);
    detection
}

#[test]
fn installed_openssl() {
    let Tls::Supported(ssl) = detect_file(installed("libssl.so.3")).tls else {
        panic!("libssl.so.3 is not taken for OpenSSL");
    };
    assert_eq!((ssl.handshakes, ssl.steps, ssl.edition), (true, false, V3));
    let Tls::Supported(crypto) = detect_file(installed("libcrypto.so.3")).tls else {
        panic!("libcrypto.so.3 is not taken for OpenSSL");
    };
    assert_eq!((crypto.handshakes, crypto.steps), (false, true));
    let shown = crypto.to_string();
    assert!(
        shown.starts_with("OpenSSL 3.") && shown.ends_with(" (libcrypto)"),
        "{shown}"
    );
}

#[test]
fn image_without_tls() {
    let own = detect_file(std::env::current_exe().unwrap());
    assert_eq!(own.tls, Tls::None);
    assert!(!own.switches_stacks);
    // A user of OpenSSL is not OpenSSL.
    let user = detect_names(&["main"], &["SSL_free", "SSL_clear", "TLS_method"]);
    assert_eq!(user.tls, Tls::None);
}

const LIBSSL: [&str; 3] = ["SSL_free", "SSL_clear", "TLS_method"];

#[test]
fn generations_of_libssl() {
    let generation = |more: &[&'static str]| match detect_names(&[&LIBSSL, more].concat(), &[]).tls
    {
        Tls::Supported(library) => Ok(library.edition),
        Tls::Unsupported(unsupported) => Err(unsupported),
        Tls::None => panic!("not seen"),
    };
    assert_eq!(generation(&["SSL_stateless"]), Ok(V1_1_1));
    assert_eq!(generation(&["SSL_stateless", "SSL_sendfile"]), Ok(V3));
    assert_eq!(generation(&["SSL_waiting_for_async"]), Err(UNKNOWN_FORK));
    assert_eq!(generation(&["SSLv23_method"]), Err(LIBRESSL_OR_OLD));
    let boringssl = ["SSLv23_method", "SSL_get_early_data_reason"];
    assert_eq!(generation(&boringssl), Err(BORINGSSL));
    let aws = ["SSL_get_early_data_reason", "awslc_version_string"];
    assert_eq!(generation(&aws), Err(AWS_LC));
}

#[test]
fn generations_of_libcrypto() {
    let tls = |names: &[&'static str]| detect_names(names, &[]).tls;
    let openssl = [
        "EVP_PKEY_derive",
        "EVP_DigestSign",
        "ASYNC_start_job",
        "ERR_vset_error",
    ];
    let Tls::Supported(library) = tls(&openssl) else {
        panic!("not seen");
    };
    assert_eq!(library.edition, V3);
    assert_eq!(library.version, "OpenSSL 3.0.1 14 Dec 2021");
    let boringssl = ["EVP_PKEY_derive", "EVP_DigestSign", "BORINGSSL_self_test"];
    assert_eq!(tls(&boringssl), Tls::Unsupported(BORINGSSL));
    let libressl = ["EVP_PKEY_derive", "EVP_DigestSign", "EVP_MD_CTX_create"];
    assert_eq!(tls(&libressl), Tls::Unsupported(LIBRESSL_OR_OLD));
    let old = ["EVP_PKEY_derive", "ASYNC_start_job"];
    assert_eq!(tls(&old), Tls::Unsupported(UNKNOWN_FORK));
}

#[test]
fn openssl_1_0_has_no_tls_method() {
    let old = detect_names(&["SSL_free", "SSL_clear", "SSLv23_method"], &[]);
    assert_eq!(old.tls, Tls::Unsupported(LIBRESSL_OR_OLD));
}

#[test]
fn gnutls() {
    let whole = ["gnutls_init", "gnutls_handshake", "gnutls_deinit"];
    let Tls::Supported(library) = detect_names(&whole, &[]).tls else {
        panic!("not seen");
    };
    assert_eq!(library.library, &tlsprof_library::gnutls::LIBRARY);
    // A user of GnuTLS is not GnuTLS, nor is a half of it.
    assert_eq!(detect_names(&["main"], &whole).tls, Tls::None);
    assert_eq!(detect_names(&whole[..2], &whole[2..]).tls, Tls::None);
}

#[test]
fn installed_gnutls() {
    let Tls::Supported(library) = detect_file(installed("libgnutls.so.30")).tls else {
        panic!("libgnutls.so.30 is not taken for GnuTLS");
    };
    assert_eq!((library.handshakes, library.steps), (true, false));
    assert!(library.release().starts_with("3."), "{library}");
}

/// Where one image holds both, handshakes of the first are counted.
#[test]
fn one_that_can_be_probed_comes_first() {
    let gnutls = ["gnutls_init", "gnutls_handshake", "gnutls_deinit"];
    let openssl = [&LIBSSL[..], &["SSL_sendfile"]].concat();
    let name = |other: &[&'static str]| match detect_names(&[&gnutls, other].concat(), &[]).tls {
        Tls::Supported(library) => library.library.name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(&openssl), "OpenSSL");
    assert_eq!(name(&["SSLv23_method"]), "GnuTLS");
}

#[test]
fn engine_that_switches_stacks() {
    assert!(detect_names(&["bind_engine"], &["ASYNC_pause_job"]).switches_stacks);
    // libcrypto defines it, which is no use of it.
    assert!(!detect_file(installed("libcrypto.so.3")).switches_stacks);
}

#[test]
fn program_with_coroutines_switches_stacks() {
    assert!(detect_names(&["main"], &["makecontext"]).switches_stacks);
    // Node.js has libcrypto's in it.
    let with_libcrypto = detect_names(&["EVP_PKEY_derive", "ASYNC_start_job"], &["makecontext"]);
    assert!(!with_libcrypto.switches_stacks);
}
