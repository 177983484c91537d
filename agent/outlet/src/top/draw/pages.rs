//! The page of one service.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::head::span;
use super::now;
use super::theme::Theme;
use crate::document::{Block, text};
use crate::report;
use crate::terminal::units::counted;
use crate::terminal::{Paint, shorten};
use crate::top::screen::{Drawn, Screen, Tab};
use crate::top::view::{Opened, View};
use crate::watch::Details;
use tlsprof_common::units::printable;

/// Rows above the text: name and tabs.
const ABOVE: u16 = 3;
/// Lines of text are not longer, for they would be hard to read.
const LONGEST_LINE: usize = 130;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    opened: &Opened,
    view: &View,
    screen: &Screen,
    theme: Theme,
) -> Drawn {
    let rows = [Constraint::Length(ABOVE), Constraint::Fill(1)];
    let [above, body] = Layout::vertical(rows).areas(area);
    let width = usize::from(area.width);
    let heads = vec![
        title(name, opened, width, theme),
        tabs(opened, screen.tab, theme),
    ];
    frame.render_widget(Paragraph::new(heads), above);
    let lines = match (screen.tab, &opened.details) {
        (Tab::Now, _) => now::lines(opened, view, width, theme),
        (tab, Some(details)) => last_minutes(tab, details, width.min(LONGEST_LINE), theme),
        (_, None) => vec![Line::raw(
            " No findings yet: services are checked every few seconds.",
        )],
    };
    let rows = usize::from(body.height);
    let skip = screen.scroll.min(lines.len().saturating_sub(rows));
    let drawn = Drawn {
        names: Vec::new(),
        lines: lines.len(),
        rows,
    };
    let shown: Vec<Line<'static>> = lines.into_iter().skip(skip).collect();
    frame.render_widget(Paragraph::new(shown), body);
    drawn
}

/// Its name, and what it is.
fn title(name: &str, opened: &Opened, width: usize, theme: Theme) -> Line<'static> {
    let name = shorten(&printable(name), width.saturating_sub(2)).into_owned();
    let mut facts = Vec::new();
    if let Some(details) = &opened.details {
        let service = &details.service;
        if !service.executable.is_empty() {
            facts.push(printable(&service.executable).into_owned());
        }
        if !service.ports.is_empty() {
            let ports: Vec<String> = service.ports.iter().map(u16::to_string).collect();
            facts.push(format!("port {}", ports.join(", ")));
        }
        facts.push(counted(service.processes.into(), "process", "processes"));
    }
    let room = width.saturating_sub(name.chars().count() + 3);
    let facts = match room {
        0..=11 => String::new(),
        _ => shorten(&facts.join(" · "), room).into_owned(),
    };
    Line::from(vec![
        Span::styled(format!(" {name}"), theme.of(Paint::Bold)),
        Span::styled(format!("  {facts}"), theme.of(Paint::Dim)),
    ])
}

fn tabs(opened: &Opened, chosen: Tab, theme: Theme) -> Line<'static> {
    let findings = opened
        .details
        .as_ref()
        .map_or(0, |details| details.findings.len());
    let names = [
        (Tab::Now, "1 Now".to_owned()),
        (Tab::Handshakes, "2 Handshakes".to_owned()),
        (Tab::Connections, "3 Connections".to_owned()),
        (Tab::Findings, format!("4 Findings ({findings})")),
    ];
    let mut spans = Vec::new();
    for (tab, name) in names {
        let style = match tab == chosen {
            true => Theme::chosen(),
            false => theme.of(Paint::Dim),
        };
        spans.push(Span::raw(" "));
        spans.push(Span::styled(format!(" {name} "), style));
    }
    Line::from(spans)
}

/// Parts of the report of the last minutes.
fn last_minutes(tab: Tab, details: &Details, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let (service, seconds) = (&details.service, details.elapsed_seconds);
    let mut blocks = match tab {
        Tab::Now | Tab::Handshakes => report::handshakes(service, seconds),
        Tab::Connections => report::connections(service, seconds),
        Tab::Findings => {
            let findings = details.findings.iter().enumerate();
            findings
                .map(|(at, one)| report::finding(at + 1, &one.finding))
                .collect()
        }
    };
    if blocks.is_empty() {
        let text = match tab {
            Tab::Connections => "No TCP connection was opened or closed.",
            _ => "No findings: handshakes and connections show nothing wrong.",
        };
        blocks.push(Block::Text(text.to_owned()));
    }
    let title = format!("  In the last {}:", span(seconds.round()));
    let mut lines = vec![Line::styled(title, theme.of(Paint::Dim)), Line::default()];
    let report = text::lines(&blocks, width.saturating_sub(1));
    lines.extend(report.into_iter().map(|line| theme.line(line)));
    lines
}
