//! What keeps other people's pages out of this one.
//!
//! The page shows names that others choose (services, files): a browser is told to run and
//! load nothing but what is served here. And no answer carries a CORS header, so that
//! scripts of other origins cannot read it.
//!
//! **DNS rebinding** gets around that: a page of `http://evil.example` has its name point to
//! 127.0.0.1 once it is loaded, and to the browser the agent is then of the same origin. It
//! cannot choose the Host header, though. Where the agent listens on a loopback address, the
//! page and its interface are for requests that name an address, `localhost` or this host.
//! Elsewhere the names by which it is reached are not known; there it should have users,
//! whose password a browser does not send to that origin. `/metrics` has no such check, as
//! in other exporters: a scraper may come by any name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

/// No script, style or picture but those in files of this server, no frames, no forms.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Names under which the page may be asked for.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// None: any.
    known: Option<Arc<str>>,
}

impl Hosts {
    /// For a listener at that address.
    pub(super) fn of(address: SocketAddr) -> Self {
        let name = || rustix::system::uname().nodename().to_string_lossy().into();
        Self {
            known: address.ip().is_loopback().then(name),
        }
    }

    /// Whether a Host header names this host.
    fn admit(&self, header: Option<&HeaderValue>) -> bool {
        let Some(own) = &self.known else {
            return true;
        };
        let Some(Ok(host)) = header.map(HeaderValue::to_str) else {
            return false;
        };
        let name = without_port(host);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || name.eq_ignore_ascii_case(own)
            // Not a name that merely begins like it.
            || (!name.contains('.') && short(own) == short(name))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Refuses requests that name another host.
pub(super) fn for_hosts(router: Router, hosts: Hosts) -> Router {
    router.layer(from_fn_with_state(hosts, check))
}

async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if hosts.admit(request.headers().get(header::HOST)) {
        return next.run(request).await;
    }
    let told = "This page answers only requests for an IP address, localhost or this host's name \
                (see docs/live-page.md).\n";
    (StatusCode::MISDIRECTED_REQUEST, told).into_response()
}

/// Adds the headers that every answer has.
pub(super) async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_is_named() {
        let hosts = Hosts {
            known: Some("web1.example.net".into()),
        };
        let admits = |name: &'static str| hosts.admit(Some(&HeaderValue::from_static(name)));
        for name in [
            "127.0.0.1:9843",
            "127.0.0.1",
            "[::1]:9843",
            "localhost:9843",
            "LOCALHOST",
            "web1:9843",
            "web1.example.net:9843",
        ] {
            assert!(admits(name), "{name}");
        }
        for name in [
            "evil.example",
            "web1.evil.example:9843",
            "127.0.0.1.evil.example",
            "",
            ":1",
        ] {
            assert!(!admits(name), "{name}");
        }
        assert!(!hosts.admit(None));
    }

    #[test]
    fn a_listener_for_others_may_have_any_name() {
        let hosts = Hosts::of(([0, 0, 0, 0], 9843).into());
        assert!(hosts.admit(Some(&HeaderValue::from_static("any.example"))));
        assert!(Hosts::of(([127, 0, 0, 2], 9843).into()).known.is_some());
    }
}
