//! Lines of text whose parts may have an emphasis: what the text writer makes, for a terminal
//! or a screen that draws them itself.

use unicode_width::UnicodeWidthStr;

use super::cell::Tone;
use crate::terminal::{Paint, Style};

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Its emphasis.
    pub(crate) paint: Option<Paint>,
    /// Its text.
    pub text: String,
}

/// A line.
pub(crate) type Line = Vec<Span>;

/// Columns that a text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The lines as text, each ended by a newline.
pub(crate) fn coloured(lines: &[Line], style: Style) -> String {
    let mut out = String::new();
    for line in lines {
        for span in line {
            match span.paint {
                Some(paint) => out.push_str(&style.paint(paint, &span.text)),
                None => out.push_str(&span.text),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// The emphasis of a tone.
pub(super) const fn paint(tone: Tone) -> Option<Paint> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some(Paint::Bold),
        Tone::Soft => Some(Paint::Dim),
        Tone::Good => Some(Paint::Green),
        Tone::Look => Some(Paint::Yellow),
        Tone::Bad => Some(Paint::Red),
    }
}
