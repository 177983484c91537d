//! What tables of a report have in common: how labels and roles are worded, and how long they are.

use tlsprof_report::model::{Role, Service};

/// Rows of long tables where there is little room.
pub(super) const ROWS: usize = 12;

/// A label in words: `key_exchange` is `key exchange`, abbreviations are upper case.
pub(crate) fn words(label: &str) -> String {
    match label {
        "socket_io" => "socket I/O".to_owned(),
        "tcp_open" | "tcp_close" => label.replace("tcp_", "TCP "),
        _ => label.replace('_', " ").replace("rsa", "RSA"),
    }
}

/// Whether both roles occur, and so must be told.
fn both_roles(service: &Service) -> bool {
    let mut roles = service.handshakes.iter().map(|group| group.role);
    let first = roles.next();
    roles.any(|role| Some(role) != first)
}

/// The role in front of a word, where both occur.
pub(super) fn with_role(service: &Service, role: Role, what: &str) -> String {
    if both_roles(service) {
        format!("{}: {what}", role.label())
    } else {
        what.to_owned()
    }
}
