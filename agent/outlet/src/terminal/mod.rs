//! What all texts for people share: style, units, tables and bars.

pub use tlsprof_common::units::{self, printable};

use std::borrow::Cow;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrower terminals get lines of this width, and wrap them.
const NARROWEST: usize = 80;
/// Tables do not grow beyond this width: they would be hard to read.
const WIDEST: usize = 160;
/// Width where there is no terminal.
const WITHOUT_TERMINAL: usize = 100;

/// Lines have at least this much room, however deep they stand.
const LEAST_ROOM: usize = 20;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours are used.
    pub(crate) colour: bool,
    /// Columns to use, 80 to 160.
    pub width: usize,
}

/// An emphasis of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Headings and the answer.
    Bold,
    /// Side remarks.
    Dim,
    /// Bars.
    Cyan,
    /// Good news.
    Green,
    /// What deserves a look.
    Yellow,
    /// What is wrong.
    Red,
}

impl Style {
    /// No colour, of that width.
    pub const fn plain(width: usize) -> Self {
        Self {
            colour: false,
            width,
        }
    }

    /// The style for an output: colour on a terminal unless `NO_COLOR` is set
    /// and not empty (no-color.org), and the terminal's width.
    pub fn of<T: IsTerminal + AsFd>(output: &T) -> Self {
        let Some(columns) = columns(output) else {
            return Self::plain(WITHOUT_TERMINAL);
        };
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colour: !refused,
            width: columns.clamp(NARROWEST, WIDEST),
        }
    }

    /// `text` with that emphasis, or as it is where there is no colour.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Red => 31,
            Paint::Green => 32,
            Paint::Yellow => 33,
            Paint::Cyan => 36,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Columns of a terminal, 0 where it does not tell; None for other outputs.
fn columns<T: IsTerminal + AsFd>(output: &T) -> Option<usize> {
    let size = |output| rustix::termios::tcgetwinsize(output).ok();
    let columns = || size(output).map_or(0, |size| usize::from(size.ws_col));
    output.is_terminal().then(columns)
}

/// Whether an output is a terminal of at least 80 columns, on which text can be
/// refreshed in place: narrower ones wrap its lines.
pub fn can_refresh<T: IsTerminal + AsFd>(output: &T) -> bool {
    columns(output).is_some_and(|columns| columns >= NARROWEST)
}

/// `text` in at most `width` columns, with `…` in its middle where it was cut.
pub fn shorten(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width || width == 0 {
        return text.into();
    }
    let head = (width - 1) / 2;
    let start = fitting(text.chars(), head);
    let end = fitting(text.chars().rev(), width - 1 - head);
    format!("{start}…{}", end.chars().rev().collect::<String>()).into()
}

/// The first characters that fit in so many columns.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    let fits = |one: &char| {
        used += one.width().unwrap_or(0);
        used <= room
    };
    characters.take_while(fits).collect()
}

/// A bar of `width` columns of which `share` (0 to 1) is filled, in eighths of
/// a column; what is not nothing shows at least one eighth.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let cells = width.saturating_mul(8);
    // Counted rather than cast: the widths are small, and this cannot wrap.
    let filled = (0..cells)
        .take_while(|&cell| (cell as f64 + 0.5) / (cells as f64) < share)
        .count();
    let filled = if share > 0.0 { filled.max(1) } else { 0 };
    let mut bar = "█".repeat(filled / 8);
    bar.push_str(PARTS.get(filled % 8).unwrap_or(&""));
    let used = bar.chars().count();
    bar.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    bar
}

/// `text` broken at spaces into lines of at most `width` columns: after `first`, and the others
/// after `indent` spaces.
pub(crate) fn wrap(text: &str, first: &str, indent: usize, width: usize) -> Vec<String> {
    let others = " ".repeat(indent);
    let options = Options::new(width.max(indent + LEAST_ROOM))
        .initial_indent(first)
        .subsequent_indent(&others)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let lines = textwrap::wrap(text, options).into_iter();
    lines.map(Cow::into_owned).collect()
}

/// The same as one text of lines that are all indented, each ended by a newline.
pub(crate) fn indented(text: &str, indent: usize, width: usize) -> String {
    let first = " ".repeat(indent);
    let lines = wrap(text, &first, indent, width).into_iter();
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_in_eighths() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.001, 4), "▏   ");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 2), "  ");
        assert_eq!(bar(0.3, 4), "█▎  ");
    }

    #[test]
    fn long_text_is_cut_in_its_middle() {
        assert_eq!(shorten("/usr/lib/libssl.so.3", 11), "/usr/….so.3");
        assert_eq!(shorten("short", 11), "short");
        assert_eq!(shorten("日本語日本語", 7), "日…語");
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(
            indented("one two three four five six", 2, 22),
            "  one two three four\n  five six\n"
        );
    }

    #[test]
    fn colour_is_used_only_when_asked_for() {
        assert_eq!(Style::plain(80).paint(Paint::Red, "x"), "x");
        let style = Style {
            colour: true,
            width: 80,
        };
        assert_eq!(style.paint(Paint::Red, "x"), "\x1b[31mx\x1b[0m");
    }
}
