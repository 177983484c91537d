//! Formats of exposition, and which of them a client wants.

use std::collections::BTreeSet;

/// A format of exposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    /// OpenMetrics text 1.0.0.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    PlainText,
    /// Prometheus protobuf, delimited: the one that carries native histograms.
    Protobuf,
}

impl Format {
    /// The value of the Content-Type header.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::PlainText => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; \
                 proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format that an Accept header (RFC 9110, 12.5.1) wants most; of equal
    /// ones the first. Plain text where there is no such header or it names
    /// nothing that is known, as other exporters do.
    pub(crate) fn negotiate(accept: Option<&str>) -> Self {
        let mut best: Option<(Self, f64)> = None;
        for range in accept.unwrap_or_default().split(',') {
            let Some((format, quality)) = offer(range) else {
                continue;
            };
            if quality > best.map_or(0.0, |(_, quality)| quality) {
                best = Some((format, quality));
            }
        }
        best.map_or(Self::PlainText, |(format, _)| format)
    }
}

/// The format that one media range of an Accept header asks for, and its
/// quality (0 to 1).
fn offer(range: &str) -> Option<(Format, f64)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let mut quality = 1.0;
    let mut parameters = Vec::new();
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        let (key, value) = (
            key.trim().to_ascii_lowercase(),
            value.trim().trim_matches('"'),
        );
        if key == "q" {
            quality = value.parse().ok()?;
        } else {
            parameters.push((key, value.to_ascii_lowercase()));
        }
    }
    let wants = |key: &str, value: &str| {
        let mut of_key = parameters.iter().filter(|(name, _)| name == key);
        of_key.all(|(_, wanted)| wanted == value)
    };
    let format = match media.as_str() {
        "application/openmetrics-text" if wants("version", "1.0.0") => Format::OpenMetrics,
        "application/vnd.google.protobuf"
            if wants("proto", "io.prometheus.client.metricfamily")
                && wants("encoding", "delimited") =>
        {
            Format::Protobuf
        }
        "text/plain" if wants("version", "0.0.4") => Format::PlainText,
        "text/*" | "*/*" => Format::PlainText,
        _ => return None,
    };
    Some((format, quality))
}

/// OpenMetrics text as Prometheus text 0.0.4. There a counter's HELP and TYPE
/// lines carry the name of its samples, with `_total`, and other comments
/// (`# UNIT`, `# EOF`) have no meaning.
pub(super) fn plain_text(open_metrics: &str) -> String {
    let counters: BTreeSet<&str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mut words = line.splitn(4, ' ');
        if let (Some("#"), Some(kind @ ("HELP" | "TYPE")), Some(name), Some(rest)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            let total = if counters.contains(name) {
                "_total"
            } else {
                ""
            };
            out.push_str(&format!("# {kind} {name}{total} {rest}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prometheus_asks_for() {
        // Prometheus 2.42, without and with native histograms.
        let text = "application/openmetrics-text;version=1.0.0,\
                    application/openmetrics-text;version=0.0.1;q=0.75,\
                    text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::negotiate(Some(text)), Format::OpenMetrics);
        let native = "application/vnd.google.protobuf;\
                      proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                      application/openmetrics-text;version=1.0.0;q=0.8,\
                      application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::negotiate(Some(native)), Format::Protobuf);
        // Prometheus 3 adds the escaping scheme and a text format of its own.
        let third = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     text/plain;version=1.0.0;escaping=allow-utf-8;q=0.7,*/*;q=0.1";
        assert_eq!(Format::negotiate(Some(third)), Format::OpenMetrics);
    }

    #[test]
    fn anything_else_gets_plain_text() {
        for accept in [
            None,
            Some(""),
            Some("*/*"),
            Some("text/html"),
            Some("application/vnd.google.protobuf;proto=other"),
            Some("application/openmetrics-text;q=0"),
            Some("application/openmetrics-text;q=NaN"),
            Some(";;==,,q=1"),
        ] {
            assert_eq!(Format::negotiate(accept), Format::PlainText, "{accept:?}");
        }
    }

    #[test]
    fn plain_text_names_counters_by_their_samples() {
        let open_metrics = "# HELP a Help.\n# TYPE a counter\n# UNIT a seconds\na_total 1\n\
                            # HELP b Help.\n# TYPE b gauge\nb 2\n# EOF\n";
        assert_eq!(
            plain_text(open_metrics),
            "# HELP a_total Help.\n# TYPE a_total counter\na_total 1\n\
             # HELP b Help.\n# TYPE b gauge\nb 2\n"
        );
    }
}
