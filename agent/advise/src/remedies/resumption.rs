//! What to change so that sessions are resumed.

use super::{Advice, Server};

pub(super) const fn refused(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Share the session cache among the workers, make it large enough (1 MB holds about 4,000 \
             sessions) and keep tickets on. Several hosts need the same ticket keys.",
            "ssl_session_cache shared:TLS:10m;\n\
             ssl_session_timeout 1h;\n\
             ssl_session_tickets on;\n\
             # several hosts: ssl_session_ticket_key /etc/nginx/ticket.key;",
        ),
        Server::Apache => (
            "Keep the session cache in shared memory, longer than clients stay away, and tickets \
             on. Several hosts need the same ticket keys.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\n\
             SSLSessionCacheTimeout 3600\n\
             SSLSessionTickets on\n\
             # several hosts: SSLSessionTicketKeyFile /etc/apache2/ticket.key",
        ),
        Server::HaProxy => (
            "Make the session cache larger and longer, and remove `no-tls-tickets`. Several hosts \
             need the same ticket keys.",
            "tune.ssl.cachesize 100000\n\
             tune.ssl.lifetime 3600\n\
             # several hosts: bind ... tls-ticket-keys /etc/haproxy/ticket.keys",
        ),
        Server::NodeJs => (
            "Processes and hosts that share an address need the same ticket keys: only the workers \
             of one cluster get them by themselves. Change them in all at once.",
            "server.setTicketKeys(sharedKeys)  // 48 bytes, the same everywhere",
        ),
        Server::Envoy => (
            "Give all hosts the same ticket keys, and do not disable resumption.",
            "session_ticket_keys:\n\
             \x20 keys: [{ filename: /etc/envoy/ticket.key }]\n\
             disable_stateless_session_resumption: false",
        ),
        Server::Domino => (
            "The cache holds 50 sessions by default. Enlarge it in notes.ini, then restart the HTTP \
             task.",
            "SSL_RESUMABLE_SESSIONS=5000",
        ),
        Server::Stunnel => (
            "Make the session cache larger and longer, and resumption on.",
            "sessionResume = yes\nsessionCacheSize = 10000\nsessionCacheTimeout = 3600",
        ),
        Server::Caddy | Server::Unknown => (
            "Switch on the session cache and tickets; share cache and ticket keys among processes \
             and hosts; let sessions live as long as clients stay away.",
            "",
        ),
    }
}

pub(super) const fn not_offered(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "See that the server gives sessions. If it does, look at the clients: load generators, \
             scripts and pools without a session cache never resume.",
            "ssl_session_cache shared:TLS:10m;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "See that the server gives sessions. If it does, look at the clients: load generators, \
             scripts and pools without a session cache never resume.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\nSSLSessionTickets on",
        ),
        Server::HaProxy => (
            "Remove `no-tls-tickets` from bind lines, and see that the cache is not 0. Then look at \
             the clients.",
            "tune.ssl.cachesize 100000",
        ),
        Server::Envoy => (
            "Do not disable resumption. Then look at the clients.",
            "disable_stateless_session_resumption: false",
        ),
        Server::Domino => (
            "See that the session cache is not 0 in notes.ini. Then look at the clients.",
            "SSL_RESUMABLE_SESSIONS=5000",
        ),
        Server::Stunnel => (
            "See that resumption is on. Then look at the clients.",
            "sessionResume = yes",
        ),
        Server::NodeJs | Server::Caddy | Server::Unknown => (
            "See that the server gives sessions: tickets or a session cache. If it does, look at \
             the clients: load generators, scripts and pools without a session cache never resume.",
            "",
        ),
    }
}

pub(super) const fn as_client(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Let nginx keep sessions of upstream servers, and better still their connections.",
            "proxy_ssl_session_reuse on;",
        ),
        Server::Apache => (
            "mod_proxy keeps no sessions: keep its connections instead.",
            "ProxyPass \"/\" \"https://backend.example/\" enablereuse=on",
        ),
        Server::HaProxy => ("Remove `no-ssl-reuse` from the server line.", ""),
        Server::NodeJs => (
            "Make all requests with one agent, which keeps connections and sessions.",
            "new https.Agent({ keepAlive: true, maxCachedSessions: 100 })",
        ),
        Server::Envoy => (
            "Let the cluster's UpstreamTlsContext keep sessions.",
            "max_session_keys: 10",
        ),
        Server::Stunnel => (
            "See that resumption is on in the client's section.",
            "sessionResume = yes",
        ),
        Server::Domino | Server::Caddy | Server::Unknown => (
            "Keep sessions of the servers that the service connects to, and better still the \
             connections: most TLS libraries do so only for who sets a session before connecting.",
            "",
        ),
    }
}
