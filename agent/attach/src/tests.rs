//! All that is done with an image, done with mutilated ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is a failed test"
)]

use proptest::prelude::*;
use tlsprof_discover::elf::ElfView;
use tlsprof_discover::elf::fixture::{
    BASE, CODE, DATA, Fixture, LEGACY, RELATIVE, absolute, jump_slot,
};
use tlsprof_discover::library::{self, Tls};
use tlsprof_discover::sample::installed;

use crate::{plan, state_machine};

const FUNCTION: u64 = BASE + CODE + 0x10;
const SLOT: u64 = BASE + DATA + 0x20;
const GLOBAL: u8 = 1;

/// A libssl that is complete but for its code.
fn small_libssl() -> Fixture {
    let names = [
        "SSL_free",
        "SSL_clear",
        "TLS_method",
        "SSL_stateless",
        "SSL_sendfile",
    ];
    let names = names
        .into_iter()
        .chain(["TLS_server_method", "TLS_client_method"]);
    Fixture {
        code: [vec![0x53; 0x100], LEGACY.to_vec()].concat(),
        code_section: ".plt",
        exported: names
            .map(|name| (name, FUNCTION, 8))
            .chain([("ERR_vset_error", 0, 0)])
            .collect(),
        versions: vec![2; 8],
        symbols: vec![
            (("ossl_statem_accept", FUNCTION, 8), GLOBAL),
            (("ossl_statem_connect", FUNCTION + 8, 8), GLOBAL),
        ],
        rela: vec![
            (SLOT, RELATIVE, FUNCTION),
            (SLOT + 8, absolute(1), 0),
            (BASE + DATA, jump_slot(8), 0),
        ],
        relr: vec![SLOT + 16, 3],
        functions: vec![FUNCTION, FUNCTION + 8],
        ..Fixture::default()
    }
}

/// All that is ever done with an image.
fn use_image(bytes: Vec<u8>) -> Option<()> {
    let image = ElfView::new(Box::new(bytes)).ok()?;
    let slots = (0..32).map(|word| SLOT + word * 8).collect();
    let _ = image.pointers(&slots);
    let _ = image.function_extent(FUNCTION);
    let _ = image.function_start(FUNCTION + 1);
    let _ = image.names_at(&[FUNCTION, FUNCTION + 1]);
    let _ = image.code_address(CODE);
    if let Ok(symbols) = image.symbols(&state_machine::SYMBOLS) {
        let _ = state_machine::find(&image, &symbols);
    }
    match library::detect(&image).ok()?.tls {
        Tls::Supported(library) => plan::plan(&image, &library).ok().map(|_| ()),
        _ => None,
    }
}

#[test]
fn small_libssl_can_be_planned() {
    assert!(use_image(small_libssl().build()).is_some());
}

proptest! {
    #[test]
    fn mutilated_images_do_no_harm(
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        structure: bool,
        length in any::<prop::sample::Index>(),
        cut: bool,
    ) {
        let mut bytes = small_libssl().build();
        for (index, value) in mutations {
            // Code and data fill most of the file: aim at headers and tables.
            let at = match structure {
                true => index.index(64 + 6 * 56),
                false => 0x3000 + index.index(bytes.len() - 0x3000),
            };
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        use_image(bytes);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        use_image(bytes.clone());
        let start = b"\x7fELF\x02\x01\x01";
        let size = start.len().min(bytes.len());
        bytes[..size].copy_from_slice(&start[..size]);
        use_image(bytes);
    }
}

#[test]
fn mutilated_libssl_does_no_harm() {
    mutilate(&std::fs::read(installed("libssl.so.3")).unwrap());
}

#[test]
fn mutilated_libgnutls_does_no_harm() {
    mutilate(&std::fs::read(installed("libgnutls.so.30")).unwrap());
}

/// A library with bytes overwritten in its headers and tables, and cut short.
fn mutilate(bytes: &[u8]) {
    assert!(use_image(bytes.to_vec()).is_some());
    let mut seed = 1_u64;
    let mut random = move |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % limit
    };
    for round in 0..200 {
        let mut bytes = bytes.to_vec();
        for _ in 0..=random(4) {
            let limit = if round % 2 == 0 { 1024 } else { bytes.len() };
            let at = random(limit);
            bytes[at] = u8::try_from(random(256)).unwrap();
        }
        if round % 3 == 0 {
            bytes.truncate(random(bytes.len()));
        }
        use_image(bytes);
    }
}
