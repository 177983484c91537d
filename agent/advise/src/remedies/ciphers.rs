//! What to change about the encryption of data.

use super::{Advice, Server};

pub(super) const fn costly(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Take suites with AES-GCM first, and let the server's order decide, but for clients that \
             name ChaCha20 first.",
            "ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;\n\
             ssl_prefer_server_ciphers on;\n\
             ssl_conf_command Options PrioritizeChaCha;",
        ),
        Server::Apache => (
            "Take suites with AES-GCM first, and let the server's order decide, but for clients that \
             name ChaCha20 first.",
            "SSLCipherSuite ECDHE+AESGCM:ECDHE+CHACHA20\n\
             SSLHonorCipherOrder on\n\
             SSLOpenSSLConfCmd Options PrioritizeChaCha",
        ),
        Server::HaProxy => (
            "Take suites with AES-GCM first, in the global section and on bind lines with lists of \
             their own; TLS 1.3 has ssl-default-bind-ciphersuites. Remove `prefer-client-ciphers`: \
             clients that name ChaCha20 first get it anyway.",
            "ssl-default-bind-ciphers ECDHE+AESGCM:ECDHE+CHACHA20",
        ),
        Server::NodeJs => (
            "Take suites with AES-GCM first in the options of tls.createServer, https.createServer \
             or http2.createSecureServer. A list without suites of TLS 1.3 would switch that off.",
            "ciphers: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:' +\n\
             \x20 'TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20',\n\
             honorCipherOrder: true",
        ),
        Server::Envoy => (
            "Take suites with AES-GCM in the listener's common_tls_context. In brackets, the client \
             chooses. The suites of TLS 1.3 are not configured.",
            "tls_params:\n\
             \x20 cipher_suites:\n\
             \x20 - \"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]\"\n\
             \x20 - \"[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]\"",
        ),
        Server::Domino => (
            "From 10.0.1 on, leave the suites with AES-GCM alone in the Internet Site document, or in \
             the Server document (Ports, Internet Ports); before that, name them in notes.ini. Then \
             restart the HTTP task.",
            "SSLCipherSpec=C02BC02CC02FC030",
        ),
        Server::Stunnel => (
            "Take suites with AES-GCM first, in the service's section.",
            "ciphers = ECDHE+AESGCM:ECDHE+CHACHA20\n\
             options = CIPHER_SERVER_PREFERENCE\n\
             options = PRIORITIZE_CHACHA",
        ),
        Server::Caddy | Server::Unknown => (
            "Put suites with AES-GCM first in the server's list, and let its order decide; leave CBC \
             and 3DES out.",
            "",
        ),
    }
}
