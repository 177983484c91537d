//! `tlsprof doctor`: whether this host can be profiled, what works on it, and why the rest does not.

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
    /// The reason in a few words, where that of the state quotes the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What it gives to the user.
    pub gives: &'static str,
    /// How much depends on it.
    pub group: Group,
}

/// How much depends on a capability.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Services are profiled with it.
    Needed,
    /// Profiles are better or cheaper with it.
    Recommended,
    /// Another way to do what something else does here.
    Alternative,
}

impl Group {
    const ALL: [Self; 3] = [Self::Needed, Self::Recommended, Self::Alternative];

    const fn title(self) -> &'static str {
        match self {
            Self::Needed => "Needed",
            Self::Recommended => "Better to have",
            Self::Alternative => "Alternatives, not in use",
        }
    }
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
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether services of this host can be profiled.
    pub ready: bool,
    /// The same in a sentence without a full stop: what must be done first, if anything.
    pub verdict: String,
    /// Properties of the host.
    pub host: Vec<HostFact>,
    /// Capabilities.
    pub capabilities: Vec<Capability>,
}

impl Diagnosis {
    /// Judges what was found. `obstacle`: what to do first about something that is no capability,
    /// such as missing privileges, if there is anything.
    pub fn new(
        host: Vec<HostFact>,
        capabilities: Vec<Capability>,
        obstacle: Option<String>,
    ) -> Self {
        let obstacle = obstacle.or_else(|| missing(&capabilities));
        Self {
            ready: obstacle.is_none(),
            verdict: obstacle.map_or_else(
                || "Ready: tlsprof can profile this host".to_owned(),
                |obstacle| format!("Not ready: {obstacle}"),
            ),
            host,
            capabilities,
        }
    }
}

/// Why no profile can start, or none would have handshakes.
fn missing(capabilities: &[Capability]) -> Option<String> {
    let found = |name| capabilities.iter().find(|one| one.name == name);
    let broken = |name| found(name).filter(|one| matches!(one.state, State::Unavailable(_)));
    // A session does not start without these two.
    let first = ["processes", "mapping_events"].into_iter().find_map(broken);
    if first.is_some() {
        return first.map(|one| format!("{}: {}", one.gives, one.in_short()));
    }
    // Either sees handshakes.
    let calls = broken("connection_turns")?;
    let library = ["openssl_handshakes", "uprobes"].into_iter();
    library.clone().find_map(broken)?;
    Some(calls.in_short().to_owned())
}

impl Capability {
    /// Why it does not work, or not wholly, in plain words.
    fn in_short(&self) -> &str {
        let reason = self.state.reason().unwrap_or_default();
        self.summary.as_deref().unwrap_or(reason)
    }
}

