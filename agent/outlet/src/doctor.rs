//! `tlsprof doctor`: what works on this host, what does not, and why.

use serde::Serialize;

use super::document::{Cell, Table, text as plain};
use super::json;
use super::terminal::{Paint, Style, indented, printable};

/// Something the profiler can do where the host allows it.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Capability {
    /// Its name: the value of the metric label `capability`.
    pub name: &'static str,
    /// Whether it works here.
    #[serde(flatten)]
    pub state: State,
    /// What it gives to the user.
    pub gives: &'static str,
}

/// Whether a capability works.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
#[serde(tag = "state", content = "reason", rename_all = "snake_case")]
pub enum State {
    /// It works.
    Available,
    /// It works with less precision or at more cost; the reason.
    Degraded(String),
    /// It does not work; the reason.
    Unavailable(String),
}

impl State {
    /// The value of the metric label `state`.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Degraded(_) => "degraded",
            Self::Unavailable(_) => "unavailable",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Available => None,
            Self::Degraded(why) | Self::Unavailable(why) => Some(why),
        }
    }
}

/// A property of the host, such as its kernel release.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct HostFact {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// All that the doctor found.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Diagnosis {
    /// Properties of the host.
    pub host: Vec<HostFact>,
    /// Capabilities.
    pub capabilities: Vec<Capability>,
}

/// The diagnosis as text.
pub fn text(diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = style.paint(Paint::Bold, &verdict(&diagnosis.capabilities));
    out.push_str("\n\n");
    let mut host = Table::new("").words("").words("");
    for fact in &diagnosis.host {
        host.row([&fact.name, &fact.value].map(Cell::from));
    }
    out.push_str(&plain::table(&host, 2, style));
    out.push('\n');
    for one in &diagnosis.capabilities {
        out.push_str(&capability(one, style));
    }
    out
}

/// The diagnosis as indented JSON, ended by a newline.
///
/// # Errors
/// None that these types can cause.
pub fn json(diagnosis: &Diagnosis) -> Result<String, serde_json::Error> {
    json::indented(diagnosis)
}

fn verdict(capabilities: &[Capability]) -> String {
    let number = |label| {
        let those = capabilities.iter().filter(|one| one.state.label() == label);
        those.count()
    };
    match (number("degraded"), number("unavailable")) {
        (0, 0) => "Everything works on this host.".to_owned(),
        (degraded, unavailable) => format!(
            "{} of {} capabilities work on this host, {degraded} with limits, {unavailable} do not.",
            number("available"),
            capabilities.len()
        ),
    }
}

fn capability(capability: &Capability, style: Style) -> String {
    let (paint, mark) = match capability.state {
        State::Available => (Paint::Green, "✓"),
        State::Degraded(_) => (Paint::Yellow, "!"),
        State::Unavailable(_) => (Paint::Red, "✗"),
    };
    let mut out = format!("  {} {}\n", style.paint(paint, mark), capability.name);
    out.push_str(&indented(capability.gives, 6, style.width));
    if let Some(reason) = capability.state.reason() {
        let line = format!("{}: {}", capability.state.label(), printable(reason));
        for line in indented(&line, 6, style.width).lines() {
            out.push_str(&style.paint(paint, line));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use tlsprof_common::golden;

    fn diagnosis() -> Diagnosis {
        let fact = |name: &str, value: &str| HostFact {
            name: name.into(),
            value: value.into(),
        };
        Diagnosis {
            host: vec![
                fact("kernel", "6.1.0-40-amd64"),
                fact("BTF", "/sys/kernel/btf/vmlinux"),
                fact("lockdown", "none"),
            ],
            capabilities: vec![
                Capability {
                    name: "handshakes",
                    state: State::Available,
                    gives: "counts, CPU time and outcome of TLS handshakes",
                },
                Capability {
                    name: "uprobe_multi",
                    state: State::Degraded(
                        "needs Linux 6.6; single uprobes are used, and detaching takes seconds"
                            .into(),
                    ),
                    gives: "probes that attach and detach at once",
                },
                Capability {
                    name: "waits",
                    state: State::Unavailable(
                        "tp_btf/sched_switch: operation not permitted".into(),
                    ),
                    gives: "time off the CPU by reason",
                },
            ],
        }
    }

    #[test]
    fn snapshot_of_the_text() {
        golden::snapshot("doctor.txt", &text(&diagnosis(), Style::plain(80)));
    }

    #[test]
    fn a_host_where_all_works_hears_so() {
        let mut well = diagnosis();
        well.capabilities.truncate(1);
        assert!(text(&well, Style::plain(80)).starts_with("Everything works"));
    }

    #[test]
    fn json_has_state_and_reason() {
        let value: serde_json::Value = serde_json::from_str(&json(&diagnosis()).unwrap()).unwrap();
        assert_eq!(value["capabilities"][0]["state"], "available");
        assert_eq!(value["capabilities"][2]["state"], "unavailable");
        assert!(
            value["capabilities"][2]["reason"]
                .as_str()
                .unwrap()
                .contains("sched_switch")
        );
    }
}
