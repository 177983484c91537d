//! The last row: the keys that mean something here, or the filter that is being typed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::theme::Theme;
use crate::terminal::Paint;
use crate::top::screen::{Drawn, Page, Screen};

const LIST: [(&str, &str); 8] = [
    ("↑↓", "select"),
    ("Enter", "open"),
    ("←→", "sort by"),
    ("r", "reverse"),
    ("/", "filter"),
    ("p", "pause"),
    ("?", "help"),
    ("q", "quit"),
];
const SERVICE: [(&str, &str); 6] = [
    ("Esc", "back"),
    ("Tab", "next part"),
    ("↑↓", "scroll"),
    ("p", "pause"),
    ("?", "help"),
    ("q", "quit"),
];

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &Screen,
    drawn: &Drawn,
    theme: Theme,
) {
    let line = match &screen.page {
        Page::Services if screen.typing => filter(screen),
        Page::Services => keys(&LIST, filtered(screen), area.width, theme),
        Page::Service(_) => keys(&SERVICE, scrolled(screen, drawn), area.width, theme),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn filter(screen: &Screen) -> Line<'static> {
    Line::from(vec![
        Span::raw(format!(" services matching /{}", screen.filter)),
        Span::styled(" ", Theme::chosen()),
        Span::raw("  Enter keeps it, Esc clears it"),
    ])
}

/// `first` comes before the keys: at 80 columns these leave no room after them. Where there is too
/// little room, help and the way out stay: the last two.
fn keys(keys: &[(&str, &str)], first: String, width: u16, theme: Theme) -> Line<'static> {
    let length = |(key, meaning): &(&str, &str)| key.chars().count() + meaning.len() + 3;
    // The space after the last one needs no room.
    let mut room = usize::from(width + 1).saturating_sub(first.chars().count());
    room = room.saturating_sub(keys.iter().rev().take(2).map(length).sum());
    let others = keys.len().saturating_sub(2);
    let mut spans = vec![Span::styled(first, theme.of(Paint::Yellow))];
    for (at, one) in keys.iter().enumerate() {
        let (key, meaning) = one;
        if at < others {
            if length(one) > room {
                room = 0;
                continue;
            }
            room -= length(one);
        }
        spans.push(Span::styled(format!(" {key}"), theme.of(Paint::Bold)));
        spans.push(Span::raw(format!(" {meaning} ")));
    }
    Line::from(spans)
}

fn filtered(screen: &Screen) -> String {
    match screen.filter.as_str() {
        "" => String::new(),
        filter => format!(" /{filter} "),
    }
}

/// Whether there is more below.
fn scrolled(screen: &Screen, drawn: &Drawn) -> String {
    let last = drawn.lines.saturating_sub(drawn.rows);
    match last.saturating_sub(screen.scroll) {
        0 => String::new(),
        below => format!(" ↓ {below} more "),
    }
}
