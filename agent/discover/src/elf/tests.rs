//! Images built by [`fixture`], and the installed libssl, whole and mutilated.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is a failed test"
)]

use std::collections::BTreeSet;

use super::fixture::{BASE, CODE, DATA, Fixture, RELATIVE, absolute};
use super::*;

const FUNCTION: u64 = BASE + CODE + 0x10;
const SLOT: u64 = BASE + DATA + 0x20;
const GLOBAL: u8 = 1;
const LOCAL: u8 = 0;

fn view(bytes: Vec<u8>) -> ElfView {
    ElfView::new(Box::new(bytes)).unwrap()
}

#[test]
fn headers() {
    let image = view(Fixture::default().build());
    assert_eq!(image.arch(), Arch::X86_64);
    assert_eq!(image.build_id(), Some("abcdef01"));
    assert_eq!(image.file_offset(FUNCTION), Some(CODE + 0x10));
    assert_eq!(image.file_offset(BASE + 0x1000 * 64), None);
    assert!(image.is_executable(FUNCTION) && !image.is_executable(SLOT));
    assert_eq!(image.code(BASE + CODE + 0xff0, 64).unwrap().len(), 16);
    assert!(matches!(
        image.code(SLOT, 8),
        Err(ElfError::Unmapped { .. })
    ));
}

#[test]
fn what_is_no_image_is_refused() {
    let refused = |bytes: &[u8]| ElfView::new(Box::new(bytes.to_vec())).unwrap_err();
    assert!(matches!(refused(b""), ElfError::NotElf));
    assert!(matches!(refused(b"#!/bin/sh\n"), ElfError::NotElf));
    let image = Fixture::default().build();
    assert!(matches!(refused(&image[..40]), ElfError::Truncated { .. }));
    assert!(matches!(refused(&image[..100]), ElfError::Truncated { .. }));
    let narrow = [&image[..4], &[1], &image[5..]].concat();
    assert!(matches!(refused(&narrow), ElfError::Unsupported));
    let many = [&image[..56], &[0xff, 0xff], &image[58..]].concat();
    assert!(matches!(refused(&many), ElfError::TooLarge { .. }));
}

#[test]
fn symbols_are_found_by_name_and_by_the_tail_of_a_name() {
    let fixture = Fixture {
        exported: vec![
            ("wolfSSL_free", FUNCTION, 4),
            ("SSL_free", FUNCTION + 8, 5),
            ("ASYNC_pause_job", 0, 0),
        ],
        symbols: vec![(("ossl_statem_accept", FUNCTION + 16, 6), LOCAL)],
        ..Fixture::default()
    };
    let image = view(fixture.build());
    let names = [
        "SSL_free",
        "ASYNC_pause_job",
        "ossl_statem_accept",
        "SSL_clear",
    ];
    let found = image.symbols(&names).unwrap();
    let (address, size) = (FUNCTION + 8, 5);
    assert_eq!(found.get("SSL_free"), Some(Symbol { address, size }));
    assert_eq!(found.get("ossl_statem_accept").unwrap().size, 6);
    assert!(found.imports("ASYNC_pause_job") && !found.defines("ASYNC_pause_job"));
    assert!(!found.defines("SSL_clear") && !found.imports("SSL_free"));
}

#[test]
fn default_version_wins_over_an_old_one() {
    for versions in [vec![2, 0x8003], vec![0x8003, 2]] {
        let default = versions.iter().position(|version| *version == 2).unwrap();
        let addresses = [FUNCTION, FUNCTION + 32];
        let image = Fixture {
            exported: addresses.map(|address| ("SSL_free", address, 1)).to_vec(),
            versions,
            ..Fixture::default()
        };
        let found = view(image.build()).symbols(&["SSL_free"]).unwrap();
        assert_eq!(found.get("SSL_free").unwrap().address, addresses[default]);
    }
}

