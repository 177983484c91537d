//! A service in the last interval, and what it did in those before.

use ratatui::text::{Line, Span};

use super::head::span;
use super::list::{at_least, number};
use super::spark::{greatest, spark};
use super::theme::Theme;
use crate::report::words;
use crate::terminal::units::{bytes, count, per_second, percent, time};
use crate::terminal::{Paint, bar};
use crate::top::view::{Opened, View};
use crate::watch::{ActivityRate, Figure, Heading, Rates, RoleRates, SeriesState};
use tlsprof_common::Role;
use tlsprof_evidence::activity::{Activity, Mode};

/// Columns of what stands before a value.
const LABEL: usize = 15;
/// Columns that values with a history at their right take at most.
const VALUE: usize = 34;

pub(super) fn lines(
    opened: &Opened,
    view: &View,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let Some(now) = &opened.now else {
        return vec![Line::raw(
            " It was idle in the last interval, or has ended.",
        )];
    };
    let page = Page {
        past: Past(opened.series.as_ref()),
        width,
        theme,
    };
    let mut lines = page.cpu(&now.rates);
    for role in &now.rates.roles {
        lines.push(Line::default());
        lines.extend(page.role(role));
    }
    if now.rates.overflows_per_second > 0.0 {
        let text = format!(
            "{} dropped packets",
            per_second(now.rates.overflows_per_second)
        );
        lines.push(page.valued("accept queue", &text, Paint::Red));
    }
    lines.push(Line::default());
    lines.push(page.remark(view));
    lines
}

/// The intervals before.
struct Past<'a>(Option<&'a SeriesState>);

impl Past<'_> {
    /// The sum of those figures for each second, interval by interval.
    fn rates(&self, figures: &[Figure]) -> Vec<f64> {
        let Some(series) = self.0 else {
            return Vec::new();
        };
        let columns: Vec<&Vec<f64>> = figures
            .iter()
            .filter_map(|figure| series.columns.get(&Heading::Sum(*figure).name()))
            .collect();
        let lengths = series.lengths.iter().enumerate();
        let rate = |(at, length): (usize, &f64)| {
            let came: f64 = columns.iter().filter_map(|column| column.get(at)).sum();
            if *length > 0.0 { came / length } else { 0.0 }
        };
        lengths.map(rate).collect()
    }

    /// TIME_WAIT sockets at the end of each interval.
    fn time_wait(&self, role: Role) -> Vec<f64> {
        let name = Heading::TimeWait(role).name();
        let column = self.0.and_then(|series| series.columns.get(&name));
        column.cloned().unwrap_or_default()
    }
}

struct Page<'a> {
    past: Past<'a>,
    width: usize,
    theme: Theme,
}

