//! The server ends connections after one turn.

use crate::endings::{closed_by_server, of_bound};
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Finding, Prediction, Server, Severity};
use tlsprof_common::Role;

pub(crate) static KIND: Kind = Kind {
    label: "keep-alive-off",
    page: include_str!("../../../../docs/findings/keep-alive-off.md"),
    summary: "Connections carry one request each",
    risk: "Each idle connection uses memory, and in some servers a thread or process: set an idle \
           timeout.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Connections of one request each, which clients may have asked for.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let ended = closed_by_server(subject).filter(|ended| ended.turns == 1)?;
    let mut evidence = ended.evidence;
    let caveat = "clients that request the close (Connection: close, HTTP/1.0) still get it, and \
                  others may not send more requests"
        .to_owned();
    let title = if subject.account.turns_are_requests(Role::Server) {
        "Connections carry one request each"
    } else {
        "Connections carry one turn each (may carry several requests)"
    };
    let prediction = Prediction::AtMost(ended.saving, caveat);
    let severity = of_bound(&prediction);
    let kind = (&KIND, Role::Server);
    if let Some(asked) = subject.setting.client_closes {
        let first = format!("The client requested this: {asked}.");
        evidence.statements.insert(0, first);
    }
    let mut finding = subject.finding(kind, severity, title.to_owned(), evidence, prediction);
    if subject.setting.client_closes.is_some() {
        finding.severity = Severity::Info;
    }
    Some(finding)
}

pub(super) fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Keep connections open between requests; a timeout of 0 disables keep-alive.",
            "keepalive_timeout 75s;\nkeepalive_requests 1000;",
        ),
        Server::Apache => (
            "Keep connections open between requests.",
            "KeepAlive On\nKeepAliveTimeout 5\nMaxKeepAliveRequests 1000",
        ),
        Server::HaProxy => (
            "Remove `option httpclose`, and keep connections open between requests.",
            "option http-keep-alive\ntimeout http-keep-alive 10s",
        ),
        Server::NodeJs => (
            "Do not send `Connection: close`, and keep connections open.",
            "server.keepAliveTimeout = 5000\nserver.maxRequestsPerSocket = 0",
        ),
        Server::Envoy => (
            "Remove `max_requests_per_connection: 1` from common_http_protocol_options.",
            "idle_timeout: 60s",
        ),
        Server::Domino => (
            "Allow persistent connections in the Server document, then restart the HTTP task.",
            "Internet Protocols, HTTP,\n\
             Maximum requests over a single connection: 100",
        ),
        Server::Stunnel => (
            "stunnel forwards connections: enable keep-alive in the server behind it.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Enable HTTP keep-alive in the server and in any proxy in front of it; make sure that \
             clients do not request the close.",
            "",
        ),
    }
}
