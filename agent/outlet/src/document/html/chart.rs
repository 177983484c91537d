//! Charts as SVG. Each says in words what it shows; the figures stand beside it in a table.

use maud::{Markup, html};

use super::super::{Part, Shade};
use tlsprof_common::units::{percent, printable};

/// Width of a chart in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;

/// A bar of parts, with a legend.
pub(super) fn whole(title: &str, parts: &[Part]) -> Markup {
    let mut start = 0.0;
    let placed: Vec<(f64, &Part)> = parts
        .iter()
        .map(|part| {
            let at = start;
            start += unit(part.share);
            (at, part)
        })
        .collect();
    html! {
        svg class="stack" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=(printable(title)) {
            title { (printable(title)) }
            rect class="track" width="1000" height="10" {}
            @for (at, part) in placed {
                rect class=(colour(part.shade)) x=(place(at)) width=(place(part.share)) height="10" {
                    title { (printable(&part.name)) ": " (percent(part.share)) }
                }
            }
        }
        ul class="legend" {
            @for part in parts {
                li { (swatch(part.shade)) (printable(&part.name)) " " strong { (percent(part.share)) } }
            }
        }
    }
}

/// A small square in a colour of the style.
pub(super) fn swatch(shade: Shade) -> Markup {
    html! {
        svg class="swatch" viewBox="0 0 1 1" aria-hidden="true" { rect class=(colour(shade)) width="1" height="1" {} }
    }
}

/// A bar for a share of 1, with its limits if they are known. Decoration: the row's other
/// cells say the same.
pub(super) fn bar(share: f64, shade: Shade, limits: Option<(f64, f64)>) -> Markup {
    html! {
        svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            rect class="track" width="1000" height="10" {}
            rect class=(colour(shade)) width=(place(share)) height="10" {}
            @if let Some((low, high)) = limits {
                line class="whisker" x1=(place(low)) x2=(place(high)) y1="5" y2="5" {}
            }
        }
    }
}

/// From `low` to `high` with a point in between, all of `span` from its begin to its end.
/// With a line at zero, if that is inside.
pub(super) fn interval(class: &str, [low, value, high]: [f64; 3], span: (f64, f64)) -> Markup {
    let width = span.1 - span.0;
    let at = |value: f64| {
        if width > 0.0 {
            (value - span.0) / width
        } else {
            0.5
        }
    };
    let (from, to) = (unit(at(low)), unit(at(high)));
    // A narrow interval can still be seen.
    let length = (to - from).max(0.004);
    html! {
        svg class="interval" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true" {
            rect class="track" y="9" width="1000" height="2" {}
            rect class={ "range " (class) } x=(place(from)) y="4" width=(place(length)) height="12" {}
            rect class={ "dot " (class) } x=(place(at(value) - 0.006)) y="2" width="12" height="16" {}
            @if span.0 < 0.0 && span.1 > 0.0 {
                line class="zero" x1=(place(at(0.0))) x2=(place(at(0.0))) y1="0" y2="20" {}
            }
        }
    }
}

/// A number from 0 to 1, whatever it was.
fn unit(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(0.0, 1.0)
    }
}

/// A share as a place in the chart.
fn place(share: f64) -> String {
    format!("{:.1}", unit(share) * WIDTH)
}

/// Class of a shade in the style.
const fn colour(shade: Shade) -> &'static str {
    match shade {
        Shade::Handshake => "handshake",
        Shade::Encryption => "encryption",
        Shade::SocketIo => "socket_io",
        Shade::TcpOpen => "tcp_open",
        Shade::TcpClose => "tcp_close",
        Shade::Application => "application",
        Shade::Rest => "rest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_one_after_another_and_inside() {
        let part = |share| Part {
            name: "a<b".into(),
            share,
            shade: Shade::Rest,
        };
        let drawn = whole("t", &[part(0.25), part(0.5), part(f64::NAN)]).into_string();
        assert!(drawn.contains(r#"x="0.0" width="250.0""#), "{drawn}");
        assert!(drawn.contains(r#"x="250.0" width="500.0""#));
        assert!(drawn.contains(r#"x="750.0" width="0.0""#));
        assert!(drawn.contains("a&lt;b") && !drawn.contains("NaN"));
    }

    #[test]
    fn intervals_stay_in_their_span() {
        let drawn = interval("good", [-9.0, -0.5, 7.0], (-1.0, 1.0)).into_string();
        assert!(drawn.contains(r#"x="0.0" y="4" width="1000.0""#), "{drawn}");
        assert!(drawn.contains(r#"x1="500.0""#));
        let empty = interval("noise", [0.0; 3], (0.0, 0.0)).into_string();
        assert!(!empty.contains("NaN"));
    }
}
