//! Groups of key exchange: their names, and how servers list them. No list leaves out a
//! post-quantum group that the server has: clients that offer it would lose its protection.

use crate::finding::{Advice, Target};
use crate::{Hybrid, Server};
use tlsprof_common::{Outcome, Role};
use tlsprof_ledger::HandshakeKey;

/// The groups that others are compared with; both are of 128 bits.
pub(crate) const X25519: &str = "x25519";

pub(crate) const P256: &str = "secp256r1";

/// A hybrid group that costs a multiple of X25519MLKEM768: P-384 is most of it.
pub(crate) const SLOW_HYBRID: &str = "SecP384r1MLKEM1024";

pub(crate) fn with_group(group: &'static str) -> impl Fn(&HandshakeKey) -> bool {
    move |key| key.role == Role::Server && key.outcome == Outcome::Completed && key.group == group
}

/// A group by the name that server configurations have.
pub(crate) fn in_words(group: &str) -> String {
    match group {
        "secp256r1" => "P-256".to_owned(),
        "secp384r1" => "P-384".to_owned(),
        "secp521r1" => "P-521".to_owned(),
        "x25519" => "X25519".to_owned(),
        "x448" => "X448".to_owned(),
        dhe => dhe
            .strip_prefix("dhe_")
            .map_or_else(|| dhe.to_owned(), |bits| format!("DHE with {bits} bits")),
    }
}

/// Lists of groups for a library that has X25519MLKEM768, one that lacks it, and one of which
/// that is not known: it then says itself that it does not know the group.
struct Groups {
    has: Advice,
    lacks: Advice,
    unknown: Advice,
}

impl Groups {
    const fn of(self, hybrid: Hybrid) -> Advice {
        match hybrid {
            Hybrid::Has => self.has,
            Hybrid::Lacks => self.lacks,
            Hybrid::Unknown => self.unknown,
        }
    }
}

macro_rules! openssl {
    ($change:literal, $hybrid:literal, $classic:literal) => {
        Groups {
            has: (
                concat!(
                    $change,
                    " Keep X25519MLKEM768 first: it protects against future quantum computers, and \
                     is far less expensive than SecP384r1MLKEM1024."
                ),
                $hybrid,
            ),
            lacks: (
                concat!(
                    $change,
                    " This OpenSSL has no post-quantum group: from 3.5 on, put X25519MLKEM768 first."
                ),
                $classic,
            ),
            unknown: (
                concat!(
                    $change,
                    " X25519MLKEM768 protects against future quantum computers: leave it out only if \
                     the server rejects it, as with OpenSSL before 3.5."
                ),
                $hybrid,
            ),
        }
    };
}

const NGINX: Groups = openssl!(
    "Allow the fast groups, for TLS 1.2 and 1.3. If clients still get the slow group, remove it: in \
     TLS 1.3 the client's order decides. For DHE, remove the DHE suites from ssl_ciphers.",
    "ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1:secp384r1;\nssl_prefer_server_ciphers on;",
    "ssl_ecdh_curve X25519:prime256v1:secp384r1;\nssl_prefer_server_ciphers on;"
);

const APACHE: Groups = openssl!(
    "Allow the fast groups. If clients still get the slow group, remove it: in TLS 1.3 the client's \
     order decides. For DHE, remove the DHE suites from SSLCipherSuite.",
    "SSLOpenSSLConfCmd Groups X25519MLKEM768:X25519:P-256:P-384\nSSLHonorCipherOrder on",
    "SSLOpenSSLConfCmd Groups X25519:P-256:P-384\nSSLHonorCipherOrder on"
);

const HAPROXY: Groups = openssl!(
    "Allow the fast groups in the global section, and remove `curves` and `ecdhe` from bind lines. \
     If clients still get the slow group, remove it.",
    "ssl-default-bind-curves X25519MLKEM768:X25519:P-256:P-384",
    "ssl-default-bind-curves X25519:P-256:P-384"
);

const NODE: Groups = openssl!(
    "Allow the fast groups in the options of tls.createServer, https.createServer or \
     http2.createSecureServer. If clients still get the slow group, remove it.",
    "ecdhCurve: 'X25519MLKEM768:X25519:P-256:P-384'",
    "ecdhCurve: 'X25519:P-256:P-384'"
);

const STUNNEL: Groups = openssl!(
    "Allow the fast groups in the service's section. If clients still get the slow group, remove it.",
    "curves = X25519MLKEM768:X25519:P-256:P-384",
    "curves = X25519:P-256:P-384"
);

const ENVOY: Advice = (
    "Allow the fast groups in the listener's common_tls_context. Keep X25519MLKEM768 first: it \
     protects against future quantum computers, and Envoy negotiates it only where it is listed.",
    "tls_params:\n  ecdh_curves: [X25519MLKEM768, X25519, P-256]",
);

const CADDY: Advice = (
    "Remove `curves` from the site's tls block: Caddy prefers X25519MLKEM768 (post-quantum) and \
     X25519 by default. Or list them first.",
    "tls {\n    curves x25519mlkem768 x25519 secp256r1 secp384r1\n}",
);

/// The list of groups for a server.
pub(crate) fn fast_first(target: Target) -> Advice {
    match target.server {
        Server::Nginx => NGINX.of(target.hybrid),
        Server::Apache => APACHE.of(target.hybrid),
        Server::HaProxy => HAPROXY.of(target.hybrid),
        Server::NodeJs => NODE.of(target.hybrid),
        Server::Stunnel => STUNNEL.of(target.hybrid),
        Server::Envoy => ENVOY,
        Server::Caddy => CADDY,
        Server::Domino => (
            "Domino 12 and later prefer X25519: remove the setting that disables it from \
             notes.ini, then restart the HTTP task.",
            "SSL_DISABLE_CURVE_X25519=0",
        ),
        Server::Unknown => (
            "Put X25519MLKEM768 (post-quantum) first in the server's list of groups (curves) where \
             its library has it, then X25519 and P-256, slower groups last, and let the server's \
             order decide. If the server cannot enforce its order, remove the slow groups.",
            "",
        ),
    }
}
