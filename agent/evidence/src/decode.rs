//! Records of the kernel side in the words of the design. Pure.

mod fields;
mod handshake;

use std::time::Duration;

use fields::{role, text};
use handshake::handshake;

use super::hello::{Direction, Opening, Upgrade};
use super::{Chunk, Evidence};
use tlsprof_common::contract::{
    TLSPROF_CLOSER_REMOTE, TLSPROF_CLOSER_TIMEOUT, TLSPROF_DIRECTION_IN,
    TLSPROF_EVENT_CONNECTION_OPENED, TLSPROF_EVENT_EXEC, TLSPROF_EVENT_EXIT, TLSPROF_EVENT_FORK,
    TLSPROF_TLS_ESTABLISHED, TLSPROF_TLS_HANDSHAKE, TLSPROF_UPGRADE_FTP, TLSPROF_UPGRADE_IMAP,
    TLSPROF_UPGRADE_LDAP, TLSPROF_UPGRADE_MYSQL, TLSPROF_UPGRADE_POP3, TLSPROF_UPGRADE_POSTGRESQL,
    TLSPROF_UPGRADE_SMTP, tlsprof_connection_event, tlsprof_process_event,
};
use tlsprof_common::{
    Carries, Closer, Connection, LifetimeCpu, Owner, ProcessEvent, Remote, Resumption, Role, Whole,
};
use tlsprof_kernel::record::{HelloEvent, Record};

/// Decodes one record; None for a process event of unknown kind, and for an
/// opening without an owner.
pub fn decode(record: &Record<'_>) -> Option<Evidence> {
    match record {
        Record::Handshake(event) => Some(Evidence::Handshake(Box::new(handshake(event)))),
        Record::Process(event) => process(event).map(Evidence::Process),
        Record::Connection(event) => connection(event),
        Record::Hello(event) => Some(Evidence::Hello(Box::new(chunk(event)))),
    }
}

fn chunk(event: &HelloEvent<'_>) -> Chunk {
    let incoming = u32::from(event.head.direction) == TLSPROF_DIRECTION_IN;
    let by_client = incoming == (role(event.head.role) == Role::Server);
    Chunk {
        process: event.head.header.pid,
        connection: event.head.connection,
        direction: if by_client {
            Direction::FromClient
        } else {
            Direction::FromServer
        },
        opening: Opening {
            proxy_protocol: event.head.proxied != 0,
            upgrade: upgrade(event.head.upgrade),
        },
        offset: event.head.offset,
        bytes: event.bytes.to_vec(),
    }
}

fn upgrade(upgrade: u8) -> Option<Upgrade> {
    match u32::from(upgrade) {
        TLSPROF_UPGRADE_SMTP => Some(Upgrade::Smtp),
        TLSPROF_UPGRADE_FTP => Some(Upgrade::Ftp),
        TLSPROF_UPGRADE_IMAP => Some(Upgrade::Imap),
        TLSPROF_UPGRADE_POP3 => Some(Upgrade::Pop3),
        TLSPROF_UPGRADE_LDAP => Some(Upgrade::Ldap),
        TLSPROF_UPGRADE_POSTGRESQL => Some(Upgrade::Postgresql),
        TLSPROF_UPGRADE_MYSQL => Some(Upgrade::Mysql),
        _ => None,
    }
}

/// The opening that the record of an end tells as well, with its time.
pub fn untold_opening(record: &Record<'_>) -> Option<(Evidence, u64)> {
    match record {
        Record::Connection(event) if event.untold != 0 => {
            let at = event.header.time.saturating_sub(event.duration);
            Some((opening(event, false)?, at))
        }
        _ => None,
    }
}

/// `followed`: socket calls were seen when it was opened. None without an owner.
fn opening(event: &tlsprof_connection_event, followed: bool) -> Option<Evidence> {
    Some(Evidence::Opened(tlsprof_common::Opening {
        id: event.connection,
        owner: owner(event)?,
        role: role(event.role),
        port: event.port,
        remote: remote(event),
        accept_wait: (event.accept_wait != 0).then(|| Duration::from_nanos(event.accept_wait)),
        followed,
    }))
}

fn owner(event: &tlsprof_connection_event) -> Option<Owner> {
    (event.header.pid != 0).then(|| Owner {
        process: event.header.pid,
        comm: text(&event.comm),
    })
}

fn remote(event: &tlsprof_connection_event) -> Option<Remote> {
    (event.remote != 0).then_some(Remote {
        endpoint: event.remote,
        local_ports: event.local_ports,
    })
}

fn connection(event: &tlsprof_connection_event) -> Option<Evidence> {
    if event.header.kind == TLSPROF_EVENT_CONNECTION_OPENED {
        return opening(event, event.followed != 0);
    }
    Some(Evidence::Closed(Box::new(Connection {
        id: event.connection,
        owner: owner(event),
        remote: remote(event),
        whole: (event.seen_open != 0).then(|| Whole {
            role: role(event.role),
            port: event.port,
            duration: Duration::from_nanos(event.duration),
            turns: (event.followed != 0).then_some(event.turns),
            turns_seen: event.turns,
            estimate: None,
        }),
        ended: Duration::from_nanos(event.header.time),
        bytes_received: event.bytes_received,
        bytes_sent: event.bytes_sent,
        carries: match u32::from(event.tls) {
            TLSPROF_TLS_ESTABLISHED => Carries::Tls,
            TLSPROF_TLS_HANDSHAKE => Carries::Handshake,
            _ => Carries::Plain,
        },
        application_received: event.application_received,
        application_sent: event.application_sent,
        cipher: "unknown",
        resumption: Resumption::Unknown,
        may_be_http2: None,
        segment: event.segment,
        round_trip: (event.round_trip != 0).then(|| Duration::from_nanos(event.round_trip)),
        closed_by: match u32::from(event.closed_by) {
            TLSPROF_CLOSER_REMOTE => Closer::Remote,
            TLSPROF_CLOSER_TIMEOUT => Closer::Timeout,
            _ => Closer::Local,
        },
        reset: event.reset != 0,
        time_wait: event.time_wait != 0,
    })))
}

fn process(event: &tlsprof_process_event) -> Option<ProcessEvent> {
    let process = event.header.pid;
    match event.header.kind {
        TLSPROF_EVENT_FORK => Some(ProcessEvent::Fork {
            parent: event.parent_pid,
            child: process,
            comm: text(&event.comm),
        }),
        TLSPROF_EVENT_EXEC => Some(ProcessEvent::Exec {
            process,
            path: text(&event.path),
            comm: text(&event.comm),
            cpu: lifetime_cpu(event),
        }),
        TLSPROF_EVENT_EXIT => Some(ProcessEvent::Exit {
            process,
            cpu: lifetime_cpu(event),
        }),
        _ => None,
    }
}

const fn lifetime_cpu(event: &tlsprof_process_event) -> LifetimeCpu {
    LifetimeCpu {
        total: Duration::from_nanos(event.cpu),
        user_ticks: Duration::from_nanos(event.user),
        system_ticks: Duration::from_nanos(event.system),
    }
}

#[cfg(test)]
mod tests;
