//! What to change about certificate chains.

use super::{Advice, Server};

const CHANGE: &str = "Send the server's certificate and the intermediates that lead to a root which clients \
                      know: no root, no cross-signed copies, nothing that belongs to another chain. \
                      If it is still long, take one with ECDSA keys.";

pub(super) const fn long(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Send the server's certificate and the intermediates that lead to a root which clients \
             know: no root, no cross-signed copies, nothing that belongs to another chain. If it is \
             still long, use ECDSA keys, or let nginx 1.29.1 and later with OpenSSL 3.2 and later \
             compress it (`ssl_certificate_compression on`, off by default).",
            "# the server's certificate, then its intermediates, without the root\n\
             ssl_certificate /etc/nginx/site-chain.pem;",
        ),
        Server::Apache => (
            CHANGE,
            "# the server's certificate, then its intermediates, without the root\n\
             SSLCertificateFile /etc/apache2/site-chain.pem",
        ),
        Server::HaProxy => (
            CHANGE,
            "# key, certificate, then intermediates, without the root\n\
             bind :443 ssl crt /etc/haproxy/site.pem",
        ),
        Server::NodeJs => (CHANGE, "cert: serverCertificate + intermediates"),
        Server::Envoy => (
            CHANGE,
            "tls_certificates:\n\
             - certificate_chain: { filename: site-chain.pem }\n\
             \x20 private_key: { filename: site.key }",
        ),
        Server::Stunnel => (CHANGE, "cert = /etc/stunnel/site-chain.pem"),
        Server::Domino => (
            "Domino 12 and later: import the certificate into certstore.nsf again with the \
             intermediates that lead to a root which clients know, and nothing else.",
            "certstore.nsf, TLS Credentials, Import TLS Credentials",
        ),
        Server::Caddy | Server::Unknown => (CHANGE, ""),
    }
}
