//! Emphasis as the terminal shows it.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::document::lines::{self as report, Line as Spans};
use crate::terminal::Paint;

/// Colours of the terminal's own sixteen, or none: then what stands out is bold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub(crate) colour: bool,
}

impl Theme {
    /// Colours, unless `NO_COLOR` is set and not empty (no-color.org).
    pub fn of_environment() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: !refused }
    }

    /// That emphasis.
    pub fn of(self, paint: Paint) -> Style {
        let plain = Style::new();
        match paint {
            Paint::Bold => plain.add_modifier(Modifier::BOLD),
            Paint::Dim => plain.add_modifier(Modifier::DIM),
            Paint::Cyan => self.colour(Color::Cyan),
            Paint::Green => self.colour(Color::Green),
            Paint::Yellow if self.colour => plain.fg(Color::Yellow),
            Paint::Red if self.colour => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            Paint::Yellow | Paint::Red => plain.add_modifier(Modifier::BOLD),
        }
    }

    /// A line of the report, as it is shown in it.
    pub(super) fn line(self, spans: Spans) -> Line<'static> {
        let span = |one: report::Span| match one.paint {
            Some(paint) => Span::styled(one.text, self.of(paint)),
            None => Span::raw(one.text),
        };
        spans.into_iter().map(span).collect()
    }

    fn colour(self, colour: Color) -> Style {
        match self.colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// How grave a finding is.
    pub fn severity(self, severity: &str) -> Style {
        self.of(match severity {
            "high" => Paint::Red,
            "medium" => Paint::Yellow,
            _ => Paint::Bold,
        })
    }

    /// What is chosen.
    pub const fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
