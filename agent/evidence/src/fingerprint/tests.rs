//! Verdicts on real code, and on any bytes.
//!
//! `testdata/ciphers.txt` and `ordinary.txt` hold samples of running programs, drawn by
//! tests/fingerprints/fixture.py: what they are of is known because the program does nothing
//! else. `aarch64.txt` holds places in functions that were chosen by name.

#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const CIPHERS: &str = include_str!("testdata/ciphers.txt");
const ORDINARY: &str = include_str!("testdata/ordinary.txt");
const AARCH64: &str = include_str!("testdata/aarch64.txt");

struct Section {
    expected: &'static str,
    title: &'static str,
    verdicts: Vec<Kind>,
}

/// Headings `# KIND: TITLE`, each followed by lines of `BEFORE CODE`.
fn sections(machine: Machine, text: &'static str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            let (expected, title) = heading.split_once(": ").unwrap();
            let verdicts = Vec::new();
            sections.push(Section {
                expected,
                title,
                verdicts,
            });
        } else {
            let (before, code) = line.split_once(' ').unwrap();
            let before = bytes(before);
            let around = [&before[..], &bytes(code)].concat();
            let verdict = classify_for(machine, &around, before.len());
            sections.last_mut().unwrap().verdicts.push(verdict);
        }
    }
    sections
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().as_chunks::<2>().0.iter();
    let digits = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
    digits
        .filter(|&pair| pair != "-")
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

impl Section {
    fn right(&self) -> usize {
        let is_right = |kind: &&Kind| match self.expected {
            // One after the other in the same loop.
            "AesOrSha" => matches!(kind, Kind::Aes | Kind::Sha),
            expected => format!("{kind:?}") == expected,
        };
        self.verdicts.iter().filter(is_right).count()
    }
}

/// Asserts that of all samples of each kind, and of each section, so many are known, in
/// percent.
fn assert_known(sections: &[Section], least: impl Fn(&str) -> (usize, usize)) {
    let mut by_kind: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for section in sections {
        let (right, all) = (section.right(), section.verdicts.len());
        let (_, each) = least(section.expected);
        let Section {
            title, verdicts, ..
        } = section;
        assert!(right * 100 >= each * all, "{title}: {verdicts:?}");
        let sums = by_kind.entry(section.expected).or_default();
        *sums = (sums.0 + right, sums.1 + all);
    }
    for (kind, (right, all)) in by_kind {
        assert!(
            right * 100 >= least(kind).0 * all,
            "{kind}: {right} of {all}"
        );
    }
}

#[test]
fn ciphers_are_known_by_their_instructions() {
    assert_known(&sections(Machine::X86_64, CIPHERS), |kind| match kind {
        // What is between the multiplications is like any other code.
        "PublicKey" => (85, 50),
        _ => (98, 80),
    });
}

#[test]
fn ordinary_code_is_no_cipher() {
    let sections = sections(Machine::X86_64, ORDINARY);
    let all: usize = sections.iter().map(|section| section.verdicts.len()).sum();
    assert!(all > 250);
    for section in sections {
        let is_false = |kind: &&Kind| !matches!(kind, Kind::Other | Kind::Copy);
        let found: Vec<_> = section.verdicts.iter().filter(is_false).collect();
        assert!(found.is_empty(), "{}: {found:?}", section.title);
    }
}

#[test]
fn aarch64_is_known_too() {
    assert_known(&sections(Machine::Aarch64, AARCH64), |kind| match kind {
        "Other" => (100, 100),
        _ => (90, 80),
    });
}

#[test]
fn one_side_is_enough_for_most() {
    let forward = |line: &str| {
        let code = line.split_once(' ').unwrap().1;
        classify_for(Machine::X86_64, &bytes(code), 0)
    };
    let mut section = "";
    let (mut right, mut all) = (0, 0);
    for line in CIPHERS.lines() {
        match line.strip_prefix("# ") {
            Some(heading) => section = heading,
            None if section.starts_with("Aes:") => {
                right += usize::from(forward(line) == Kind::Aes);
                all += 1;
            }
            None => {}
        }
    }
    assert!(right * 10 >= all * 8, "{right} of {all}");
}

#[test]
fn a_round_that_mixes_a_value_with_itself_is_a_hash() {
    let with_itself = [0x66, 0x0f, 0x38, 0xdc, 0xc0]; // aesenc %xmm0, %xmm0
    let with_a_key = [0x66, 0x0f, 0x38, 0xdc, 0xc1]; // aesenc %xmm1, %xmm0
    assert_eq!(classify_for(Machine::X86_64, &with_itself, 0), Kind::Other);
    assert_eq!(classify_for(Machine::X86_64, &with_a_key, 0), Kind::Aes);
}

#[test]
fn what_is_behind_a_return_does_not_count() {
    let behind = [0xc3, 0x66, 0x0f, 0x38, 0xdc, 0xc1]; // ret; aesenc %xmm1, %xmm0
    assert_eq!(classify_for(Machine::X86_64, &behind, 0), Kind::Other);
    assert_eq!(classify_for(Machine::X86_64, &behind, 1), Kind::Aes);
}

#[test]
fn jumps_are_followed_forward_only() {
    let over_a_trap = [0xeb, 0x01, 0xcc, 0x66, 0x0f, 0x38, 0xdc, 0xc1];
    assert_eq!(classify_for(Machine::X86_64, &over_a_trap, 0), Kind::Aes);
    let for_ever = [0xeb, 0xfe];
    assert_eq!(classify_for(Machine::X86_64, &for_ever, 0), Kind::Other);
}

#[test]
fn nothing_is_nothing() {
    for machine in [Machine::X86_64, Machine::Aarch64] {
        assert_eq!(classify_for(machine, &[], 0), Kind::Other);
        assert_eq!(classify_for(machine, &[0x90], 5), Kind::Other);
        assert_eq!(classify_for(machine, &[0x90], usize::MAX), Kind::Other);
    }
}

#[test]
fn a_cache_forgets_what_is_not_asked_for() {
    let code = [0x66, 0x0f, 0x38, 0xdc, 0xc1];
    let mut cache = Cache::new(8);
    assert!(cache.is_empty());
    for other in 0..100u8 {
        assert_eq!(cache.classify(&code, 0), classify(&code, 0));
        assert_eq!(cache.classify(&[other], 0), classify(&[other], 0));
        assert!(cache.len() <= 8);
    }
    // The place of the instruction belongs to the question.
    let behind = [0xc3, 0x66, 0x0f, 0x38, 0xdc, 0xc1];
    assert_eq!(cache.classify(&behind, 0), classify(&behind, 0));
    assert_eq!(cache.classify(&behind, 1), classify(&behind, 1));
}

proptest! {
    #[test]
    fn any_bytes_have_one_answer(code in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..500) {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let kind = classify_for(machine, &code, at);
            prop_assert_eq!(kind, classify_for(machine, &code, at));
            let mut cache = Cache::new(4);
            prop_assert_eq!(cache.classify(&code, at), classify(&code, at));
            prop_assert_eq!(cache.classify(&code, at), classify(&code, at));
        }
    }
}
