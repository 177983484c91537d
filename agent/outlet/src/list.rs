//! `tlsprof list`: the services found, and how each would be profiled.

use std::cmp::Reverse;
use std::path::PathBuf;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::json;
use super::terminal::units::counted;
use super::terminal::{Paint, Style, indented, printable, wrap};

/// Ports shown on a line.
const PORTS: usize = 3;
/// Columns at most for names, and for ports: longer ones shift the rest of their line.
const WIDEST: usize = 30;

/// A service of this host.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct ListedService {
    /// Systemd unit, container or executable.
    pub name: String,
    /// Path of the executable, as its own processes see it.
    pub executable: PathBuf,
    /// Its processes.
    pub pids: Vec<u32>,
    /// TCP ports it listens on.
    pub ports: Vec<u16>,
    /// TLS libraries mapped by its processes.
    pub libraries: Vec<ListedLibrary>,
}

/// A TLS library of a service.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct ListedLibrary {
    /// `OpenSSL`, ...
    pub kind: String,
    /// Version as the library states it, empty if it does not.
    pub version: String,
    /// Path as its processes see it.
    pub path: PathBuf,
    /// How it would be profiled, or why it would not.
    pub state: LibraryState,
    /// Whether this file runs handshakes.
    pub handshakes: bool,
    /// Whether this file does the steps of handshakes.
    pub steps: bool,
    /// The chosen probe sites, each with its reason.
    pub sites: Vec<String>,
}

/// Whether a library can be profiled.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
#[serde(tag = "state", content = "detail", rename_all = "snake_case")]
pub enum LibraryState {
    /// It can; the text says how.
    Supported(String),
    /// It cannot; the text says why.
    Unsupported(String),
}

/// How the handshakes of a service are seen, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    LibraryWithSteps,
    Library,
    /// It has a TLS library that cannot be probed, or a part of one.
    SocketCalls,
    /// It has none that is known.
    SocketCallsAlone,
}

impl ListedService {
    fn source(&self) -> Source {
        let supported = |one: &&ListedLibrary| matches!(one.state, LibraryState::Supported(_));
        let mut probed = self.libraries.iter().filter(supported);
        match (
            probed.clone().any(|one| one.handshakes),
            probed.any(|one| one.steps),
        ) {
            (true, true) => Source::LibraryWithSteps,
            (true, false) => Source::Library,
            _ if self.libraries.is_empty() => Source::SocketCallsAlone,
            _ => Source::SocketCalls,
        }
    }

    fn library(&self) -> String {
        let libraries = self.libraries.iter();
        library_name(libraries.map(|one| (one.kind.as_str(), one.version.as_str())))
    }

    /// What would be profiled, and how.
    fn how(&self) -> String {
        const FROM_CALLS: &str = "handshakes from its socket calls";
        let unsupported = |one: &ListedLibrary| matches!(one.state, LibraryState::Unsupported(_));
        match self.source() {
            Source::LibraryWithSteps => format!("{}, handshakes and steps", self.library()),
            Source::Library => format!("{}, handshakes", self.library()),
            Source::SocketCalls if self.libraries.iter().any(unsupported) => {
                format!("{}, not probed: {FROM_CALLS}", self.library())
            }
            Source::SocketCalls => format!("part of {}: {FROM_CALLS}", self.library()),
            Source::SocketCallsAlone if self.ports.is_empty() => {
                "no known TLS library, no listening port".to_owned()
            }
            Source::SocketCallsAlone => format!("no known TLS library: {FROM_CALLS}"),
        }
    }

    fn ports(&self) -> String {
        let shown = self.ports.iter().take(PORTS);
        let mut shown: Vec<String> = shown.map(|port| format!(":{port}")).collect();
        if let Some(more @ 1..) = self.ports.len().checked_sub(PORTS) {
            shown.push(format!("+{more}"));
        }
        if shown.is_empty() {
            shown.push("-".to_owned());
        }
        shown.join(" ")
    }
}

