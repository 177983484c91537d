//! What to change about full handshakes.

use super::{Advice, Server};

pub(super) const fn costly_certificate(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Add a certificate with an ECDSA key on P-256 beside the RSA one; clients get the one \
             that they accept.",
            "ssl_certificate     /etc/nginx/site-ecdsa.pem;\n\
             ssl_certificate_key /etc/nginx/site-ecdsa.key;",
        ),
        Server::Apache => (
            "Add a certificate with an ECDSA key on P-256 beside the RSA one; clients get the one \
             that they accept.",
            "SSLCertificateFile    /etc/apache2/site-ecdsa.pem\n\
             SSLCertificateKeyFile /etc/apache2/site-ecdsa.key",
        ),
        Server::HaProxy => (
            "Put a certificate with an ECDSA key beside the RSA one, in files that differ in their \
             ending; `crt` then names the common part.",
            "# /etc/haproxy/site.pem.rsa and /etc/haproxy/site.pem.ecdsa\n\
             bind :443 ssl crt /etc/haproxy/site.pem",
        ),
        Server::NodeJs => (
            "Give two certificates with their keys in the server's options.",
            "cert: [ecdsaCert, rsaCert], key: [ecdsaKey, rsaKey]",
        ),
        Server::Envoy => (
            "Give a second entry with an ECDSA key in the listener's common_tls_context.",
            "tls_certificates:\n\
             - certificate_chain: { filename: site-ecdsa.pem }\n\
             \x20 private_key: { filename: site-ecdsa.key }\n\
             - certificate_chain: { filename: site-rsa.pem }\n\
             \x20 private_key: { filename: site-rsa.key }",
        ),
        Server::Domino => (
            "Domino 12 and later: create TLS credentials with an ECDSA key in certstore.nsf for the \
             same host names, and keep the RSA ones.",
            "certstore.nsf, TLS Credentials, Key type: ECDSA, Curve: NIST P-256",
        ),
        Server::Stunnel => (
            "stunnel has one certificate for a service: take one with an ECDSA key if all clients \
             accept it.",
            "cert = /etc/stunnel/site-ecdsa.pem",
        ),
        Server::Caddy | Server::Unknown => (
            "Get a certificate with an ECDSA key on P-256 and configure it beside the RSA one, or in \
             its place if the server can have one only.",
            "",
        ),
    }
}

pub(super) const fn verification(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "With client certificates: let sessions be resumed, which are not verified again, and \
             keep the chain of issuers short.",
            "ssl_session_cache shared:TLS:10m;\nssl_session_timeout 1h;",
        ),
        Server::Apache => (
            "Without client certificates: append the intermediate certificates to the file, so that \
             OpenSSL does not search them in each handshake. With: let sessions be resumed.",
            "# the server's certificate, then its intermediates\n\
             SSLCertificateFile /etc/apache2/site-fullchain.pem",
        ),
        Server::HaProxy => (
            "With client certificates: let sessions be resumed, which are not verified again. \
             Without: put the intermediate certificates into the crt file.",
            "tune.ssl.cachesize 100000\ntune.ssl.lifetime 3600",
        ),
        Server::NodeJs => (
            "Put the intermediate certificates behind the server's in `cert`. With client \
             certificates: let sessions be resumed, with the same ticket keys in all workers.",
            "cert: serverCertificate + intermediates, ticketKeys: sharedKeys",
        ),
        Server::Envoy | Server::Domino | Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Configure the server's chain in full, so that it need not be built. Where clients have \
             certificates, let sessions be resumed, which are not verified again, and keep the \
             chain of issuers short.",
            "",
        ),
    }
}
