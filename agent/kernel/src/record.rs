//! Records of the event ring: bytes to the structures of the contract.
#![allow(
    unsafe_code,
    reason = "reads plain C structures out of ring buffer bytes"
)]

use super::plain::Plain;
use tlsprof_common::contract::{
    TLSPROF_EVENT_CONNECTION_CLOSED, TLSPROF_EVENT_CONNECTION_OPENED, TLSPROF_EVENT_EXEC,
    TLSPROF_EVENT_EXIT, TLSPROF_EVENT_FORK, TLSPROF_EVENT_HANDSHAKE, TLSPROF_EVENT_HELLO,
    tlsprof_connection_event, tlsprof_event_header, tlsprof_handshake_event, tlsprof_hello_event,
    tlsprof_process_event,
};

/// One record of the event ring.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A handshake ended.
    Handshake(tlsprof_handshake_event),
    /// A process was forked, replaced its program, or ended.
    Process(tlsprof_process_event),
    /// A TCP connection was opened or closed.
    Connection(tlsprof_connection_event),
    /// The first bytes of a connection moved.
    Hello(HelloEvent<'a>),
}

/// [`tlsprof_hello_event`] with as many bytes as were sent.
#[derive(Clone, Copy, Debug)]
pub struct HelloEvent<'a> {
    /// All but the bytes.
    pub head: HelloHead,
    /// The bytes, at most `TLSPROF_HELLO_LEN`.
    pub bytes: &'a [u8],
}

/// The beginning of [`tlsprof_hello_event`], up to its bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HelloHead {
    /// Its header.
    pub header: tlsprof_event_header,
    /// The connection.
    pub connection: u64,
    /// Where the bytes stand in their direction's stream.
    pub offset: u32,
    /// How many they are.
    pub length: u16,
    /// `enum tlsprof_direction`
    pub direction: u8,
    /// `enum tlsprof_role` of the TCP connection.
    pub role: u8,
    /// `enum tlsprof_upgrade`: the protocol that came before TLS.
    pub upgrade: u8,
    /// Whether a PROXY header came before TLS.
    pub proxied: u8,
    reserved: [u8; 6],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<HelloHead>() == offset_of!(tlsprof_hello_event, bytes));
    assert!(offset_of!(HelloHead, connection) == offset_of!(tlsprof_hello_event, connection));
    assert!(offset_of!(HelloHead, offset) == offset_of!(tlsprof_hello_event, offset));
    assert!(offset_of!(HelloHead, length) == offset_of!(tlsprof_hello_event, length));
    assert!(offset_of!(HelloHead, direction) == offset_of!(tlsprof_hello_event, direction));
    assert!(offset_of!(HelloHead, role) == offset_of!(tlsprof_hello_event, role));
    assert!(offset_of!(HelloHead, upgrade) == offset_of!(tlsprof_hello_event, upgrade));
    assert!(offset_of!(HelloHead, proxied) == offset_of!(tlsprof_hello_event, proxied));
};

impl Record<'_> {
    /// When it happened, in nanoseconds of CLOCK_MONOTONIC.
    pub fn time(&self) -> u64 {
        match self {
            Self::Handshake(event) => event.header.time,
            Self::Process(event) => event.header.time,
            Self::Connection(event) => event.header.time,
            Self::Hello(event) => event.head.header.time,
        }
    }
}

// SAFETY: a C structure of integers without padding.
unsafe impl Plain for HelloHead {}

pub(super) fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the slice is long enough, `T` is valid for any bytes, and
    // read_unaligned asks nothing of the address.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Reads one record; None for a kind or size that is not in the contract.
pub fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let header: tlsprof_event_header = read(bytes)?;
    match header.kind {
        TLSPROF_EVENT_HANDSHAKE => read(bytes).map(Record::Handshake),
        TLSPROF_EVENT_FORK | TLSPROF_EVENT_EXEC | TLSPROF_EVENT_EXIT => {
            read(bytes).map(Record::Process)
        }
        TLSPROF_EVENT_CONNECTION_OPENED | TLSPROF_EVENT_CONNECTION_CLOSED => {
            read(bytes).map(Record::Connection)
        }
        TLSPROF_EVENT_HELLO => hello(bytes).map(Record::Hello),
        _ => None,
    }
}

fn hello(bytes: &[u8]) -> Option<HelloEvent<'_>> {
    let head: HelloHead = read(bytes)?;
    let bytes = bytes
        .get(size_of::<HelloHead>()..)?
        .get(..usize::from(head.length))?;
    Some(HelloEvent { head, bytes })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a failed index is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn short_and_unknown_records_are_refused() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[1, 0, 0, 0]).is_none());
        let mut unknown = vec![0_u8; 512];
        unknown[0] = 99;
        assert!(decode(&unknown).is_none());
        let mut short = vec![0_u8; size_of::<tlsprof_event_header>()];
        short[0] = 1;
        assert!(decode(&short).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}
