//! Chunks of both directions of a connection, as the kernel side would bring
//! them: a byte whose lowest bit is the direction, two bytes of length, then
//! the chunk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tlsprof_common::Role;
use tlsprof_evidence::hello::{Direction, Exchange, State};

fuzz_target!(|input: &[u8]| {
    let chunks = chunks(input);
    let mut exchange = Exchange::new();
    let mut bytewise = Exchange::new();
    for (direction, chunk) in &chunks {
        exchange.received(*direction, chunk);
        for byte in *chunk {
            bytewise.received(*direction, std::slice::from_ref(byte));
        }
    }
    // The size of chunks must not matter, and conclusions must not panic.
    let state = exchange.state();
    assert_eq!(state, bytewise.state());
    if state != State::NotTls {
        assert_eq!(exchange.facts(), bytewise.facts());
    }
    if let Some(facts) = exchange.facts() {
        let _ = (
            facts.version(),
            facts.cipher(),
            facts.key_exchange().label(),
        );
        let _ = (facts.attempt(), facts.rsa_transport_bits());
        let _ = (facts.signature(Role::Server), facts.signature(Role::Client));
    }
});

fn chunks(mut input: &[u8]) -> Vec<(Direction, &[u8])> {
    let mut chunks = Vec::new();
    while let Some((&[way, high, low], rest)) = input.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (chunk, rest) = rest.split_at(length);
        let direction = if way & 1 == 0 {
            Direction::FromClient
        } else {
            Direction::FromServer
        };
        chunks.push((direction, chunk));
        input = rest;
    }
    chunks
}
