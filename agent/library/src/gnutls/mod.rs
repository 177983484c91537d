//! GnuTLS 3: counts, outcomes and CPU time of handshakes, without steps.
//!
//! All handshakes of TLS and DTLS run in the exported `gnutls_handshake(session)`, which the
//! program calls again as long as it returns an error that is not fatal. The role of a session
//! is an argument of `gnutls_init`, so that no internal structure is read. Looked at: 3.7.9.

mod reasons;

use tlsprof_common::contract;

use crate::model::{Defines, Found, Library, MAX_VERSION, Unsupported};
use crate::spec::{Function, Group, Locate, Need, Program};

/// GnuTLS.
pub static LIBRARY: Library = Library {
    number: contract::TLSPROF_LIBRARY_GNUTLS,
    name: "GnuTLS",
    releases: "GnuTLS 3",
    steps: false,
    marks: &MARKS,
    recognise,
    version,
    reason: reasons::name,
};

const MARKS: [&str; 3] = ["gnutls_init", "gnutls_handshake", "gnutls_deinit"];

fn recognise(defines: Defines<'_>) -> Option<Result<Found, Unsupported>> {
    let found = Found {
        library: &LIBRARY,
        edition: "GnuTLS",
        part: "libgnutls",
        handshakes: true,
        steps: false,
        functions: FUNCTIONS.iter().collect(),
        version: String::new(),
    };
    MARKS.iter().all(|name| defines(name)).then_some(Ok(found))
}

const FUNCTIONS: &[Function] = &[
    // int gnutls_init(gnutls_session_t *session, unsigned int flags): the new session is
    // where `session` points when it returns.
    Function {
        entry: Some(Program::begins("gnutls_init_enter")),
        exit: Some(Program::ends("gnutls_init_exit")),
        arguments: 2,
        ..on_session(&["gnutls_init"])
    },
    // int gnutls_handshake(gnutls_session_t session)
    Function {
        entry: Some(Program::begins("gnutls_handshake_enter")),
        exit: Some(Program::ends("gnutls_handshake_exit")),
        ..on_session(&["gnutls_handshake"])
    },
    // void gnutls_deinit(gnutls_session_t session)
    Function {
        entry: Some(Program::explains("gnutls_deinit_enter")),
        ..on_session(&["gnutls_deinit"])
    },
];

/// A function that has the session in its first argument.
const fn on_session(symbol: &'static [&'static str; 1]) -> Function {
    let &[name] = symbol;
    Function {
        name,
        locate: Locate::Symbol(symbol),
        entry: None,
        exit: None,
        cookie: 0,
        step: None,
        group: Group::Handshakes,
        need: Need::Required,
        arguments: 1,
    }
}

/// How `gnutls_global_init` logs the version.
const LOGGED: &[u8] = b"Enabled GnuTLS ";

/// `GnuTLS 3.7.9` of the text "Enabled GnuTLS 3.7.9 logging...".
fn version(bytes: &[u8]) -> Option<&str> {
    let mut texts = bytes
        .windows(LOGGED.len())
        .enumerate()
        .filter(|(_, text)| *text == LOGGED);
    texts.find_map(|(at, _)| {
        let name = bytes.get(at + b"Enabled ".len()..)?;
        let name = name.get(..MAX_VERSION).unwrap_or(name);
        let number = name.get(b"GnuTLS ".len()..)?;
        let length = number.iter().position(|byte| *byte == b' ')?;
        let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let sound = number.first()?.is_ascii_digit() && number.get(..length)?.iter().all(is_number);
        sound
            .then(|| name.get(..b"GnuTLS ".len() + length))
            .flatten()
            .and_then(|name| str::from_utf8(name).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_texts() {
        assert_eq!(
            version(b"x\0Enabled GnuTLS 3.7.9 logging...\n\0y"),
            Some("GnuTLS 3.7.9")
        );
        let second = b"Enabled GnuTLS support\0Enabled GnuTLS 3.8.10 logging";
        assert_eq!(version(second), Some("GnuTLS 3.8.10"));
        for none in [
            &b"GnuTLS 3.7.9 logging"[..],
            b"Enabled GnuTLS 3.7.9",
            b"Enabled GnuTLS 3.7.9\0 logging",
            b"Enabled GnuTLS  logging",
            b"Enabled GnuTLS ",
        ] {
            assert_eq!(version(none), None);
        }
        let endless = [LOGGED, &[b'1'; 100], b" "].concat();
        assert_eq!(version(&endless), None);
    }

    #[test]
    fn an_image_with_all_three_functions_is_gnutls() {
        let Some(Ok(found)) = recognise(&|name| name.starts_with("gnutls_")) else {
            unreachable!("not recognised");
        };
        assert_eq!(found.to_string(), "GnuTLS (libgnutls)");
        assert_eq!((found.handshakes, found.steps), (true, false));
        for missing in MARKS {
            assert_eq!(recognise(&|name| name != missing), None);
        }
    }
}
