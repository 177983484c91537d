//! The server ends connections after a fixed number of turns.

use super::keep_alive_off;
use crate::endings::closed_by_server;
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Finding, Prediction, Server, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::count;

pub(crate) static KIND: Kind = Kind {
    label: "connections-closed-after-n-turns",
    page: include_str!("../../../../docs/findings/connections-closed-after-n-turns.md"),
    summary: "The server closes connections after exactly N requests",
    risk: keep_alive_off::KIND.risk,
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

fn find(subject: &Subject<'_>) -> Option<Finding> {
    let ended = closed_by_server(subject).filter(|ended| ended.turns > 1)?;
    let title = format!(
        "The server closes connections after exactly {} {}",
        count(ended.turns.into()),
        if subject.account.turns_are_requests(Role::Server) {
            "requests"
        } else {
            "turns (may carry several requests)"
        }
    );
    let prediction = Prediction::Saving(ended.saving);
    Some(subject.finding(
        (&KIND, Role::Server),
        Severity::Medium,
        title,
        ended.evidence,
        prediction,
    ))
}

pub(super) fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Raise the number of requests per connection.",
            "keepalive_requests 1000;",
        ),
        Server::Apache => (
            "Raise the number of requests per connection.",
            "MaxKeepAliveRequests 1000",
        ),
        Server::HaProxy => (
            "HAProxy has no such limit for HTTP/1: it forwards the close of the server behind it. \
             Raise the limit there, or let HAProxy keep the client's connection open.",
            "option http-keep-alive",
        ),
        Server::NodeJs => ("Remove the limit.", "server.maxRequestsPerSocket = 0"),
        Server::Envoy => (
            "Raise or remove the limit in the connection manager's common_http_protocol_options.",
            "max_requests_per_connection: 1000",
        ),
        Server::Domino => (
            "Raise the limit in the Server document, then restart the HTTP task. The default is 5.",
            "Internet Protocols, HTTP,\n\
             Maximum requests over a single connection: 100",
        ),
        Server::Stunnel => (
            "stunnel forwards connections: raise the limit in the server behind it.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Raise the number of requests per persistent connection to 100 or more.",
            "",
        ),
    }
}
