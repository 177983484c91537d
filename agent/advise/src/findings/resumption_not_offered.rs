//! Clients, or the service as a client, bring no session.

use super::resumption_refused::off;
use crate::finding::{Advice, Kind, Target};
use crate::resumed::{Era, all_full, attempts, full, predict};
use crate::subject::Subject;
use crate::sum::LOWER_BOUND;
use crate::{Evidence, Finding, Observed, Prediction, Server, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent};
use tlsprof_evidence::hello::Attempt;

pub(crate) static KIND: Kind = Kind {
    label: "resumption-not-offered",
    page: include_str!("../../../../docs/findings/resumption-not-offered.md"),
    summary: "Clients never offer a session for resumption",
    risk: "Resumption lets the server (and, with TLS 1.2 tickets, an observer) link a client's \
           connections.",
    rules: &[(Role::Server, by_clients), (Role::Client, by_service)],
    remedy,
    calibration: None,
};

/// What is said in place of it where the saving is an upper bound otherwise.
const LEFT_OUT: &str = " Kinds of handshakes whose cost is unknown are left out.";

/// Share of hellos without a session from which nobody seems to ask for resumption.
const NOBODY_OFFERS: f64 = 0.9;

/// Clients that never bring a session.
fn by_clients(subject: &Subject<'_>) -> Option<Finding> {
    not_offered(subject, Role::Server)
}

/// The service, as a client, never brings a session.
fn by_service(subject: &Subject<'_>) -> Option<Finding> {
    not_offered(subject, Role::Client)
}

fn not_offered(subject: &Subject<'_>, role: Role) -> Option<Finding> {
    let account = subject.role(role)?;
    let number: u64 = attempts(account, Attempt::NotOffered)
        .map(|(_, number)| number)
        .sum();
    let share = number as f64 / account.hellos.hellos.max(1) as f64;
    if !subject.enough(number) || share < NOBODY_OFFERS {
        return None;
    }
    let full = Era::ALL.map(|era| subject.handshakes(full(role, era)).count);
    let bound = all_full(subject, role).cpu;
    let caveat = match role {
        Role::Server => "new clients have no session to offer",
        Role::Client => "a server has issued no session before the first connection",
    };
    let prediction = match predict(subject, role, full, bound)? {
        Prediction::Saving(mut saving) => {
            // The bound is on those that are known.
            saving.method = saving.method.replace(LOWER_BOUND, LEFT_OUT);
            Prediction::AtMost(saving, caveat.to_owned())
        }
        other => other,
    };
    let (who, title) = match role {
        Role::Server => ("clients", "Clients never offer a session for resumption"),
        Role::Client => (
            "of its own ClientHellos",
            "The service never offers a session when it connects to other servers",
        ),
    };
    let statements = vec![format!(
        "{} of {} {who} ({}) offered no session. Either the server issues none, or the clients \
         connect once or discard it.",
        count(number),
        count(account.hellos.hellos),
        percent(share)
    )];
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, account.hellos.hellos),
        statements,
        figures: vec![
            ("not_offered_handshakes", number as f64),
            ("not_offered_ratio", share),
        ],
    };
    let kind = (&KIND, role);
    Some(subject.finding(kind, Severity::Low, title.to_owned(), evidence, prediction))
}

fn remedy(target: Target) -> Advice {
    match target.role {
        Role::Server => for_clients(target.server),
        Role::Client => as_client(target.server),
    }
}

const fn for_clients(server: Server) -> Advice {
    let change = match server {
        Server::Nginx | Server::Apache => {
            "Make sure that the server issues sessions. If it does, check the clients: load \
             generators, scripts and pools without a session cache never resume."
        }
        Server::HaProxy => {
            "Remove `no-tls-tickets` from bind lines, and make sure that the cache size is not 0. \
             Then check the clients."
        }
        Server::Envoy => "Do not disable resumption. Then check the clients.",
        Server::Domino => {
            "Make sure that the session cache is not 0 in notes.ini. Then check the clients."
        }
        Server::Stunnel => "Make sure that resumption is enabled. Then check the clients.",
        Server::NodeJs | Server::Caddy | Server::Unknown => {
            "Make sure that the server issues sessions: tickets or a session cache. If it does, \
             check the clients: load generators, scripts and pools without a session cache never \
             resume."
        }
    };
    (change, off(server).1)
}

const fn as_client(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Let nginx keep upstream sessions or, better, upstream connections.",
            "proxy_ssl_session_reuse on;",
        ),
        Server::Apache => (
            "mod_proxy keeps no sessions: keep its connections open instead.",
            "ProxyPass \"/\" \"https://backend.example/\" enablereuse=on",
        ),
        Server::HaProxy => ("Remove `no-ssl-reuse` from the server line.", ""),
        Server::NodeJs => (
            "Make all requests with one agent that keeps connections and sessions.",
            "new https.Agent({ keepAlive: true, maxCachedSessions: 100 })",
        ),
        Server::Envoy => (
            "Let the cluster's UpstreamTlsContext keep sessions.",
            "max_session_keys: 10",
        ),
        Server::Stunnel => (
            "Make sure that resumption is enabled in the client's section.",
            "sessionResume = yes",
        ),
        Server::Domino | Server::Caddy | Server::Unknown => (
            "Keep the sessions of upstream servers or, better, the connections: with most TLS \
             libraries the application must set the session before it connects.",
            "",
        ),
    }
}
