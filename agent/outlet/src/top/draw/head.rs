//! The head: the host, sums of all services, and what must not be overlooked.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::number;
use super::theme::Theme;
use crate::terminal::units::{count, counted, per_second, percent, time};
use crate::terminal::{Paint, shorten};
use crate::top::order::time_wait;
use crate::top::screen::Screen;
use crate::top::view::View;
use crate::watch::{Rates, State};
use tlsprof_common::units::printable;

/// Rows that it takes.
pub(super) const ROWS: u16 = 3;

pub(super) fn lines(view: &View, screen: &Screen, area: Rect, theme: Theme) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    vec![
        host(view, screen, width, theme),
        Line::from(sums(&view.state, width)),
        notice(&view.state, width, theme),
    ]
}

fn host(view: &View, screen: &Screen, width: usize, theme: Theme) -> Line<'static> {
    let about = &view.state.about;
    let name = format!(" tlsprof top · {}", printable(&about.host.hostname));
    let machine = format!(
        " · Linux {}, {}",
        printable(&about.host.kernel),
        counted(about.host.cpus.into(), "CPU", "CPUs")
    );
    let (marked, paint) = match screen.paused {
        true => (" PAUSED ", Theme::chosen()),
        false => ("", theme.of(Paint::Dim)),
    };
    let times = format!(
        " {} · every {} ",
        clock(view.state.elapsed_seconds),
        span(view.interval.as_secs_f64())
    );
    let room = width.saturating_sub(length(&times) + length(marked));
    let name = shorten(&name, room).into_owned();
    let machine = shorten(&machine, room - length(&name)).into_owned();
    let machine = if room > length(&name) {
        machine
    } else {
        String::new()
    };
    let gap = room.saturating_sub(length(&name) + length(&machine));
    Line::from(vec![
        Span::styled(name, theme.of(Paint::Bold)),
        Span::styled(machine, theme.of(Paint::Dim)),
        Span::raw(" ".repeat(gap)),
        Span::styled(marked, paint),
        Span::styled(times, theme.of(Paint::Dim)),
    ])
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Hours, minutes and seconds: `1:02:03`.
fn clock(seconds: f64) -> String {
    let whole = |value: f64| format!("{:02}", value.floor());
    let (hours, rest) = ((seconds / 3600.0).floor(), seconds % 3600.0);
    let hours = match hours {
        0.0 => String::new(),
        hours => format!("{hours}:"),
    };
    format!("{hours}{}:{}", whole(rest / 60.0), whole(rest % 60.0))
}

/// A span of time in whole seconds or minutes, as far as it goes: `43 s`, `2 min 5 s`.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 && s.fract() == 0.0 => format!("{s} s"),
        s => time(s),
    }
}

/// Handshakes of all servers, or of clients where nothing else is: those of a client on the
/// same host would count twice.
fn handshakes(state: &State) -> f64 {
    let of = |role: &str| -> f64 {
        let roles = state.services.iter().flat_map(|one| &one.rates.roles);
        let those = roles.filter(|one| one.role == role);
        those.map(|one| one.handshakes_per_second).sum()
    };
    match of("server") {
        0.0 => of("client"),
        servers => servers,
    }
}

/// What all services do together; what has no room is left out, the last first.
fn sums(state: &State, width: usize) -> String {
    if state.interval_seconds <= 0.0 {
        return " waiting for the end of the first interval".to_owned();
    }
    let services = &state.services;
    let sum = |of: fn(&Rates) -> f64| -> f64 { services.iter().map(|one| of(&one.rates)).sum() };
    let sampled = sum(|rates| rates.tls_ratio.map_or(0.0, |_| rates.cpu_cores));
    let tls = sum(|rates| rates.tls_ratio.unwrap_or_default() * rates.cpu_cores);
    let waiting: f64 = services.iter().map(time_wait).sum();
    let waiting = number(waiting);
    let mut parts = vec![format!("CPU {:.2} cores", sum(|rates| rates.cpu_cores))];
    if sampled > 0.0 {
        parts.push(format!("TLS {}", percent(tls / sampled)));
    }
    parts.push(format!("handshakes {}", per_second(handshakes(state))));
    parts.push(format!("TIME_WAIT {waiting}"));
    // Programs at socket calls and in the scheduler count in full, whoever ran them: beside
    // services that do next to nothing that bound says nothing.
    if let Some(cost) = state.agent.profiled_ratio.filter(|cost| *cost <= 1.0) {
        parts.push(format!("cost ≤{}", percent(cost)));
    }
    if let Some(own) = state.agent.cpu_cores {
        parts.push(format!("tlsprof {own:.2} cores"));
    }
    while length(&parts.join(" · ")) >= width && parts.len() > 1 {
        parts.pop();
    }
    format!(" {}", parts.join(" · "))
}

/// Data that was lost makes all figures wrong; else what is wrong with services.
fn notice(state: &State, width: usize, theme: Theme) -> Line<'static> {
    if let Some(text) = lost(state) {
        return Line::styled(cut(&text, width), theme.of(Paint::Red));
    }
    if let Some(reason) = &state.sampling.unavailable {
        let text = format!(" no CPU samples, so no activities: {}", printable(reason));
        return Line::styled(cut(&text, width), theme.of(Paint::Yellow));
    }
    if let Some(reduced) = state.agent.reduced.as_ref().filter(|it| it.estimates) {
        let text = format!(" Handshakes and requests are estimates. {}", reduced.text);
        return Line::styled(cut(&text, width), theme.of(Paint::Yellow));
    }
    let Some(first) = state.findings.first() else {
        return Line::default();
    };
    let name = printable(&first.service_name).into_owned();
    let text = format!(" {}: {name}: {}", first.severity, printable(&first.title));
    let more = match state.findings.len() {
        1 => String::new(),
        number => format!(" (1 of {number})"),
    };
    let text = cut(&text, width.saturating_sub(length(&more)));
    Line::styled(text + &more, theme.severity(&first.severity))
}

/// What was lost, by reason; None where nothing was that matters here.
fn lost(state: &State) -> Option<String> {
    let losses = state.losses.iter();
    let reasons: Vec<String> = losses
        .map(|loss| format!("{} {}", count(loss.count), loss.reason.label()))
        .collect();
    let reasons = match reasons.as_slice() {
        [] => return None,
        reasons => reasons.join(", "),
    };
    Some(format!(" Data was lost, figures are too low: {reasons}"))
}

/// The beginning of a sentence: its end says less.
fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
