//! Reading fixtures, feeding them, and saying in one line what came out.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a fixture that cannot be read is a failed test"
)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::hello::{Direction, Exchange, State};
use tlsprof_common::Role;

pub type Chunk = (Direction, Vec<u8>);

/// A captured connection.
pub struct Fixture {
    pub name: String,
    /// The line that [`summary`] gives.
    pub expected: String,
    pub chunks: Vec<Chunk>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/hello")
}

/// All fixtures, by name.
pub fn all() -> &'static [Fixture] {
    static ALL: LazyLock<Vec<Fixture>> = LazyLock::new(read_all);
    &ALL
}

fn read_all() -> Vec<Fixture> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".hex").map(str::to_owned))
        .collect();
    names.sort();
    names.iter().map(|name| read(name)).collect()
}

/// The fixture of this name.
pub fn read(name: &str) -> Fixture {
    let text = std::fs::read_to_string(folder().join(format!("{name}.hex"))).unwrap();
    let mut expected = String::new();
    let mut chunks = Vec::new();
    for line in text.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("#", _) => {}
            ("=", summary) => summary.clone_into(&mut expected),
            ("C", hex) => chunks.push((Direction::FromClient, bytes(hex))),
            ("S", hex) => chunks.push((Direction::FromServer, bytes(hex))),
            _ => panic!("{name}: what is this: {line}"),
        }
    }
    Fixture {
        name: name.to_owned(),
        expected: without_opening(&expected),
        chunks: without_prelude(chunks),
    }
}

/// What comes before TLS stays in the kernel: the native tests of its side read these
/// fixtures for it.
fn without_prelude(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    let hello = |(direction, bytes): &Chunk| {
        let record = |window: &[u8]| window == [22, 3, 1];
        let at = bytes.windows(3).position(record);
        at.filter(|_| *direction == Direction::FromClient)
    };
    let found = chunks.iter().enumerate();
    let begins = found
        .filter_map(|(number, chunk)| Some((number, hello(chunk)?)))
        .next();
    let Some((number, at)) = begins else {
        return chunks;
    };
    let mut chunks = chunks.split_off(number);
    chunks[0].1.drain(..at);
    chunks
}

fn without_opening(expected: &str) -> String {
    let words = expected.split(' ');
    let told = words.filter(|word| !word.starts_with("upgrade=") && *word != "proxy_protocol");
    told.collect::<Vec<_>>().join(" ")
}

/// The bytes that a hexadecimal text stands for.
pub fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half a byte");
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// An exchange that has received these chunks.
pub fn fed<'a>(chunks: impl IntoIterator<Item = (Direction, &'a [u8])>) -> Exchange {
    let mut exchange = Exchange::new();
    for (direction, bytes) in chunks {
        exchange.received(direction, bytes);
    }
    exchange
}

impl Fixture {
    /// The chunks as they were captured.
    pub fn whole(&self) -> impl Iterator<Item = (Direction, &[u8])> {
        self.chunks
            .iter()
            .map(|(direction, bytes)| (*direction, bytes.as_slice()))
    }

    /// The same bytes in pieces of at most `size`.
    pub fn pieces(&self, size: usize) -> impl Iterator<Item = (Direction, &[u8])> {
        self.whole().flat_map(move |(direction, bytes)| {
            bytes.chunks(size).map(move |piece| (direction, piece))
        })
    }
}

/// State, version, suite, group, means of resumption, attempt, signatures of
/// server and client, and what else was seen, in one line.
pub fn summary(exchange: &Exchange) -> String {
    let mut line = match exchange.state() {
        State::NeedMore => "more".to_owned(),
        State::Complete => "complete".to_owned(),
        State::NotTls => "not_tls".to_owned(),
        State::GaveUp(reason) => format!("gave_up:{}", reason.label()),
    };
    let Some(facts) = exchange.facts() else {
        return line;
    };
    write!(
        line,
        " {} {} {} {} {} server={} client={}",
        facts.version(),
        facts.cipher(),
        facts.key_exchange().label(),
        facts.resumption().label(),
        facts.attempt().label(),
        facts.signature(Role::Server),
        facts.signature(Role::Client),
    )
    .unwrap();
    if let Some(retry) = facts.retry {
        let group = retry.map_or("none", |group| group.name());
        write!(line, " retry={group}").unwrap();
    }
    if let Some(bits) = facts.rsa_transport_bits() {
        write!(line, " rsa_transport={bits}").unwrap();
    }
    for (direction, level, alert) in &facts.alerts {
        write!(
            line,
            " alert={}:{level:?}:{}",
            direction.label(),
            alert.name()
        )
        .unwrap();
    }
    line
}
