//! What to change about processes, waits and failures.

use super::{Advice, Server};

pub(super) const fn process(server: Server) -> Advice {
    match server {
        Server::Apache => (
            "Let processes live on: 0 is no limit. Better, use the event MPM.",
            "MaxConnectionsPerChild 0",
        ),
        Server::Stunnel => (
            "Run stunnel as a daemon instead of from inetd or systemd's Accept=yes.",
            "accept = 443",
        ),
        _ => (
            "Serve many connections by each process: threads, an event loop or a pool of processes. \
             Under inetd or systemd, take a daemon of its own (Accept=no). Link the TLS library \
             in instead of starting a program for it, and let sessions be resumed.",
            "",
        ),
    }
}

pub(super) const fn lock(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "The shared session cache has one lock: do with tickets alone.",
            "ssl_session_cache off;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "Take a mutex that needs no file for the session cache, or do with tickets alone.",
            "Mutex pthread ssl-cache",
        ),
        Server::HaProxy => (
            "The session cache has one lock for all threads: do with tickets alone, or with fewer \
             threads.",
            "tune.ssl.cachesize 0",
        ),
        _ => (
            "Find the lock with `perf trace` or `perf lock` on the service. Usual ones: a session \
             cache with a single lock (tickets need none), and the memory allocator.",
            "",
        ),
    }
}

pub(super) const fn disk(server: Server) -> Advice {
    match server {
        Server::Apache => (
            "Keep the session cache in shared memory instead of a DBM file, and locks off the disk.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\n\
             Mutex pthread ssl-cache",
        ),
        Server::Domino => (
            "See that the server does not log each handshake or debug TLS, in notes.ini.",
            "SSL_LOG_SUCCESS=0",
        ),
        _ => (
            "Keep the session cache in memory, and do not read keys or certificates, write logs or \
             swap inside handshakes.",
            "",
        ),
    }
}

pub(super) const fn failures(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "First say whether these clients matter. If they do: allow what they offer, or give the \
             chain of certificates in full.",
            "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate /etc/nginx/site-fullchain.pem;",
        ),
        Server::Apache => (
            "First say whether these clients matter. If they do: allow what they offer, or give the \
             chain of certificates in full.",
            "SSLProtocol -all +TLSv1.2 +TLSv1.3\n\
             SSLCertificateFile /etc/apache2/site-fullchain.pem",
        ),
        _ => (
            "First say whether these clients matter. If they do: allow a version, suite or group \
             that they offer; for alerts about the certificate, give the chain in full and in time.",
            "",
        ),
    }
}

pub(super) const fn elsewhere(_server: Server) -> Advice {
    (
        "Leave TLS as it is. Look at the application, at the encryption of data and at socket \
         calls; `perf top` on the service shows where its CPU goes.",
        "",
    )
}
