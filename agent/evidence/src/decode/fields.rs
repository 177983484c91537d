//! Fields that several events have.

use tlsprof_common::Role;
use tlsprof_common::contract::TLSPROF_ROLE_CLIENT;

pub(super) fn role(role: u8) -> Role {
    if u32::from(role) == TLSPROF_ROLE_CLIENT {
        Role::Client
    } else {
        Role::Server
    }
}

/// A C string in a fixed array; bytes that are not UTF-8 are replaced.
pub(super) fn text(array: &[std::ffi::c_char]) -> String {
    let (text, _) = array.split_at(array.iter().take_while(|byte| **byte != 0).count());
    let bytes = text.iter().map(|byte| {
        let [byte] = byte.to_ne_bytes(); // i8 or u8, by the machine
        byte
    });
    String::from_utf8(bytes.collect())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
