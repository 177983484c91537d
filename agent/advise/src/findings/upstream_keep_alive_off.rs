//! The service opens a connection for each request to another server.

use crate::endings::{evidence, of_bound, saving, spike};
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Finding, Prediction, Server};
use tlsprof_common::Role;

pub(crate) static KIND: Kind = Kind {
    label: "upstream-keep-alive-off",
    page: include_str!("../../../../docs/findings/upstream-keep-alive-off.md"),
    summary: "The service opens a connection to an upstream server for each request",
    risk: "The other server must allow as many idle connections, and its idle timeout must be \
           longer than the service's. Otherwise it closes connections just as requests arrive.",
    rules: &[(Role::Client, find)],
    remedy,
    calibration: None,
};

/// Toward other servers the service decides itself: nearly all must have ended alike.
const ALIKE_UPSTREAM: f64 = 0.9;

/// Connections to other servers that carry one request.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let account = subject.connections(Role::Client)?;
    let (spike, _) = spike(account, account.closed.values())?;
    let alike = spike.turns == 1 && spike.share >= ALIKE_UPSTREAM;
    if !alike || !subject.enough(spike.connections) {
        return None;
    }
    let saving = saving(subject, Role::Client, &spike)?;
    if !subject.worth(saving.cpu.likely) {
        return None;
    }
    let caveat = "connections to many servers are harder to share".to_owned();
    let evidence = evidence(subject, (account, Role::Client), &spike, "one side");
    let title = "The service opens a connection to another server for each request".to_owned();
    let prediction = Prediction::AtMost(saving, caveat);
    let severity = of_bound(&prediction);
    let kind = (&KIND, Role::Client);
    Some(subject.finding(kind, severity, title, evidence, prediction))
}

pub(super) fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Keep connections to the upstream open: a pool in the upstream block, HTTP/1.1, and no \
             Connection header. nginx 1.29.7 and later do so by default, but only with an upstream \
             block, not for an address in proxy_pass: remove `keepalive 0`, \
             `proxy_http_version 1.0` and `proxy_set_header Connection close`.",
            "upstream backend { server 10.0.0.2:443; keepalive 32; }\n\
             proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\";",
        ),
        Server::Apache => (
            "Let mod_proxy reuse connections, and do not set proxy-nokeepalive.",
            "ProxyPass \"/\" \"https://backend.example/\" enablereuse=on",
        ),
        Server::HaProxy => (
            "Remove `option http-server-close`, and let requests share connections to servers.",
            "option http-keep-alive\nhttp-reuse safe",
        ),
        Server::NodeJs => (
            "Make all requests with one agent that keeps connections open.",
            "new https.Agent({ keepAlive: true })",
        ),
        Server::Envoy => (
            "Remove `max_requests_per_connection: 1` from the cluster's HTTP options.",
            "",
        ),
        Server::Domino | Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Use a pool of open connections to the upstream server instead of one connection per \
             request.",
            "",
        ),
    }
}
