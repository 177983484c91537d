//! What is shown while a profile is being made: one screen, refreshed in place,
//! or a plain line now and then where the output is no terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use super::terminal::table::Table;
use super::terminal::units::{count, counted, percent, rate, time};
use super::terminal::{Paint, Style, bar, can_refresh, printable};
use crate::units::share_of_cpu;

/// How often a plain line comes.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Services shown, so that it stays one screen.
const SERVICES: usize = 10;

/// The state of a profile that is being made.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time since it began.
    pub elapsed: Duration,
    /// How long it will last; None while a command runs.
    pub planned: Option<Duration>,
    /// Services, dearest handshakes first.
    pub services: Vec<LiveService>,
    /// Records and calls that were lost.
    pub lost: u64,
}

/// One service so far.
#[derive(Clone, Debug, Default)]
pub struct LiveService {
    /// Its name.
    pub name: String,
    /// CPU time of its processes.
    pub cpu: Duration,
    /// CPU time of its handshakes.
    pub handshake_cpu: Duration,
    /// Handshakes that ended, in any way.
    pub handshakes: u64,
    /// Handshakes that failed or were abandoned.
    pub incomplete: u64,
    /// Handshakes since the last snapshot.
    pub recent: u64,
    /// Time since the last snapshot.
    pub interval: Duration,
}

impl LiveService {
    /// Share of its CPU time that went into handshakes; None before any, and where CPU time
    /// was not read for long.
    fn share(&self) -> Option<f64> {
        share_of_cpu(self.handshake_cpu.as_secs_f64(), self.cpu.as_secs_f64())
    }
}

/// The screen's text.
pub fn screen(snapshot: &Snapshot, style: Style) -> String {
    let mut out = progress(snapshot, style);
    out.push('\n');
    if snapshot.services.iter().all(|one| one.handshakes == 0) {
        out.push_str("  No TLS handshake yet.\n");
    }
    let mut table = Table::new()
        .left("service")
        .right("handshakes")
        .right("now")
        .right("incomplete")
        .right("CPU each")
        .right("share")
        .left("")
        .painted(Paint::Cyan);
    for service in snapshot.services.iter().take(SERVICES) {
        let share = service.share();
        let each = service.handshake_cpu.as_secs_f64() / service.handshakes.max(1) as f64;
        table.row([
            printable(&service.name).into_owned(),
            count(service.handshakes),
            rate(service.recent, service.interval.as_secs_f64()),
            count(service.incomplete),
            time(each),
            share.map_or_else(|| "-".to_owned(), percent),
            bar(share.unwrap_or(0.0), (style.width / 8).min(14)),
        ]);
    }
    if !table.is_empty() {
        out.push_str(&table.render(style, 2));
    }
    if snapshot.lost > 0 {
        let text = format!("  LOST: {}\n", records(snapshot.lost));
        out.push_str(&style.paint(Paint::Red, text.trim_end()));
        out.push('\n');
    }
    out
}

fn records(lost: u64) -> String {
    counted(lost, "record or call", "records or calls")
}

fn progress(snapshot: &Snapshot, style: Style) -> String {
    let Some(planned) = snapshot.planned.filter(|planned| !planned.is_zero()) else {
        let elapsed = time(snapshot.elapsed.as_secs_f64().round());
        return format!("profiling for {elapsed}, until the command ends");
    };
    let share = snapshot.elapsed.as_secs_f64() / planned.as_secs_f64();
    let left = planned.saturating_sub(snapshot.elapsed).as_secs_f64();
    let bar = style.paint(Paint::Cyan, &bar(share, 30).replace(' ', "·"));
    format!("profiling {bar} {} s left", left.ceil())
}

/// The plain line's text.
pub fn line(snapshot: &Snapshot) -> String {
    let elapsed = snapshot.elapsed.as_secs();
    let total: u64 = snapshot.services.iter().map(|one| one.handshakes).sum();
    let mut text = snapshot.planned.map_or_else(
        || format!("tlsprof: {elapsed} s"),
        |planned| format!("tlsprof: {elapsed} of {} s", planned.as_secs()),
    );
    text.push_str(&format!(
        ", {}",
        counted(total, "TLS handshake", "TLS handshakes")
    ));
    if let Some(first) = snapshot.services.first()
        && let Some(share) = first.share().filter(|_| first.handshakes > 0)
    {
        let name = printable(&first.name);
        text.push_str(&format!(", {} of the CPU of {name}", percent(share)));
    }
    if snapshot.lost > 0 {
        text.push_str(&format!(", LOST: {}", records(snapshot.lost)));
    }
    text
}