/// The diagnosis as text; `verbose` quotes the system's own reasons.
pub fn text(diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    let paint = if diagnosis.ready {
        Paint::Green
    } else {
        Paint::Red
    };
    let mut out = String::new();
    for line in indented(&printable(&diagnosis.verdict), 0, style.width).lines() {
        out.push_str(&style.paint(paint, line));
        out.push('\n');
    }
    out.push('\n');
    let mut host = Table::new("").words("").words("");
    for fact in &diagnosis.host {
        host.row([&fact.name, &fact.value].map(Cell::from));
    }
    out.push_str(&plain::table(&host, 2, style));
    for group in Group::ALL {
        let of_group = diagnosis
            .capabilities
            .iter()
            .filter(|one| one.group == group);
        let rows: String = of_group
            .map(|one| capability(one, verbose, style))
            .collect();
        if !rows.is_empty() {
            let title = style.paint(Paint::Bold, group.title());
            out.push_str(&format!("\n{title}\n{rows}"));
        }
    }
    if !verbose
        && diagnosis
            .capabilities
            .iter()
            .any(|one| one.summary.is_some())
    {
        let more = "`tlsprof doctor --verbose` quotes the system's reasons.";
        out.push_str(&format!("\n{}\n", style.paint(Paint::Dim, more)));
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

fn capability(capability: &Capability, verbose: bool, style: Style) -> String {
    let (paint, mark) = match (&capability.state, capability.group) {
        (_, Group::Alternative) => (Paint::Dim, "–"),
        (State::Available, _) => (Paint::Green, "✓"),
        (State::Degraded(_), _) => (Paint::Yellow, "!"),
        (State::Unavailable(_), Group::Needed) => (Paint::Red, "✗"),
        (State::Unavailable(_), _) => (Paint::Yellow, "✗"),
    };
    let mut out = format!("  {} {}\n", style.paint(paint, mark), capability.name);
    out.push_str(&indented(capability.gives, 6, style.width));
    if let Some(raw) = capability.state.reason() {
        let reason = if verbose { raw } else { capability.in_short() };
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

    fn capability(name: &'static str, state: State, group: Group) -> Capability {
        Capability {
            name,
            state,
            summary: None,
            gives: "what it gives to the user",
            group,
        }
    }

    fn refused() -> State {
        State::Unavailable("fexit/f: the syscall returned EPERM (os error 1)".into())
    }

    fn capabilities() -> Vec<Capability> {
        let multi = "needs Linux 6.6; single uprobes are used, and detaching takes seconds";
        let mut capabilities = vec![
            capability("connection_turns", State::Available, Group::Needed),
            capability("openssl_handshakes", State::Available, Group::Recommended),
            capability(
                "uprobe_multi",
                State::Degraded(multi.into()),
                Group::Recommended,
            ),
            capability("accept_wait", refused(), Group::Recommended),
            capability("socket_calls_fentry", refused(), Group::Alternative),
        ];
        for one in &mut capabilities {
            one.summary = (one.state == refused()).then(|| "refused by this kernel".to_owned());
        }
        capabilities
    }

    fn diagnosis(privileges: Option<String>) -> Diagnosis {
        let fact = |name: &str, value: &str| HostFact {
            name: name.into(),
            value: value.into(),
        };
        let host = vec![
            fact("kernel", "6.1.0-40-amd64"),
            fact("BTF", "/sys/kernel/btf/vmlinux"),
            fact("lockdown", "none"),
        ];
        Diagnosis::new(host, capabilities(), privileges)
    }

    #[test]
    fn snapshots_of_the_text() {
        let style = Style::plain(80);
        golden::snapshot("doctor.txt", &text(&diagnosis(None), false, style));
        golden::snapshot("doctor-verbose.txt", &text(&diagnosis(None), true, style));
    }

    #[test]
    fn missing_privileges_come_first() {
        let found = diagnosis(Some("run as root (sudo tlsprof doctor)".into()));
        assert!(!found.ready);
        let text = text(&found, false, Style::plain(80));
        assert!(
            text.starts_with("Not ready: run as root (sudo tlsprof doctor)\n"),
            "{text}"
        );
    }

    #[test]
    fn handshakes_from_socket_calls_or_from_libraries_will_do() {
        let ready = |broken: &[&str]| {
            let mut capabilities = capabilities();
            capabilities.push(capability("uprobes", State::Available, Group::Recommended));
            for one in &mut capabilities {
                if broken.contains(&one.name) {
                    one.state = refused();
                }
            }
            Diagnosis::new(Vec::new(), capabilities, None).ready
        };
        assert!(ready(&[]));
        assert!(ready(&["connection_turns"]));
        assert!(ready(&["openssl_handshakes", "uprobes"]));
        assert!(!ready(&["connection_turns", "openssl_handshakes"]));
        assert!(!ready(&["connection_turns", "uprobes"]));
    }

    #[test]
    fn without_reports_of_mappings_no_profile_starts() {
        let broken = capability("mapping_events", refused(), Group::Needed);
        let found = Diagnosis::new(Vec::new(), vec![broken], None);
        assert!(!found.ready);
        assert!(
            found.verdict.contains("what it gives to the user: fexit/f"),
            "{found:?}"
        );
    }

    #[test]
    fn json_has_the_verdict_state_and_reason() {
        let text = json(&diagnosis(None)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["ready"], true);
        assert_eq!(value["capabilities"][0]["state"], "available");
        let refused = &value["capabilities"][3];
        assert_eq!(
            (&refused["state"], &refused["group"]),
            (&"unavailable".into(), &"recommended".into())
        );
        assert_eq!(refused["summary"], "refused by this kernel");
        assert!(refused["reason"].as_str().unwrap().contains("os error 1"));
    }
}
