//! Connections.

use super::*;
use tlsprof_common::Whole;

#[test]
fn a_connection_of_hours_is_beyond_the_last_bucket() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    let mut connection = sample::connection();
    connection.whole = connection.whole.map(|whole| Whole {
        duration: Duration::from_secs(7200),
        ..whole
    });
    metrics.observe("nginx.service", &Evidence::Closed(Box::new(connection)));
    let text = String::from_utf8(metrics.encode(Format::OpenMetrics).unwrap()).unwrap();
    let labels = "service_name=\"nginx.service\",role=\"server\"}";
    for line in [
        format!("bucket{{le=\"3600.0\",{labels} 0"),
        format!("bucket{{le=\"+Inf\",{labels} 1"),
        format!("sum{{{labels} 7200.0"),
    ] {
        let line = format!("tlsprof_connection_duration_seconds_{line}");
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
}
