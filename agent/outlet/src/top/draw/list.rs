//! The list of services.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::theme::Theme;
use crate::terminal::units::{count, percent, time};
use crate::terminal::{Paint, shorten};
use crate::top::order::{Column, time_wait};
use crate::top::screen::{Drawn, Screen};
use crate::top::view::View;
use crate::watch::{RoleRates, ServiceState};
use tlsprof_common::units::printable;

/// From this width on, headers are written out.
const WIDE: u16 = 100;
/// From this width on, there are two more columns.
const WIDEST: u16 = 120;
/// Rows of the head of the table.
const HEADER: u16 = 1;

/// A column: which one, its header and its width.
type Head = (Option<Column>, &'static str, u16);

const NARROW: [Head; 9] = [
    (Some(Column::Service), "service", 0),
    (Some(Column::Cpu), "cores", 6),
    (Some(Column::Tls), "TLS", 6),
    (Some(Column::Handshakes), "hs/s", 6),
    (Some(Column::Cost), "CPU/hs", 7),
    (Some(Column::Resumed), "resum.", 7),
    (Some(Column::Failed), "fail/s", 7),
    (Some(Column::TimeWait), "T_WAIT", 7),
    (Some(Column::Findings), "found", 6),
];
/// Columns that go where there is no room for the names, the first first.
const LEAVING: [Option<Column>; 8] = [
    None,
    Some(Column::TimeWait),
    Some(Column::Failed),
    Some(Column::Resumed),
    Some(Column::Cost),
    Some(Column::Handshakes),
    Some(Column::Findings),
    Some(Column::Cpu),
];
/// Turns, where each is a request, and where it may be several (HTTP/2).
const REQUESTS: &str = "requests/s";
const TURNS: &str = "turns/s";
const WRITTEN_OUT: [Head; 11] = [
    (Some(Column::Service), "service", 0),
    (Some(Column::Cpu), "cores", 6),
    (Some(Column::Tls), "TLS", 6),
    (Some(Column::Handshakes), "handshakes/s", 13),
    (Some(Column::Cost), "CPU mean", 9),
    (Some(Column::Resumed), "resumed", 8),
    (Some(Column::Failed), "failed/s", 9),
    (None, REQUESTS, 11),
    (None, "opened/s", 9),
    (Some(Column::TimeWait), "TIME_WAIT", 10),
    (Some(Column::Findings), "findings", 9),
];

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    screen: &Screen,
    theme: Theme,
) -> Drawn {
    let listed = screen.order.listed(&view.state.services, &screen.filter);
    let names: Vec<String> = listed.iter().map(|one| one.service_name.clone()).collect();
    let rows = usize::from(area.height.saturating_sub(HEADER));
    let mut heads = heads(area.width);
    let longest = names.iter().map(|name| width_of(name)).max();
    make_room(
        &mut heads,
        area.width,
        longest.unwrap_or(0),
        screen.order.by,
    );
    let mut roles = listed.iter().filter_map(|one| one.rates.main());
    if roles.any(|one| !one.turns_are_requests) {
        for head in &mut heads {
            head.1 = if head.1 == REQUESTS { TURNS } else { head.1 };
        }
    }
    let widths = heads.iter().map(constraint);
    let room = room_for_names(&heads, area.width);
    let chosen = screen.position(&names);
    let skip = (chosen + 1).saturating_sub(rows);
    let shown = listed.iter().enumerate().skip(skip).take(rows);
    let shown = shown.map(|(at, service)| {
        let cells = heads.iter().map(|head| cell(*head, service, room, theme));
        let style = match at == chosen {
            true => Theme::chosen(),
            false if idle(service) => theme.of(Paint::Dim),
            false => Style::new(),
        };
        Row::new(cells).style(style)
    });
    let header = Row::new(heads.iter().map(|head| title(*head, screen)));
    let table = Table::new(shown, widths)
        .column_spacing(1)
        .header(header.style(theme.of(Paint::Bold)));
    frame.render_widget(table, area);
    if listed.is_empty() {
        let below = Rect {
            y: area.y + HEADER,
            height: area.height.saturating_sub(HEADER),
            ..area
        };
        frame.render_widget(Paragraph::new(nothing(view, screen)), below);
    }
    Drawn {
        lines: names.len(),
        names,
        rows,
    }
}

fn constraint((_, _, width): &Head) -> Constraint {
    match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(*width),
    }
}

fn heads(width: u16) -> Vec<Head> {
    let written_out = WRITTEN_OUT.into_iter();
    match width {
        WIDEST.. => written_out.collect(),
        WIDE.. => written_out.filter(|(one, ..)| one.is_some()).collect(),
        _ => NARROW.into(),
    }
}

/// Leaves out columns until the longest name has room, or names have half of the width: they are
/// shortened last. What the list is sorted by stays.
fn make_room(heads: &mut Vec<Head>, width: u16, longest: usize, sorted_by: Column) {
    let wanted = longest.min(usize::from(width / 2));
    for goes in LEAVING {
        if room_for_names(heads, width) > wanted {
            break;
        }
        heads.retain(|(column, ..)| *column != goes || *column == Some(sorted_by));
    }
}

