//! One line of progress while a profile is made.

use std::io::{self, Write as _};
use std::time::Duration;

use super::notices::Notices;
use crate::session::Session;
use tlsprof_common::units::{printable, share_of_cpu};
use tlsprof_ledger::Ledger;
use tlsprof_outlet::terminal::units::{counted, percent};
use tlsprof_outlet::terminal::{Style, can_refresh, shorten};

/// How often the line is refreshed on a terminal.
const REFRESH: Duration = Duration::from_secs(1);
/// How often a line is printed elsewhere.
const PRINT: Duration = Duration::from_secs(5);

/// Shows on standard error how a profile gets on.
pub(super) struct Progress {
    planned: Option<Duration>,
    /// Columns of the terminal; None where lines cannot be refreshed.
    width: Option<usize>,
    interval: Duration,
    next: Duration,
}

impl Progress {
    /// `planned`: how long the profile lasts at most; None while a command runs without a limit.
    pub(super) fn new(planned: Option<Duration>, has_command: bool, notices: Notices) -> Self {
        let output = io::stderr();
        // A command may write to the terminal itself.
        let refreshed = !has_command && !notices.quiet && can_refresh(&output);
        let interval = if refreshed { REFRESH } else { PRINT };
        Self {
            planned,
            width: refreshed.then(|| Style::of(&output).width),
            interval,
            next: if notices.quiet {
                Duration::MAX
            } else {
                interval
            },
        }
    }

    /// Shows the line if it is time for it. A line that cannot be written is no reason to stop.
    pub(super) fn show(&mut self, session: &Session) {
        let elapsed = session.elapsed();
        if elapsed < self.next {
            return;
        }
        let losses = session.losses();
        let serious = losses.iter().filter(|loss| loss.reason.is_serious());
        let lost = serious.map(|loss| loss.count).sum();
        let line = line(elapsed, self.planned, &session.ledger(), lost);
        let mut output = io::stderr();
        let _ = match self.width {
            Some(width) => write!(output, "\r{}\x1b[K", shorten(&line, width - 1)),
            None => writeln!(output, "{line}"),
        };
        self.next = elapsed + self.interval;
    }

    /// Clears the line, before the report is printed.
    pub(super) fn finish(self) {
        if self.width.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(elapsed: Duration, planned: Option<Duration>, ledger: &Ledger, lost: u64) -> String {
    let elapsed = elapsed.as_secs();
    let total = ledger
        .services()
        .map(|(_, one)| one.handshake_count())
        .sum();
    let mut text = planned.map_or_else(
        || format!("tlsprof: {elapsed} s"),
        |planned| format!("tlsprof: {elapsed} of {} s", planned.as_secs()),
    );
    let handshakes = counted(total, "TLS handshake", "TLS handshakes");
    text.push_str(&format!(", {handshakes}"));
    let busy = ledger
        .services()
        .filter(|(_, one)| one.handshake_count() > 0);
    if let Some((name, account)) = busy.max_by_key(|(_, one)| one.handshake_cpu()) {
        let cpu = account.cpu_user + account.cpu_system;
        let share = share_of_cpu(account.handshake_cpu().as_secs_f64(), cpu.as_secs_f64());
        // The two are read at different moments while the profile runs.
        if let Some(share) = share.filter(|share| *share <= 1.0) {
            text.push_str(&format!(
                ", {} of the CPU of {}",
                percent(share),
                printable(name)
            ));
        }
    }
    if lost > 0 {
        let lost = counted(lost, "record or call", "records or calls");
        text.push_str(&format!(", lost: {lost}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_evidence::sample::handshake;

    const ELAPSED: Duration = Duration::from_secs(5);
    const PLANNED: Option<Duration> = Some(Duration::from_secs(30));

    #[test]
    fn the_line_names_the_service_with_most_cpu_time_in_handshakes() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            ledger.record("nginx.service", &handshake());
        }
        ledger.record("idle", &handshake());
        ledger.record("idle", &handshake());
        let cpu: Duration = 6 * handshake().cpu;
        ledger.add_cpu("nginx.service", cpu, Duration::ZERO);
        assert_eq!(
            line(ELAPSED, PLANNED, &ledger, 0),
            "tlsprof: 5 of 30 s, 5 TLS handshakes, 50.0% of the CPU of nginx.service"
        );
    }

    #[test]
    fn losses_are_named_and_a_command_has_no_end() {
        assert_eq!(
            line(ELAPSED, None, &Ledger::default(), 7),
            "tlsprof: 5 s, 0 TLS handshakes, lost: 7 records or calls"
        );
    }
}