#[test]
fn static_functions_of_one_name_are_ambiguous() {
    let two = |second| Fixture {
        symbols: vec![
            (("SSL_free", FUNCTION, 1), LOCAL),
            (("SSL_free", FUNCTION + 8, 1), second),
        ],
        ..Fixture::default()
    };
    let found = |fixture: Fixture| view(fixture.build()).symbols(&["SSL_free"]).unwrap();
    assert_eq!(found(two(LOCAL)).get("SSL_free"), None);
    assert_eq!(
        found(two(GLOBAL)).get("SSL_free").unwrap().address,
        FUNCTION + 8
    );
}

#[test]
fn name_that_lies_across_two_chunks_is_found() {
    let mut image = view(Fixture::default().build());
    let name = b"\0SSL_free\0";
    for before in [CHUNK - 9, CHUNK - 5, CHUNK - 1, CHUNK] {
        let mut strings = vec![b'x'; usize::try_from(before).unwrap()];
        strings.extend(name);
        let mut header = image.sections[2];
        header.sh_offset.set(LE, 0);
        header.sh_size.set(LE, strings.len() as u64);
        image.length = strings.len() as u64;
        image.source = Box::new(strings);
        let hits = image.find_names(&header, &["SSL_free"]).unwrap();
        let start = u32::try_from(before + 1).unwrap();
        assert_eq!(hits.into_iter().collect::<Vec<_>>(), [(start, "SSL_free")]);
    }
}

#[test]
fn pointers_by_every_kind_of_relocation() {
    let slots: BTreeSet<u64> = (0..80).map(|word| SLOT + word * 8).collect();
    let mut data = vec![0; 0x400];
    data[0x20 + 16..][..8].copy_from_slice(&0x1111_u64.to_le_bytes());
    data[0x20 + 70 * 8..][..8].copy_from_slice(&0x2222_u64.to_le_bytes());
    let fixture = Fixture {
        data,
        exported: vec![("here", FUNCTION, 1), ("elsewhere", 0, 0)],
        rela: vec![
            (SLOT, RELATIVE, FUNCTION + 1),
            (SLOT + 8, absolute(1), 2),
            (SLOT + 24, absolute(2), 0),
        ],
        // Slot 2 by address, slot 70 by the second bitmap: 63 slots each.
        relr: vec![SLOT + 16, 1, 1 | 1 << (70 - 3 - 63 + 1)],
        ..Fixture::default()
    };
    let found = view(fixture.build()).pointers(&slots).unwrap();
    let expected = [
        (SLOT, FUNCTION + 1),
        (SLOT + 8, FUNCTION + 2),
        (SLOT + 16, 0x1111),
        (SLOT + 70 * 8, 0x2222),
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn pointers_at_a_fixed_address_are_in_the_file() {
    let fixture = Fixture {
        fixed: true,
        data: FUNCTION.to_le_bytes().to_vec(),
        ..Fixture::default()
    };
    let slot = BASE + DATA;
    let found = view(fixture.build())
        .pointers(&BTreeSet::from([slot]))
        .unwrap();
    assert_eq!(found[&slot], FUNCTION);
}

#[test]
fn extents_of_functions() {
    let functions = vec![BASE + CODE, BASE + CODE + 0x10, BASE + CODE + 0x40];
    let fixture = Fixture {
        functions,
        ..Fixture::default()
    };
    let image = view(fixture.build());
    let extent = |offset| image.function_extent(BASE + CODE + offset).unwrap();
    assert_eq!(extent(0), Some(0x10));
    assert_eq!(extent(0x10), Some(0x30));
    assert_eq!(extent(0x40), Some(0x1000 - 0x40));
    assert_eq!(extent(0x41), None);
    assert_eq!(extent(8), None);
    let start = |offset| image.function_start(BASE + CODE + offset).unwrap();
    assert_eq!(start(0), Some(BASE + CODE));
    assert_eq!(start(0x3f), Some(BASE + CODE + 0x10));
    assert_eq!(start(0x999), Some(BASE + CODE + 0x40));
    assert_eq!(image.function_start(BASE).unwrap(), None);
}