/// Columns that the names may take, with the space before them.
fn room_for_names(heads: &[Head], width: u16) -> usize {
    let others: u16 = heads.iter().map(|(_, _, width)| width + 1).sum();
    usize::from(width.saturating_sub(others))
}

fn width_of(name: &str) -> usize {
    printable(name).chars().count()
}

/// The name, and the ports where they fit whole.
fn name(service: &ServiceState, room: usize, theme: Theme) -> Cell<'static> {
    let room = room.saturating_sub(1);
    let name = printable(&service.service_name);
    let ports: String = service
        .ports
        .iter()
        .map(|port| format!(" :{port}"))
        .collect();
    let mut spans = vec![Span::raw(format!(" {}", shorten(&name, room)))];
    if width_of(&name) + ports.len() < room {
        spans.push(Span::styled(ports, theme.of(Paint::Dim)));
    }
    Cell::from(Line::from(spans))
}

fn nothing(view: &View, screen: &Screen) -> String {
    if !view.state.services.is_empty() {
        return format!(" no service with `{}` in its name", screen.filter);
    }
    match view.state.interval_seconds > 0.0 {
        true => " no service with TLS, connections or CPU time".to_owned(),
        false => String::new(),
    }
}

fn title((column, name, _): Head, screen: &Screen) -> Cell<'static> {
    let sorted = column == Some(screen.order.by);
    let mark = match screen.order.rises() {
        _ if !sorted => "",
        true => "▲",
        false => "▼",
    };
    let text = match column {
        Some(Column::Service) => Text::from(format!(" {name}{mark}")),
        _ => Text::from(format!("{name}{mark}")).alignment(Alignment::Right),
    };
    let style = match sorted {
        true => Style::new().add_modifier(Modifier::UNDERLINED),
        false => Style::new(),
    };
    Cell::from(text.style(style))
}

fn cell(
    (column, name, width): Head,
    service: &ServiceState,
    room: usize,
    theme: Theme,
) -> Cell<'static> {
    let right = |text: String| Cell::from(Text::from(text).alignment(Alignment::Right));
    let rates = &service.rates;
    let main = rates.main();
    let or_none = |text: Option<String>| right(text.unwrap_or_else(|| "-".to_owned()));
    match column {
        Some(Column::Service) => self::name(service, room, theme),
        Some(Column::Cpu) => right(format!("{:.2}", rates.cpu_cores)),
        Some(Column::Tls) => or_none(rates.tls_ratio.map(percent)).style(theme.of(Paint::Cyan)),
        Some(Column::Handshakes) => or_none(main.map(|one| number(one.handshakes_per_second))),
        Some(Column::Cost) => or_none(main.and_then(cost)),
        Some(Column::Resumed) => or_none(main.and_then(|one| one.resumed_ratio).map(percent)),
        Some(Column::Failed) => or_none(main.map(|one| number(one.failed_per_second))),
        Some(Column::TimeWait) => or_none(main.map(|_| number(time_wait(service)))),
        Some(Column::Findings) => {
            let severity = service.severity.as_deref().unwrap_or_default();
            right(findings(service, width)).style(theme.severity(severity))
        }
        None if name == REQUESTS || name == TURNS => {
            or_none(main.and_then(|one| one.turns_per_second).map(number))
        }
        None => or_none(main.map(|one| number(one.opened_per_second))),
    }
}

/// CPU time of a handshake.
fn cost(rates: &RoleRates) -> Option<String> {
    let each = rates.each_cpu_seconds?;
    Some(at_least(rates, &time(each)))
}

/// A figure that comes from the CPU time of handshakes, which may be a lower bound.
pub(super) fn at_least(rates: &RoleRates, figure: &str) -> String {
    match rates.handshake_cpu_is_lower_bound {
        true => format!("≥{figure}"),
        false => figure.to_owned(),
    }
}

/// Whether there is nothing to see in an interval.
fn idle(service: &ServiceState) -> bool {
    let rates = &service.rates;
    let moving = |one: &RoleRates| one.handshakes_per_second + one.opened_per_second > 0.0;
    rates.cpu_cores < 0.005 && !rates.roles.iter().any(moving) && service.findings == 0
}

/// Number and severity of the gravest; nothing where there are none.
fn findings(service: &ServiceState, width: u16) -> String {
    let severity = match service.severity.as_deref() {
        Some("medium") if width < 9 => "med.",
        Some(severity) => severity,
        None => return String::new(),
    };
    format!("{} {severity}", service.findings.min(99))
}

/// A rate, or sockets, where the header names the unit: three digits, or whole.
pub(super) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 9.995 && v.fract() > 0.0 => format!("{v:.2}"),
        v if v < 99.95 && v.fract() > 0.0 => format!("{v:.1}"),
        v => format!("{v:.0}")
            .parse()
            .map_or_else(|_| format!("{v:.0}"), count),
    }
}
