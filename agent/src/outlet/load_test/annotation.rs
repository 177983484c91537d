//! What Grafana is told of a load test.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::outlet::report::model::{Report, Service};
use crate::outlet::terminal::printable;
use crate::outlet::terminal::units::{counted, percent, time};

/// Services that are named, those with most CPU time.
const SERVICES: usize = 5;
/// The *Load test* dashboard shows annotations with the first of these.
const TAGS: [&str; 2] = ["tlsprof", "load-test"];

/// An annotation of a span of time: the body of `POST /api/annotations`.
///
/// Source: Grafana's HTTP API reference, Annotations, "Create Annotation" (the same
/// in Grafana 8 to 12). Without a dashboard it belongs to the organisation, and
/// dashboards show it by its tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotation {
    /// Beginning, in milliseconds since 1970.
    pub time: i64,
    /// End, in the same unit.
    pub time_end: i64,
    /// Tags.
    pub tags: [&'static str; 2],
    /// What is shown. Grafana takes it for HTML.
    pub text: String,
}

impl Annotation {
    /// The load test that this report is of. It names services and figures, but
    /// neither the command nor anything of clients.
    pub fn of(report: &Report, began: SystemTime, ended: SystemTime) -> Self {
        Self {
            time: millis(began),
            time_end: millis(ended),
            tags: TAGS,
            text: text(report),
        }
    }
}

/// A time beyond the calendar counts as 1970.
fn millis(at: SystemTime) -> i64 {
    Timestamp::try_from(at).map_or(0, Timestamp::as_millisecond)
}

fn text(report: &Report) -> String {
    let mut lines = vec![format!(
        "Load test of {} on {}{}.",
        time(report.duration_seconds),
        plain(&report.host.hostname),
        exit(report)
    )];
    let mut services: Vec<&Service> = report.services.iter().collect();
    services.sort_by(|one, other| cpu(other).total_cmp(&cpu(one)));
    let busy = services.into_iter().filter(|service| cpu(service) > 0.0);
    lines.extend(busy.take(SERVICES).map(of_service));
    lines.join("\n")
}

fn exit(report: &Report) -> String {
    match &report.command {
        Some(command) if command.exit_status != 0 => {
            format!(", ended with status {}", command.exit_status)
        }
        _ => String::new(),
    }
}

fn of_service(service: &Service) -> String {
    let cpu = cpu(service);
    let mut parts = vec![format!("{} of CPU", time(cpu))];
    let handshakes: u64 = service.handshakes.iter().map(|group| group.count).sum();
    if handshakes > 0 {
        let inside: f64 = service.handshakes.iter().map(|one| one.cpu_seconds).sum();
        parts.push(format!(
            "{} of it in {}",
            percent(inside / cpu),
            counted(handshakes, "TLS handshake", "TLS handshakes")
        ));
    }
    if let Some(requests) = service.known_requests() {
        // As the dashboards have it: all CPU time of the service by its requests.
        parts.push(format!("{} per request", time(cpu / requests.count)));
    }
    format!("{}: {}.", plain(&service.service_name), parts.join(", "))
}

fn cpu(service: &Service) -> f64 {
    service.cpu_seconds.user + service.cpu_seconds.system
}

/// A name that can neither drive a terminal nor be a tag of HTML.
fn plain(name: &str) -> String {
    printable(name).replace(['<', '>', '&'], "_")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use super::*;
    use crate::outlet::report::sample;
    use crate::outlet::terminal::golden;

    fn annotation(report: &Report) -> Annotation {
        let began = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        Annotation::of(report, began, began + Duration::from_secs(30))
    }

    #[test]
    fn snapshot_of_the_body() {
        let body = serde_json::to_string_pretty(&annotation(&sample::report())).unwrap();
        golden::snapshot("annotation.json", &(body + "\n"));
    }

    #[test]
    fn the_command_is_not_told() {
        let text = annotation(&sample::lossy_report()).text;
        assert!(text.contains("status 1"), "{text}");
        assert!(
            !text.contains("wrk") && !text.contains("localhost"),
            "{text}"
        );
    }

    #[test]
    fn a_name_is_no_html() {
        let mut report = sample::report();
        for service in &mut report.services {
            service.service_name = "<img src=x>".into();
        }
        let text = annotation(&report).text;
        assert!(text.contains("_img src=x_:"), "{text}");
    }
}
