//! A handshake and a connection, for tests to vary.

use std::time::Duration;

use super::Handshake;
use tlsprof_common::{
    Carries, Closer, Connection, Opening, Outcome, Owner, Resumption, Role, Source, Steps,
    WaitReason, Whole,
};

/// A completed full server handshake with RSA-2048 and X25519.
pub fn handshake() -> Handshake {
    let micros = [118, 905, 0, 0, 96, 231].map(Duration::from_micros);
    Handshake {
        process: 4711,
        process_start: 1,
        comm: "nginx".into(),
        role: Role::Server,
        source: Source::Library,
        connection: None,
        named: false,
        outcome: Outcome::Completed,
        resumption: Resumption::None,
        version: "TLS1.3",
        cipher: "TLS_AES_256_GCM_SHA384",
        group: "x25519",
        signature: "rsa_2048",
        began: Duration::from_secs(100),
        cpu: micros.iter().sum(),
        duration: Duration::from_micros(4200),
        steps: Some(Steps {
            cpu: micros,
            key_derivation_observed: true,
        }),
        flights: None,
        finish_and_answer: Duration::ZERO,
        offloaded: false,
        unseen: Duration::ZERO,
        waits: WaitReason::ALL.map(waited),
        calls: 2,
        probe_hits: 20,
        client_authenticates: false,
        error_reason: None,
        hello: None,
        estimate: None,
    }
}

fn waited(reason: WaitReason) -> Duration {
    Duration::from_micros(match reason {
        WaitReason::RunQueue => 120,
        WaitReason::Network => 300,
        WaitReason::Other => 10,
        WaitReason::BetweenCalls => 2420,
        _ => 0,
    })
}

/// A connection that the server closed after five turns.
pub fn connection() -> Connection {
    Connection {
        id: 1,
        owner: None,
        remote: None,
        whole: Some(Whole {
            role: Role::Server,
            port: 443,
            duration: Duration::from_millis(38),
            turns: Some(5),
            turns_seen: 5,
            estimate: None,
        }),
        ended: Duration::from_secs(100),
        bytes_received: 900,
        bytes_sent: 12_000,
        carries: Carries::Plain,
        application_received: 0,
        application_sent: 0,
        cipher: "unknown",
        resumption: Resumption::Unknown,
        may_be_http2: Some(false),
        segment: 1448,
        round_trip: Some(Duration::from_millis(20)),
        closed_by: Closer::Local,
        reset: false,
        time_wait: true,
    }
}

/// The opening of a connection in that role.
pub fn opening(role: Role) -> Opening {
    Opening {
        id: 1,
        owner: Owner {
            process: 4711,
            comm: "nginx".into(),
        },
        role,
        port: 443,
        remote: None,
        accept_wait: (role == Role::Server).then_some(Duration::from_micros(85)),
        followed: true,
    }
}
