//! What to change about sources of random numbers, and other pipes inside handshakes.

use super::{Advice, Server};

/// Random numbers come late.
pub(super) const fn blocking(server: Server) -> Advice {
    match server {
        Server::Apache => (
            "Seed from a source that does not block once the kernel is up.",
            "SSLRandomSeed startup file:/dev/urandom 512\nSSLRandomSeed connect builtin",
        ),
        Server::Stunnel => (
            "Let OpenSSL seed itself from the kernel: remove EGD, RNDfile and an engine for random \
             numbers.",
            "",
        ),
        Server::Nginx => (
            "Let OpenSSL seed itself from the kernel: remove an ssl_engine, and what openssl.cnf \
             names under random or seed. Before Linux 5.6 also give the kernel a source: virtio-rng \
             in a virtual machine, else rngd or haveged.",
            "",
        ),
        Server::HaProxy => (
            "Let OpenSSL seed itself from the kernel: remove an ssl-engine with RAND, and what \
             openssl.cnf names under random or seed. Before Linux 5.6 also give the kernel a source: \
             virtio-rng in a virtual machine, else rngd or haveged.",
            "",
        ),
        Server::NodeJs => (
            "Let OpenSSL seed itself from the kernel: remove what the file of --openssl-config names \
             under random or seed. Before Linux 5.6 also give the kernel a source: virtio-rng in a \
             virtual machine, else rngd or haveged.",
            "",
        ),
        Server::Envoy | Server::Domino => (
            "Give the kernel a source of random numbers: virtio-rng in a virtual machine, else rngd \
             or haveged; or take Linux 5.6 or later. /dev/random must be the kernel's, in a container \
             too.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Let the TLS library seed itself from the kernel (getrandom), not from /dev/random, a \
             FIFO or a daemon: in openssl.cnf what is named under random or seed, in java.security \
             securerandom.source=file:/dev/urandom. Before Linux 5.6 also give the kernel a source: \
             virtio-rng in a virtual machine, else rngd or haveged.",
            "",
        ),
    }
}

/// What comes or goes through the pipe is not known.
pub(super) const fn pipe(_server: Server) -> Advice {
    (
        "See what the pipe is, and who is at its other end: `ls -l /proc/PID/fd`, `lsof -E`. A random \
         source: let the TLS library seed itself from the kernel instead, see random-wait. A log: \
         write it to a file, or log less in handshakes. A daemon for keys or sessions: find out why \
         it is late.",
        "",
    )
}
