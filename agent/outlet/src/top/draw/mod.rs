//! What is drawn: a function of figures, state of the screen and size.

mod foot;
mod head;
mod help;
mod list;
mod now;
mod pages;
mod spark;
pub mod theme;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;

use super::screen::{Drawn, Page, Screen};
use super::view::View;
use theme::Theme;

/// Least size of a terminal on which the head, a few services and the keys have room.
const LEAST: (u16, u16) = (40, 8);

/// Draws the screen, and says what is where.
pub fn draw(frame: &mut Frame<'_>, view: &View, screen: &Screen, theme: Theme) -> Drawn {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("at least {} x {} needed", LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        return Drawn::default();
    }
    let rows = [
        Constraint::Length(head::ROWS),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [top, body, bottom] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(head::lines(view, screen, top, theme)), top);
    let drawn = match (&screen.page, &view.opened) {
        (Page::Service(name), Some(opened)) => {
            pages::draw(frame, body, name, opened, view, screen, theme)
        }
        _ => list::draw(frame, body, view, screen, theme),
    };
    foot::draw(frame, bottom, screen, &drawn, theme);
    if screen.help {
        help::draw(frame, area, theme);
    }
    drawn
}
