//! Words of the report that programs compare.
//!
//! They are open: another version may know more of them, so that each type has
//! `Unknown`, and the schema says no more than that they are strings. The enums of `common` are
//! closed instead, so that the compiler finds a rule that forgets a case.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`.")]
                #[serde(rename = $word)]
                $variant,
            )*
            /// Not known, or a word of another version.
            #[default]
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        impl $name {
            /// The word as the report has it.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown => "unknown",
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

pub(crate) use words;

words! {
    /// The service's side of a connection.
    Role { Server = "server", Client = "client", }
}

words! {
    /// How handshakes ended: with both Finished, by an error or an alert, or with the connection.
    Outcome { Completed = "completed", Failed = "failed", Abandoned = "abandoned", }
}

words! {
    /// By what an earlier session was resumed; `none` is a full handshake, `abbreviated` one or the
    /// other of TLS 1.2.
    Resumption {
        None = "none", SessionId = "session_id", Ticket = "ticket", Psk = "psk",
        Abbreviated = "abbreviated",
    }
}

impl Resumption {
    /// Whether a session was resumed.
    pub const fn is_one(self) -> bool {
        !matches!(self, Self::None | Self::Unknown)
    }
}

words! {
    /// What became of the attempt to resume a session.
    Attempt { NotOffered = "not_offered", Accepted = "accepted", Refused = "refused", }
}

words! {
    /// What showed a handshake: probes in the TLS library, or socket calls.
    Witness { Library = "library", Socket = "socket", }
}

words! {
    /// What showed the handshakes of a service; `none` where nothing of it could be profiled.
    Source {
        LibraryProbes = "library_probes", SocketCalls = "socket_calls", Both = "both", None = "none",
    }
}

words! {
    /// A part of handshakes; `unmeasured` is what could not be divided.
    Step {
        KeyExchange = "key_exchange", Signing = "signing", Verification = "verification",
        RsaDecryption = "rsa_decryption", KeyDerivation = "key_derivation", Other = "other",
        Unmeasured = "unmeasured",
    }
}

words! {
    /// Who ended a connection: the service, its peer, or neither as the peer no longer answered.
    Closer { Local = "local", Remote = "remote", Timeout = "timeout", }
}

words! {
    /// What CPU time was spent on.
    Activity {
        Handshake = "handshake", Encryption = "encryption", TcpOpen = "tcp_open",
        TcpClose = "tcp_close", SocketIo = "socket_io", Application = "application",
    }
}

words! {
    /// What code computes.
    Primitive {
        RsaDh = "rsa_dh", BigNumber = "big_number", Multiprecision = "multiprecision", P256 = "p256", P384 = "p384", P521 = "p521",
        EllipticCurve = "elliptic_curve", Curve25519 = "curve25519", Curve448 = "curve448",
        MlKem = "ml_kem", MlDsa = "ml_dsa", PublicKey = "public_key", Sha = "sha", Sha3 = "sha3",
        KeyDerivation = "key_derivation", Aes = "aes", ChaCha = "chacha20_poly1305", X509 = "x509",
        Random = "random", Memory = "memory", Other = "other", Kernel = "kernel",
        NotIdentified = "not_identified",
    }
}

words! {
    /// A unit of work.
    Unit { Handshake = "handshake", Turn = "turn", Megabyte = "megabyte", }
}

words! {
    /// How grave a finding is.
    Severity { High = "high", Medium = "medium", Low = "low", Info = "info", }
}

words! {
    /// What is predicted of a change: what it saves, the most that it may save, time that
    /// handshakes no longer wait, or nothing that can be put in CPU time.
    PredictionKind { Saving = "saving", AtMost = "at_most", Latency = "latency", None = "none", }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn words_of_other_versions_are_unknown() {
        let role: Role = serde_json::from_str("\"proxy\"").unwrap();
        assert_eq!(role, Role::Unknown);
        assert_eq!(serde_json::to_string(&Role::Server).unwrap(), "\"server\"");
    }

    #[test]
    fn the_report_has_a_word_for_all_evidence() {
        for one in tlsprof_common::Step::ALL {
            assert_eq!(Step::from(one.label()).label(), one.label());
        }
        for one in tlsprof_evidence::activity::Activity::ALL {
            assert_eq!(Activity::from(one.label()).label(), one.label());
        }
        for one in tlsprof_evidence::primitive::Primitive::ALL {
            assert_eq!(Primitive::from(one.label()).label(), one.label());
        }
    }
}
