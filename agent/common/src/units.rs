//! Numbers in units that people read, and names that are safe to show.

use std::borrow::Cow;

/// Seconds with three significant digits: `869 µs`, `1.62 ms`, `24.1 s`,
/// `2 min 5 s`.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => return "0".to_owned(),
        s if s < 999.5e-9 => (seconds * 1e9, "ns"),
        s if s < 999.5e-6 => (seconds * 1e6, "µs"),
        s if s < 999.5e-3 => (seconds * 1e3, "ms"),
        s if s < 119.5 => (seconds, "s"),
        s => return long_time(s),
    };
    format!("{} {unit}", three_digits(value))
}

fn long_time(seconds: f64) -> String {
    let hours = (seconds / 3600.0).floor();
    if hours >= 2.0 {
        let minutes = ((seconds - hours * 3600.0) / 60.0).floor();
        return format!("{hours:.0} h {minutes:.0} min");
    }
    let minutes = (seconds.round() / 60.0).floor();
    format!("{minutes:.0} min {:.0} s", seconds.round() - minutes * 60.0)
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A count with separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and its noun: `1 process`, `3 processes`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// How far two clocks of the kernel may differ: that of handshakes, which runs on through interrupts
/// and what the hypervisor withholds, and that of processes, which need not.
const CLOCKS_DIFFER: f64 = 0.05;

/// CPU time of handshakes as a share (0 to 1) of that of their processes; None where the
/// two accounts disagree.
pub fn share_of_cpu(handshakes: f64, processes: f64) -> Option<f64> {
    let agree = processes > 0.0 && handshakes <= processes * (1.0 + CLOCKS_DIFFER);
    agree.then(|| handshakes / processes)
}

/// How often: `once`, `12 times`.
pub fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{} times", count(number)),
    }
}

/// A share of 1 in percent: `83.1%`, `<0.1%`.
pub fn percent(share: f64) -> String {
    match share {
        s if !s.is_finite() => "-".to_owned(),
        s if s > 0.0 && s < 0.0005 => "<0.1%".to_owned(),
        s => format!("{:.1}%", s * 100.0),
    }
}

/// Bytes in binary units: `21.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            let decimals = usize::from(unit != "B");
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}

/// Events per second: `400/s`, `0.25/s`.
pub fn rate(number: u64, seconds: f64) -> String {
    if seconds <= 0.0 {
        return "-".to_owned();
    }
    per_second(number as f64 / seconds)
}

/// The same of a rate that is known.
pub fn per_second(rate: f64) -> String {
    match rate {
        0.0 => "0/s".to_owned(),
        r if r < 10.0 => format!("{r:.2}/s"),
        r if r < 100.0 => format!("{r:.1}/s"),
        r => format!("{}/s", thousands(r)),
    }
}

fn thousands(value: f64) -> String {
    // A rate far below 2^63: its text is all digits.
    format!("{value:.0}")
        .parse()
        .map_or_else(|_| format!("{value:.0}"), count)
}

/// `text` without control characters. Names of services and paths come from
/// other people's processes; they must not be able to drive the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        let replace = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        return text.chars().map(replace).collect::<String>().into();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_that_disagree_give_no_share() {
        assert_eq!(share_of_cpu(0.5, 1.0), Some(0.5));
        assert_eq!(share_of_cpu(0.0, 1.0), Some(0.0));
        assert!(share_of_cpu(1.04, 1.0).is_some());
        assert_eq!(share_of_cpu(1.06, 1.0), None);
        assert_eq!(share_of_cpu(0.1, 0.0), None);
    }

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let cases = [
            (0.0, "0"),
            (850e-9, "850 ns"),
            (1.62e-6, "1.62 µs"),
            (869e-6, "869 µs"),
            (999.6e-6, "1.00 ms"),
            (16.24e-3, "16.2 ms"),
            (1.5, "1.50 s"),
            (24.12, "24.1 s"),
            (125.0, "2 min 5 s"),
            (179.7, "3 min 0 s"),
            (7500.0, "2 h 5 min"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1234), "1,234");
        assert_eq!(count(12_345_678), "12,345,678");
        assert_eq!(counted(1, "process", "processes"), "1 process");
    }

    #[test]
    fn shares_rates_and_sizes() {
        assert_eq!(percent(0.8312), "83.1%");
        assert_eq!(percent(0.0001), "<0.1%");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(22_334_955), "21.3 MiB");
        assert_eq!(rate(12_004, 30.0), "400/s");
        assert_eq!(rate(120_040, 30.0), "4,001/s");
        assert_eq!(rate(1, 30.0), "0.03/s");
        assert_eq!(rate(1, 0.0), "-");
    }

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(printable("plain"), "plain");
    }
}
