//! Text with the escape codes of [`Style::paint`], as lines of the screen. So parts of
//! the report are shown as they are in it.
//!
//! [`Style::paint`]: crate::outlet::terminal::Style::paint

use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::outlet::terminal::{Paint, Style};

/// The layout of report text for that width, with the codes that [`lines`] understands.
pub(super) fn style(width: usize) -> Style {
    Style {
        colour: true,
        width,
    }
}

/// The text as lines.
pub(super) fn lines(text: &str, theme: Theme) -> Vec<Line<'static>> {
    text.lines().map(|line| one(line, theme)).collect()
}

fn one(line: &str, theme: Theme) -> Line<'static> {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    let mut spans = vec![Span::raw(first.to_owned())];
    for part in parts {
        let (code, text) = part.split_once('m').unwrap_or(("", part));
        let span = Span::raw(text.to_owned());
        spans.push(match paint(code) {
            Some(paint) => span.style(theme.of(paint)),
            None => span,
        });
    }
    spans.retain(|span| !span.content.is_empty());
    Line::from(spans)
}

/// The codes of [`Style::paint`]; None for its end.
fn paint(code: &str) -> Option<Paint> {
    match code {
        "1" => Some(Paint::Bold),
        "2" => Some(Paint::Dim),
        "31" => Some(Paint::Red),
        "32" => Some(Paint::Green),
        "33" => Some(Paint::Yellow),
        "36" => Some(Paint::Cyan),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paint_survives() {
        let theme = Theme { colour: true };
        let all = [
            Paint::Bold,
            Paint::Dim,
            Paint::Cyan,
            Paint::Green,
            Paint::Yellow,
            Paint::Red,
        ];
        for one in all {
            let text = format!("a {} b", style(80).paint(one, "x"));
            let wanted = Line::from(vec![
                Span::raw("a "),
                Span::styled("x", theme.of(one)),
                Span::raw(" b"),
            ]);
            assert_eq!(lines(&text, theme), [wanted], "{one:?}");
        }
    }
}