/// Name and version of the TLS library that these files, each with its library and version, are
/// of: a separate libssl often does not say its version, its libcrypto does.
pub fn library_name<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let is_known = |kind: &str| kind != "unknown";
    // A version counts more than none, and a known library more than an unknown one.
    let best = files.max_by_key(|(kind, version)| (is_known(kind), !version.is_empty()));
    match best {
        Some((kind, version)) if is_known(kind) => {
            format!("{kind} {version}").trim_end().to_owned()
        }
        _ => "unknown TLS library".to_owned(),
    }
}

/// Puts the services in order: those that listen first, and of these what is profiled best.
pub fn sort(services: &mut [ListedService]) {
    services.sort_by(|one, other| {
        let rank = |one: &ListedService| {
            let port = one.ports.first().copied().unwrap_or(u16::MAX);
            (Reverse(!one.ports.is_empty()), one.source(), port)
        };
        let by_rank = rank(one).cmp(&rank(other));
        by_rank.then_with(|| one.name.cmp(&other.name))
    });
}

/// The list as text; `verbose` adds files, processes and probe sites. Without `all` it has the
/// services that listen alone.
pub fn text(services: &[ListedService], verbose: bool, all: bool, style: Style) -> String {
    let is_shown = |one: &&ListedService| all || !one.ports.is_empty();
    let shown: Vec<&ListedService> = services.iter().filter(is_shown).collect();
    let width = |text: &dyn Fn(&ListedService) -> String| {
        let widths = shown.iter().map(|one| text(one).width().min(WIDEST));
        widths.max().unwrap_or_default()
    };
    let widths = (
        width(&|one| printable(&one.name).into_owned()),
        width(&ListedService::ports),
    );
    let lines = shown.iter().map(|one| {
        let mut text = line(one, widths, style);
        if verbose {
            text.push_str(&details(one, style));
        }
        text
    });
    let mut out: String = lines.collect();
    if shown.is_empty() {
        out.push_str("No service listens on a TCP port.\n");
    }
    let hidden = (services.len() - shown.len()) as u64;
    if hidden > 0 {
        let programs = counted(hidden, "program has", "programs have");
        let more =
            format!("{programs} a TLS library loaded but no listening port: `tlsprof list --all`.");
        for line in indented(&more, 0, style.width).lines() {
            out.push_str(&format!("{}\n", style.paint(Paint::Dim, line)));
        }
    }
    out
}

/// The list as indented JSON, ended by a newline.
///
/// # Errors
/// When a path is not UTF-8.
pub fn json(services: &[ListedService]) -> Result<String, serde_json::Error> {
    json::indented(&services)
}

/// One line, if the terminal is wide enough.
fn line(service: &ListedService, (names, ports): (usize, usize), style: Style) -> String {
    let (paint, mark) = match service.source() {
        Source::SocketCallsAlone if service.ports.is_empty() => (Paint::Dim, "–"),
        _ => (Paint::Green, "✓"),
    };
    let name = printable(&service.name);
    let first = format!(
        "{mark} {} {} ",
        padded(&name, names),
        padded(&service.ports(), ports)
    );
    let lines = wrap(&service.how(), &first, 4, style.width);
    let text = lines.join("\n") + "\n";
    let rest = text.strip_prefix(mark).unwrap_or_default();
    let rest = rest.replacen(&*name, &style.paint(Paint::Bold, &name), 1);
    style.paint(paint, mark) + &rest
}

fn padded(text: &str, width: usize) -> String {
    let room = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(room))
}

/// Files and processes.
fn details(service: &ListedService, style: Style) -> String {
    let facts = [
        printable(&service.executable.to_string_lossy()).into_owned(),
        processes(&service.pids),
    ];
    let mut out = indented(&facts.join(" · "), 4, style.width);
    for one in &service.libraries {
        out.push_str(&library(one, style));
    }
    out
}

fn processes(pids: &[u32]) -> String {
    let all: Vec<String> = pids.iter().map(u32::to_string).collect();
    let noun = if pids.len() == 1 { "pid" } else { "pids" };
    format!("{noun} {}", all.join(" "))
}

