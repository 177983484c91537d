//! `testdata/compiled.txt` holds what Java virtual machines compiled: ChaCha20 and Poly1305, with the offsets at
//! which perf found a server that sends by ChaCha20-Poly1305; and what is most like it, or not at all.

#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;

use super::*;

const COMPILED: &str = include_str!("../testdata/compiled.txt");

struct Method {
    title: &'static str,
    code: Vec<u8>,
    sampled: Vec<usize>,
}

/// Headings `# ChaCha: TITLE` or `# Other: TITLE`, each followed by `CODE OFFSET...`.
fn methods(wanted: &str) -> Vec<Method> {
    let lines = COMPILED.lines().collect::<Vec<_>>();
    let pairs = lines.as_chunks::<2>().0.iter();
    let methods = pairs.filter_map(|[heading, line]| {
        let (kind, title) = heading
            .strip_prefix("# ")
            .unwrap()
            .split_once(": ")
            .unwrap();
        let mut words = line.split(' ');
        let digits = words.next().unwrap().as_bytes().as_chunks::<2>().0.iter();
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (kind == wanted).then(|| Method {
            title,
            code: digits.map(|pair| byte(pair)).collect(),
            sampled: words.map(|offset| offset.parse().unwrap()).collect(),
        })
    });
    methods.collect()
}

fn instructions(code: &[u8]) -> Vec<usize> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let next = || {
        decoder.can_decode().then(|| {
            let position = decoder.position();
            let _ = decoder.decode();
            position
        })
    };
    std::iter::from_fn(next).collect()
}

fn is_known(code: &[u8], at: usize) -> bool {
    is_chacha20_poly1305_for(Machine::X86_64, code, at)
}

/// What lies between compiled methods: data, then filled up.
fn behind_another(code: &[u8]) -> (Vec<u8>, usize) {
    let before = [&[0x0f, 0xff, 0x7f, 0x00].repeat(30)[..], &[0xf4; 16]].concat();
    let begin = before.len();
    ([&before[..], code, &[0xf4; 64]].concat(), begin)
}

#[test]
fn ciphers_are_known_wherever_they_are_sampled() {
    let methods = methods("ChaCha");
    assert!(methods.len() >= 3);
    for Method {
        title,
        code,
        sampled,
    } in methods
    {
        assert!(sampled.len() > 20, "{title}");
        let (around, begin) = behind_another(&code);
        for at in sampled {
            assert!(is_known(&code, at), "{title}, {at}");
            assert!(is_known(&around, begin + at), "{title}, {at}");
        }
    }
}

#[test]
fn elliptic_curves_are_no_cipher() {
    let methods = methods("Other");
    assert!(methods.len() >= 10);
    for Method { title, code, .. } in methods {
        let found: Vec<_> = instructions(&code)
            .into_iter()
            .filter(|&at| is_known(&code, at))
            .collect();
        assert!(found.is_empty(), "{title}: {found:?}");
    }
}

fn shows_a_curve(code: &[u8], at: usize) -> bool {
    is_curve_for(Machine::X86_64, code, at)
}

#[test]
fn products_of_many_limbs_are_curves_but_for_their_beginning_and_end() {
    for Method { title, code, .. } in methods("Other") {
        let all = instructions(&code);
        let found = all.iter().filter(|&&at| shows_a_curve(&code, at)).count();
        let multiplies = title.contains("IntegerPolynomial") || title.contains("P-256");
        assert!(
            !multiplies || found * 5 > all.len() * 4,
            "{title}: {found} of {}",
            all.len()
        );
        let arithmetic = multiplies || title.contains("carryReduce");
        assert!(arithmetic || found == 0, "{title}: {found}");
    }
}

#[test]
fn ciphers_are_no_curves() {
    for Method { title, code, .. } in methods("ChaCha") {
        let all = instructions(&code).into_iter();
        assert_eq!(
            all.filter(|&at| shows_a_curve(&code, at)).count(),
            0,
            "{title}"
        );
    }
}

#[test]
fn other_code_beside_it_is_no_cipher() {
    let other = [0x48, 0x01, 0xc8].repeat(600); // add %rcx, %rax
    for Method { title, code, .. } in methods("ChaCha") {
        let behind = [&code[..], &other].concat();
        assert!(!is_known(&behind, code.len() + 1200), "{title}");
        assert!(
            !is_known(&[&code[..], &[0xf4], &other].concat(), code.len() + 1),
            "{title}"
        );
        let before = [&other[..], &code].concat();
        assert!(!is_known(&before, 600), "{title}");
    }
}

#[test]
fn another_machines_code_is_not_known() {
    for Method { code, sampled, .. } in methods("ChaCha") {
        let known = |at: &usize| is_chacha20_poly1305_for(Machine::Aarch64, &code, *at);
        assert!(!sampled.iter().any(known));
    }
}

proptest! {
    #[test]
    fn any_bytes_have_an_answer(code in prop::collection::vec(any::<u8>(), 0..6000), at in 0usize..7000) {
        let known = is_known(&code, at);
        prop_assert_eq!(known, is_known(&code, at));
        prop_assert!(!is_known(&code, usize::MAX));
    }
}
