//! Kernel stacks as they were seen, through a table as the kernel writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::activity::kernel_functions::{ESSENTIAL, KERNELS, ROWS};
use crate::activity::kernel_symbols::KernelFunctions;
use crate::activity::{Activity, Basis, Mode, Observed, Place, Tls, Verdict, classify};

const STACKS: [&str; 4] = [
    include_str!("../testdata/stacks-5.10.txt"),
    include_str!("../testdata/stacks-6.18.txt"),
    include_str!("../testdata/stacks-6.12-ktls.txt"),
    include_str!("../testdata/stacks-7.3.txt"),
];
const FUNCTIONS: &str = include_str!("../testdata/functions.txt");

/// A paragraph of [`STACKS`].
struct Case<'a> {
    expected: &'a str,
    name: &'a str,
    stack: Vec<&'a str>,
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    let paragraphs = STACKS.iter().flat_map(|text| text.split("\n\n"));
    paragraphs
        .filter(|text| !text.starts_with('#'))
        .map(|text| {
            let (head, stack) = text.trim().split_once('\n').unwrap();
            let (expected, name) = head.split_once(": ").unwrap();
            let stack = stack.split(&['<', '\n']).map(str::trim);
            Case {
                expected,
                name,
                stack: stack.filter(|name| !name.is_empty()).collect(),
            }
        })
}

/// The functions of these stacks as in /proc/kallsyms, 256 bytes each.
fn addresses() -> BTreeMap<&'static str, u64> {
    let names: BTreeSet<_> = cases().flat_map(|case| case.stack).collect();
    let begins = (0xffff_ffff_8100_0000_u64..).step_by(0x100);
    names.into_iter().zip(begins).collect()
}

/// On 5.10 __do_softirq begins where its section does, and has two names.
const ALIAS: (&str, &str) = ("__softirqentry_text_start", "__do_softirq");

fn kallsyms() -> String {
    addresses()
        .iter()
        .fold(String::new(), |mut text, (name, address)| {
            writeln!(text, "{address:x} t {name}").unwrap();
            if *name == ALIAS.0 {
                writeln!(text, "{address:x} T {}", ALIAS.1).unwrap();
            }
            text
        })
}

fn label(verdict: Verdict) -> String {
    let activity = match verdict.activity {
        Activity::Handshake => "handshake",
        Activity::Encryption => "encryption",
        Activity::TcpOpen => "tcp_open",
        Activity::TcpClose => "tcp_close",
        Activity::SocketIo => "socket_io",
        Activity::Application => "application",
    };
    let mode = match verdict.mode {
        Mode::User => "user",
        Mode::System => "system",
        Mode::Softirq => "softirq",
    };
    let unclassified = verdict.basis == Basis::Unclassified;
    let words = [
        Some(activity),
        Some(mode),
        unclassified.then_some("unclassified"),
        verdict.traced.then_some("traced"),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[test]
fn stacks_that_were_seen_count_for_what_they_are() {
    let functions = KernelFunctions::parse(kallsyms().as_bytes()).unwrap();
    let addresses = addresses();
    let mut seen = 0;
    for case in cases() {
        // The innermost is an instruction, the others return addresses, at worst
        // those of a call that is the last instruction of its function.
        let stack: Vec<_> = case
            .stack
            .iter()
            .enumerate()
            .map(|(depth, name)| addresses[name] + if depth == 0 { 0 } else { 0x100 })
            .collect();
        let verdict = classify(&Observed {
            handshake: false,
            tls: Tls::Unknown,
            place: Place::Kernel(functions.work(&stack)),
        });
        assert_eq!(label(verdict), case.expected, "{}", case.name);
        seen += 1;
    }
    assert!(seen > 75, "{seen} stacks");
}

#[test]
fn the_list_says_truly_which_kernels_have_its_functions() {
    let found: BTreeMap<_, Vec<_>> = FUNCTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split(' ');
            (words.next().unwrap(), words.collect())
        })
        .collect();
    let mut listed = BTreeSet::new();
    for row in ROWS {
        let (first, last) = row.kernels;
        for name in row.names {
            assert!(listed.insert(*name), "{name} is listed twice");
            assert_eq!(found[name], KERNELS[first..=last], "{name}");
        }
    }
    assert_eq!(listed.len(), found.len());
}

#[test]
fn each_kernel_has_what_the_rules_need() {
    for kernel in KERNELS {
        for names in ESSENTIAL {
            let there = names.iter().any(|name| {
                let mut rows = ROWS.iter().filter(|row| row.names.contains(name));
                let (first, last) = rows.next().unwrap().kernels;
                KERNELS[first..=last].contains(&kernel)
            });
            assert!(there, "{names:?} on {kernel}");
        }
    }
}