fn library(library: &ListedLibrary, style: Style) -> String {
    let (paint, mark, state) = match &library.state {
        LibraryState::Supported(how) => (Paint::Green, "✓", how),
        LibraryState::Unsupported(why) => (Paint::Yellow, "✗", why),
    };
    let name = format!("{} {}", library.kind, library.version);
    let mut out = format!(
        "    {} {} · {}\n",
        style.paint(paint, mark),
        printable(name.trim_end()),
        printable(&library.path.to_string_lossy())
    );
    out.push_str(&indented(&printable(state), 6, style.width));
    for site in &library.sites {
        out.push_str(&indented(&printable(site), 8, style.width));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use tlsprof_common::golden;

    fn services() -> Vec<ListedService> {
        let library = |state, sites: &[&str]| ListedLibrary {
            kind: "OpenSSL".into(),
            version: "3.0.17".into(),
            path: "/usr/lib/x86_64-linux-gnu/libssl.so.3".into(),
            state,
            handshakes: true,
            steps: true,
            sites: sites.iter().map(|site| (*site).to_owned()).collect(),
        };
        vec![
            ListedService {
                name: "nginx.service".into(),
                executable: "/usr/sbin/nginx".into(),
                pids: vec![811, 812, 813],
                ports: vec![443, 8443],
                libraries: vec![library(
                    LibraryState::Supported("handshakes and steps, from library probes".into()),
                    &[
                        "SSL_free+4: push %rbx, emulated",
                        "EVP_PKEY_derive+0: sub, single-stepped",
                    ],
                )],
            },
            ListedService {
                name: "odd\x1b[31m.service".into(),
                executable: "/opt/odd".into(),
                pids: vec![99],
                ports: vec![],
                libraries: vec![library(
                    LibraryState::Unsupported("stripped, and SSL_free is not exported".into()),
                    &[],
                )],
            },
            ListedService {
                name: "http".into(),
                executable: "/opt/hcl/domino/http".into(),
                pids: vec![5],
                ports: vec![80, 443, 1352, 8080, 8443],
                libraries: vec![],
            },
        ]
    }

    #[test]
    fn snapshots_of_the_text() {
        let style = Style::plain(80);
        golden::snapshot("list.txt", &text(&services(), false, false, style));
        golden::snapshot("list-verbose.txt", &text(&services(), true, true, style));
    }

    #[test]
    fn those_that_listen_come_first_and_of_these_the_best_profiled() {
        let mut services = services();
        let nginx = ListedService {
            name: "listener".into(),
            ..services[1].clone()
        };
        services.push(ListedService {
            ports: vec![22],
            ..nginx
        });
        services.reverse();
        sort(&mut services);
        let names: Vec<&str> = services.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            ["nginx.service", "listener", "http", "odd\x1b[31m.service"]
        );
    }

    #[test]
    fn the_version_is_that_of_the_file_that_says_it() {
        let name = |files: &[(&'static str, &'static str)]| library_name(files.iter().copied());
        assert_eq!(
            name(&[("OpenSSL", ""), ("OpenSSL", "3.0.19")]),
            "OpenSSL 3.0.19"
        );
        assert_eq!(name(&[("unknown", "1"), ("GnuTLS", "")]), "GnuTLS");
        assert_eq!(name(&[("unknown", "")]), "unknown TLS library");
    }

    #[test]
    fn how_a_service_is_profiled_is_said_of_what_is_there() {
        let with = |handshakes, steps| {
            let mut service = services().remove(0);
            for one in &mut service.libraries {
                (one.handshakes, one.steps) = (handshakes, steps);
            }
            service.how()
        };
        assert_eq!(with(true, true), "OpenSSL 3.0.17, handshakes and steps");
        assert_eq!(with(true, false), "OpenSSL 3.0.17, handshakes");
        assert_eq!(
            with(false, true),
            "part of OpenSSL 3.0.17: handshakes from its socket calls"
        );
    }

    #[test]
    fn an_empty_list_says_so() {
        let text = text(&[], false, false, Style::plain(80));
        assert_eq!(text, "No service listens on a TCP port.\n");
    }

    #[test]
    fn json_has_the_state_and_its_detail() {
        let value: serde_json::Value = serde_json::from_str(&json(&services()).unwrap()).unwrap();
        let state = &value[1]["libraries"][0]["state"];
        assert_eq!(state["state"], "unsupported");
        assert_eq!(state["detail"], "stripped, and SSL_free is not exported");
    }
}