impl Page<'_> {
    fn cpu(&self, rates: &Rates) -> Vec<Line<'static>> {
        let tls = rates
            .tls_ratio
            .map(|share| format!(", {} in TLS", percent(share)));
        let text = format!(
            " CPU {:.2} cores: user {:.2}, system {:.2}{}",
            rates.cpu_cores,
            rates.cpu_cores - rates.system_cores,
            rates.system_cores,
            tls.unwrap_or_default()
        );
        let mut lines = vec![Line::styled(text, self.theme.of(Paint::Bold))];
        let all = [Figure::Cpu(Mode::User), Figure::Cpu(Mode::System)];
        let most = greatest(&self.past.rates(&all));
        if rates.activities.is_empty() {
            lines.push(Line::raw("  No sample hit it: its activities are unknown."));
        }
        let named = Activity::ALL.into_iter().zip(&rates.activities);
        for (activity, rate) in named {
            lines.push(self.activity(activity, rate, rates.cpu_cores, most));
        }
        if rates.unattributed_cores >= 0.005 {
            let value = cores(rates.unattributed_cores, rates.cpu_cores);
            lines.push(Line::raw(format!("  {:LABEL$}{value}", "unattributed")));
        }
        lines
    }

    fn activity(
        &self,
        activity: Activity,
        rate: &ActivityRate,
        cpu: f64,
        most: f64,
    ) -> Line<'static> {
        let own = rate.user_cores + rate.system_cores;
        let values = cores(own, cpu);
        let used = LABEL + 2 + values.chars().count() + 4;
        let half = self.width.saturating_sub(used) / 2;
        let figures = [Mode::User, Mode::System].map(|mode| Figure::Activity(activity, mode));
        let before = self.past.rates(&figures);
        let label = format!("  {:LABEL$}", words(&rate.activity));
        let share = if cpu > 0.0 { own / cpu } else { 0.0 };
        Line::from(vec![
            Span::raw(format!("{label}{values}  ")),
            Span::styled(bar(share, half), self.theme.of(Paint::Cyan)),
            Span::raw("  "),
            Span::styled(spark(&before, half, most), self.theme.of(Paint::Green)),
        ])
    }

    fn role(&self, rates: &RoleRates) -> Vec<Line<'static>> {
        let role = match rates.role.as_str() {
            "client" => Role::Client,
            _ => Role::Server,
        };
        let title = match role {
            Role::Server => " As a server",
            Role::Client => " As a client",
        };
        let mut lines = vec![Line::styled(title, self.theme.of(Paint::Bold))];
        lines.extend(self.handshakes(rates, role));
        lines.extend(self.connections(rates, role));
        lines
    }

    fn handshakes(&self, rates: &RoleRates, role: Role) -> Vec<Line<'static>> {
        let cost = [Figure::HandshakeCpu(role)];
        let mut lines = vec![
            self.valued(
                "handshakes",
                &format!(
                    "{}: {} completed, {} failed, {} abandoned",
                    per_second(rates.handshakes_per_second),
                    number(rates.completed_per_second),
                    number(rates.failed_per_second),
                    number(rates.abandoned_per_second)
                ),
                Paint::Bold,
            ),
            self.with_past(
                "  CPU time",
                &at_least(rates, &format!("{:.2} cores", rates.handshake_cores)),
                &self.past.rates(&cost),
            ),
        ];
        let each = |seconds: Option<f64>| {
            seconds.map_or_else(|| "-".to_owned(), |each| at_least(rates, &time(each)))
        };
        let text = format!(
            "full {}, resumed {}",
            each(rates.full_cpu_seconds),
            each(rates.resumed_cpu_seconds)
        );
        lines.push(self.valued("  CPU mean", &text, Paint::Bold));
        if let Some(share) = rates.resumed_ratio {
            let text = format!(
                "{} of them, {} refused",
                percent(share),
                per_second(rates.refused_per_second)
            );
            lines.push(self.valued("  resumed", &text, Paint::Bold));
        }
        lines
    }

    fn connections(&self, rates: &RoleRates, role: Role) -> Vec<Line<'static>> {
        let opened = self.past.rates(&[Figure::Opened(role)]);
        let text = format!("{} opened", per_second(rates.opened_per_second));
        let mut lines = vec![self.with_past("connections", &text, &opened)];
        let text = format!(
            "{} closed, {} by it, {} by peers",
            per_second(rates.closed_per_second),
            number(rates.closed_local_per_second),
            number(rates.closed_remote_per_second)
        );
        lines.push(self.valued("", &text, Paint::Bold));
        let each = rates.turns_per_connection;
        let each = each.map_or(String::new(), |turns| {
            format!(", {} per connection", number(turns))
        });
        let text = rates.turns_per_second.map_or_else(
            || "not counted on most connections".to_owned(),
            |turns| per_second(turns) + &each,
        );
        let turns = self.past.rates(&[Figure::Turns(role)]);
        let label = match rates.turns_are_requests {
            true => "requests",
            false => "turns (HTTP/2)",
        };
        lines.push(self.with_past(label, &text, &turns));
        let text = format!(
            "{} present, {} created",
            count(rates.time_wait_standing),
            per_second(rates.time_wait_created_per_second)
        );
        lines.push(self.with_past("TIME_WAIT", &text, &self.past.time_wait(role)));
        let (received, sent) = (rates.received_bytes_per_second, rates.sent_bytes_per_second);
        if received + sent > 0.0 {
            let text = format!("{} in, {} out", data(received), data(sent));
            let moved = self
                .past
                .rates(&[Figure::Received(role), Figure::Sent(role)]);
            lines.push(self.with_past("TLS data", &text, &moved));
        }
        lines
    }

    fn valued(&self, label: &str, value: &str, paint: Paint) -> Line<'static> {
        let value = Span::raw(value.to_owned());
        let value = match paint {
            Paint::Red => value.style(self.theme.of(paint)),
            _ => value,
        };
        Line::from(vec![Span::raw(format!("  {label:LABEL$}")), value])
    }

    /// A value and its past, which is scaled to its own greatest.
    fn with_past(&self, label: &str, value: &str, past: &[f64]) -> Line<'static> {
        let text = format!("  {label:LABEL$}{value:VALUE$}");
        let room = self.width.saturating_sub(text.chars().count() + 1);
        let spark = spark(past, room, greatest(past));
        Line::from(vec![
            Span::raw(text),
            Span::styled(spark, self.theme.of(Paint::Green)),
        ])
    }

    fn remark(&self, view: &View) -> Line<'static> {
        let text = match self.past.0 {
            Some(_) => format!(
                " At the right: history, one column per {}, newest last.",
                span(view.interval.as_secs_f64())
            ),
            None => " No history: only the services with the most CPU time have one.".to_owned(),
        };
        Line::styled(text, self.theme.of(Paint::Dim))
    }
}

/// Cores, and their share of the service's.
fn cores(own: f64, all: f64) -> String {
    let share = if all > 0.0 {
        percent(own / all)
    } else {
        "-".to_owned()
    };
    format!("{own:>6.2} {share:>6}")
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes a second, not negative"
)]
fn data(rate: f64) -> String {
    format!("{}/s", bytes(rate.round() as u64))
}
