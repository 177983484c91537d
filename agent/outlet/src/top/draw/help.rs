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
    "Tab, 1 to 4              tabs of a service",
    "← →, r                   sort by another column, reverse the order",
    "/                        show services whose name contains a text",
    "p or space               pause; press again to resume",
    "q or Ctrl-C              quit",
    "",
    "cores    CPU time per second: 1.00 is one fully busy CPU",
    "TLS      share of CPU in handshakes and encryption",
    "hs/s     TLS handshakes per second, including failed ones",
    "CPU/hs   CPU per completed handshake",
    "resum.   share of completed handshakes that were resumed",
    "fail/s   failed handshakes per second",
    "T_WAIT   TIME_WAIT sockets on this side",
    "found    findings, with the highest severity; open the service to read them",
    "cost     upper bound of the overhead, as a share of the services' CPU",
    "",
    "A service in both roles is listed as a server. `tlsprof report` shows both.",
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
