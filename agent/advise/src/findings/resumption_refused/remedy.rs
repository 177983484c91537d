//! What to change so that sessions are taken up, where it is known why they are not.

use super::cause::Cause;
use crate::Server;
use crate::finding::Advice;

pub(crate) const fn since(cause: Cause, server: Server) -> Advice {
    match cause {
        Cause::Off => off(server),
        Cause::OffOrTimeOut => refused(server),
        Cause::NotShared => not_shared(server),
        Cause::Restarted => restarted(server),
        Cause::OtherService => other_service(server),
        Cause::TimeOut => time_out(server),
        Cause::TooSmall => too_small(server),
    }
}

pub(crate) const fn off(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Enable the session cache and tickets. Without a cache, the default, nginx issues \
             session IDs that it does not store.",
            "ssl_session_cache shared:TLS:10m;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "Enable the session cache and tickets.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\nSSLSessionTickets on",
        ),
        Server::HaProxy => (
            "Remove `no-tls-tickets` from bind lines, and make sure that the cache size is not 0.",
            "tune.ssl.cachesize 100000",
        ),
        Server::Envoy => (
            "Do not disable resumption.",
            "disable_stateless_session_resumption: false\n\
             disable_stateful_session_resumption: false",
        ),
        Server::Domino => (
            "Make sure that the session cache is not 0 in notes.ini, then restart the HTTP task.",
            "SSL_RESUMABLE_SESSIONS=5000",
        ),
        Server::Stunnel => ("Enable resumption.", "sessionResume = yes"),
        Server::NodeJs | Server::Caddy | Server::Unknown => {
            ("Enable the session cache and tickets.", "")
        }
    }
}

const fn not_shared(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Share the session cache among the workers: `builtin` is one cache per worker.",
            "ssl_session_cache shared:TLS:10m;",
        ),
        Server::Apache => (
            "Keep the session cache in shared memory.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)",
        ),
        Server::HaProxy => (
            "Run one process with threads (`nbthread`), which share the cache and ticket keys; \
             several processes need the same keys.",
            "",
        ),
        other => refused(other),
    }
}

const fn restarted(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Keep ticket keys in a file (`openssl rand 80`): nginx generates new ones on start and \
             reload. A shared cache survives a reload.",
            "ssl_session_ticket_key /etc/nginx/ticket.key;\nssl_session_cache shared:TLS:10m;",
        ),
        Server::Apache => (
            "Keep ticket keys in a file (`openssl rand 48`): Apache generates new ones on start and \
             reload.",
            "SSLSessionTicketKeyFile /etc/apache2/ticket.key",
        ),
        Server::HaProxy => (
            "Keep ticket keys in a file: HAProxy generates new ones on start and reload.",
            "bind :443 ssl crt /etc/haproxy/site.pem tls-ticket-keys /etc/haproxy/ticket.keys",
        ),
        other => refused(other),
    }
}

const fn other_service(server: Server) -> Advice {
    match server {
        Server::Nginx | Server::Apache | Server::HaProxy => restarted(server),
        other => refused(other),
    }
}

const fn time_out(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Raise the session timeout, so that sessions last until clients return; the default is \
             5 minutes.",
            "ssl_session_timeout 1h;",
        ),
        Server::Apache => (
            "Raise the session timeout, so that sessions last until clients return; the default is \
             5 minutes.",
            "SSLSessionCacheTimeout 3600",
        ),
        Server::HaProxy => (
            "Raise the session timeout, so that sessions last until clients return; the default is \
             5 minutes.",
            "tune.ssl.lifetime 3600",
        ),
        Server::NodeJs => (
            "Raise the session timeout, so that sessions last until clients return; the default is \
             5 minutes.",
            "sessionTimeout: 3600",
        ),
        Server::Envoy => (
            "Raise the session timeout, so that sessions last until clients return, in the \
             listener's DownstreamTlsContext.",
            "session_timeout: 3600s",
        ),
        Server::Stunnel => (
            "Raise the session timeout, so that sessions last until clients return; the default is \
             5 minutes.",
            "sessionCacheTimeout = 3600",
        ),
        Server::Domino | Server::Caddy | Server::Unknown => (
            "Raise the session timeout, so that sessions last until clients return.",
            "",
        ),
    }
}

const fn too_small(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Enlarge the session cache: 1 MB holds about 4,000 sessions. With tickets the server \
             does not store any.",
            "ssl_session_cache shared:TLS:50m;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "Enlarge the session cache. With tickets the server does not store any.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(8388608)\nSSLSessionTickets on",
        ),
        Server::HaProxy => (
            "Enlarge the session cache. With tickets the server does not store any.",
            "tune.ssl.cachesize 100000",
        ),
        Server::Stunnel => ("Enlarge the session cache.", "sessionCacheSize = 10000"),
        other => refused(other),
    }
}

pub(super) const fn refused(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Share the session cache among the workers, make it large enough (1 MB holds about \
             4,000 sessions) and keep tickets enabled. Several hosts need the same ticket keys.",
            "ssl_session_cache shared:TLS:10m;\n\
             ssl_session_timeout 1h;\n\
             ssl_session_tickets on;\n\
             # several hosts: ssl_session_ticket_key /etc/nginx/ticket.key;",
        ),
        Server::Apache => (
            "Keep the session cache in shared memory, with a timeout longer than a client's time \
             between connections, and enable tickets. Several hosts need the same ticket keys.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\n\
             SSLSessionCacheTimeout 3600\n\
             SSLSessionTickets on\n\
             # several hosts: SSLSessionTicketKeyFile /etc/apache2/ticket.key",
        ),
        Server::HaProxy => (
            "Raise the size and lifetime of the session cache, and remove `no-tls-tickets`. Several \
             hosts need the same ticket keys.",
            "tune.ssl.cachesize 100000\n\
             tune.ssl.lifetime 3600\n\
             # several hosts: bind ... tls-ticket-keys /etc/haproxy/ticket.keys",
        ),
        Server::NodeJs => (
            "Processes and hosts behind one address need the same ticket keys: only the workers of \
             one cluster share them automatically. Rotate them everywhere at once.",
            "server.setTicketKeys(sharedKeys)  // 48 bytes, the same everywhere",
        ),
        Server::Envoy => (
            "Give all hosts the same ticket keys, in place of `disable_stateless_session_resumption`: \
             Envoy accepts only one of the two.",
            "session_ticket_keys:\n\
             \x20 keys: [{ filename: /etc/envoy/ticket.key }]",
        ),
        Server::Domino => (
            "The cache holds 50 sessions by default. Enlarge it in notes.ini, then restart the HTTP \
             task.",
            "SSL_RESUMABLE_SESSIONS=5000",
        ),
        Server::Stunnel => (
            "Raise the size and timeout of the session cache, and enable resumption.",
            "sessionResume = yes\nsessionCacheSize = 10000\nsessionCacheTimeout = 3600",
        ),
        Server::Caddy | Server::Unknown => (
            "Enable the session cache and tickets; share cache and ticket keys among processes and \
             hosts; raise the session timeout, so that sessions last until clients return.",
            "",
        ),
    }
}
