//! Help, over the page.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;
use crate::terminal::Paint;

const TEXT: [&str; 19] = [
    "↑ ↓ PgUp PgDn Home End   select a service, or scroll",
    "Enter, Esc               open a service, go back",
    "Tab, 1 to 4              parts of a service's page",
    "← →, r                   sort by another column, the other way",
    "/                        show services whose name contains a text",
    "p or space               figures stand still; press again to go on",
    "q or Ctrl-C              quit",
    "",
    "cores    CPU time a second: 1.00 is one CPU at work all the time",
    "TLS      share of it in handshakes and encryption",
    "hs/s     TLS handshakes a second, however they ended",
    "CPU/hs   CPU time of one that was completed (CPU each)",
    "resum.   share of completed ones that took up an earlier session",
    "fail/s   handshakes that failed, a second",
    "T_WAIT   TIME_WAIT sockets standing on this side",
    "found    findings by their gravest: open the service for remedies",
    "cost     the most that profiling takes of the CPU time of services",
    "",
    "A service in two roles is listed as a server. `tlsprof report` has all.",
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let longest = TEXT.iter().map(|line| line.chars().count()).max();
    let width = u16::try_from(longest.unwrap_or_default() + 4).unwrap_or(u16::MAX);
    let height = u16::try_from(TEXT.len() + 2).unwrap_or(u16::MAX);
    let [across] = Layout::horizontal([Constraint::Max(width)])
        .flex(Flex::Center)
        .areas(area);
    let [over] = Layout::vertical([Constraint::Max(height)])
        .flex(Flex::Center)
        .areas(across);
    let block = Block::bordered()
        .title(" Help: any key closes it ")
        .border_style(theme.of(Paint::Cyan));
    let lines: Vec<Line<'_>> = TEXT
        .iter()
        .map(|line| Line::raw(format!(" {line}")))
        .collect();
    frame.render_widget(Clear, over);
    frame.render_widget(Paragraph::new(lines).block(block), over);
}