/// Shows snapshots on an output as they come.
#[derive(Debug)]
pub struct Display<W> {
    output: W,
    /// None where the output is no terminal.
    screen: Option<Style>,
    lines_on_screen: usize,
    next_line: Duration,
}

impl<W: Write + IsTerminal + AsFd> Display<W> {
    /// The display that suits the output.
    pub fn of(output: W) -> Self {
        if can_refresh(&output) {
            let style = Style::of(&output);
            Self::on_terminal(output, style)
        } else {
            Self::plain(output)
        }
    }
}

impl<W: Write> Display<W> {
    /// On a terminal the screen is refreshed in place.
    pub const fn on_terminal(output: W, style: Style) -> Self {
        Self {
            output,
            screen: Some(style),
            lines_on_screen: 0,
            next_line: Duration::ZERO,
        }
    }

    /// Elsewhere a line is printed every five seconds.
    pub const fn plain(output: W) -> Self {
        Self {
            output,
            screen: None,
            lines_on_screen: 0,
            next_line: PLAIN_INTERVAL,
        }
    }

    /// Shows a snapshot; call it once a second.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn show(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        if let Some(style) = self.screen {
            let text = screen(snapshot, style);
            self.erase()?;
            self.output.write_all(text.as_bytes())?;
            self.lines_on_screen = text.lines().count();
        } else if snapshot.elapsed >= self.next_line {
            writeln!(self.output, "{}", line(snapshot))?;
            self.next_line = snapshot.elapsed + PLAIN_INTERVAL;
        }
        self.output.flush()
    }

    /// Takes the screen away, before the report is printed.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn finish(mut self) -> io::Result<()> {
        self.erase()?;
        self.output.flush()
    }

    /// Moves to the first line of the last screen and clears what follows.
    fn erase(&mut self) -> io::Result<()> {
        if self.lines_on_screen > 0 {
            write!(self.output, "\x1b[{}A\r\x1b[J", self.lines_on_screen)?;
            self.lines_on_screen = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::outlet::terminal::golden;

    fn snapshot(elapsed: u64) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_secs(elapsed),
            planned: Some(Duration::from_secs(30)),
            services: vec![LiveService {
                name: "nginx.service".into(),
                cpu: Duration::from_secs(10),
                handshake_cpu: Duration::from_secs(7),
                handshakes: 4200,
                incomplete: 3,
                recent: 412,
                interval: Duration::from_secs(1),
            }],
            lost: 0,
        }
    }

    #[test]
    fn snapshot_of_the_screen() {
        let style = Style::plain(80);
        let lossy = Snapshot {
            lost: 7,
            planned: None,
            ..snapshot(12)
        };
        let text = screen(&snapshot(12), style) + "\n" + &screen(&lossy, style);
        golden::snapshot("live.txt", &text);
    }

    #[test]
    fn the_screen_is_refreshed_in_place() {
        let mut out = Vec::new();
        let mut display = Display::on_terminal(&mut out, Style::plain(80));
        display.show(&snapshot(1)).unwrap();
        display.show(&snapshot(2)).unwrap();
        display.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("\x1b[3A\r\x1b[J").count(), 2);
        assert!(text.ends_with("\x1b[J"));
    }

    #[test]
    fn a_plain_line_comes_every_five_seconds() {
        let mut out = Vec::new();
        let mut display = Display::plain(&mut out);
        for second in 1..=12 {
            display.show(&snapshot(second)).unwrap();
        }
        display.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "tlsprof: 5 of 30 s, 4,200 TLS handshakes, 70.0% of the CPU of nginx.service\n\
             tlsprof: 10 of 30 s, 4,200 TLS handshakes, 70.0% of the CPU of nginx.service\n"
        );
    }

    #[test]
    fn before_any_handshake_the_screen_says_so() {
        assert!(screen(&Snapshot::default(), Style::plain(80)).contains("No TLS handshake yet"));
    }
}
