//! Structures of the contract as plain data: records of the ring, keys and values of maps.
#![allow(unsafe_code, reason = "promises about C structures")]

use tlsprof_common::contract::{
    tlsprof_call, tlsprof_connection_event, tlsprof_connection_object, tlsprof_control,
    tlsprof_event_header, tlsprof_exchange, tlsprof_handshake, tlsprof_handshake_event,
    tlsprof_listener, tlsprof_process_event, tlsprof_runs, tlsprof_sample, tlsprof_sample_key,
    tlsprof_timed,
};

/// A structure of the contract: plain integers and arrays of them.
///
/// # Safety
///
/// Every bit pattern must be a valid value.
pub(super) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($structure:ty),* $(,)?) => { $(
        // SAFETY: bindgen made it from a C structure of integers, whose padding carries no
        // meaning; every bit pattern is valid.
        unsafe impl Plain for $structure {}
    )* };
}

plain!(
    tlsprof_call,
    tlsprof_connection_event,
    tlsprof_connection_object,
    tlsprof_control,
    tlsprof_event_header,
    tlsprof_exchange,
    tlsprof_handshake,
    tlsprof_handshake_event,
    tlsprof_listener,
    tlsprof_process_event,
    tlsprof_runs,
    tlsprof_sample,
    tlsprof_sample_key,
    tlsprof_timed,
);

/// A structure of the contract as a key or a value of a map.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Pod<T>(pub(crate) T);

// SAFETY: plain data, see `Plain`.
unsafe impl<T: Plain + 'static> aya::Pod for Pod<T> {}
