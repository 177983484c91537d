//! Handshakes wait for random numbers.

use super::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use crate::{Finding, Server};
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "random-wait",
    summary: "Handshakes wait for random numbers",
    risk: "Only a source that the kernel seeds is safe: never one that cannot block because it \
           has nothing to wait for.",
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
