//! Handshakes wait for random numbers.

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use crate::{Finding, Server};
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "random-wait",
    page: include_str!("../../../../docs/findings/random-wait.md"),
    summary: "Handshakes wait for random numbers",
    risk: "Use only a source that the kernel seeds. A source that never blocks because it collects \
           no entropy is not safe.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

fn find(subject: &Subject<'_>) -> Option<Finding> {
    wait(subject, WaitReason::Random, &KIND)
}

/// Random numbers come late.
fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Apache => (
            "Seed from a source that does not block after boot.",
            "SSLRandomSeed startup file:/dev/urandom 512\nSSLRandomSeed connect builtin",
        ),
        Server::Stunnel => (
            "Let OpenSSL seed itself from the kernel: remove EGD, RNDfile and any engine for random \
             numbers.",
            "",
        ),
        Server::Nginx => (
            "Let OpenSSL seed itself from the kernel: remove ssl_engine, and the random and seed \
             settings in openssl.cnf. Before Linux 5.6, also give the kernel an entropy source: \
             virtio-rng in a virtual machine, otherwise rngd or haveged.",
            "",
        ),
        Server::HaProxy => (
            "Let OpenSSL seed itself from the kernel: remove any ssl-engine with RAND, and the \
             random and seed settings in openssl.cnf. Before Linux 5.6, also give the kernel an \
             entropy source: virtio-rng in a virtual machine, otherwise rngd or haveged.",
            "",
        ),
        Server::NodeJs => (
            "Let OpenSSL seed itself from the kernel: remove the random and seed settings in the \
             file of --openssl-config. Before Linux 5.6, also give the kernel an entropy source: \
             virtio-rng in a virtual machine, otherwise rngd or haveged.",
            "",
        ),
        Server::Envoy | Server::Domino => (
            "Give the kernel an entropy source: virtio-rng in a virtual machine, otherwise rngd or \
             haveged; or use Linux 5.6 or later. /dev/random must be the kernel's, also in \
             containers.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Let the TLS library seed itself from the kernel (getrandom), not from /dev/random, a \
             FIFO or a daemon: check random and seed in openssl.cnf, and set \
             securerandom.source=file:/dev/urandom in java.security. Before Linux 5.6, also give \
             the kernel an entropy source: virtio-rng in a virtual machine, otherwise rngd or \
             haveged.",
            "",
        ),
    }
}
