//! `tlsprof list`: the services found, and how each would be profiled.

use std::path::PathBuf;

use serde::Serialize;

use super::json;
use super::terminal::units::counted;
use super::terminal::{Paint, Style, indented, printable};

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

/// The list as text; `verbose` adds the probe sites.
pub fn text(services: &[ListedService], verbose: bool, style: Style) -> String {
    if services.is_empty() {
        return indented(
            "No service with a TLS library was found. `tlsprof list --all` shows services \
             without one.",
            0,
            style.width,
        );
    }
    let services = services.iter();
    let texts: Vec<String> = services.map(|one| service(one, verbose, style)).collect();
    texts.join("\n")
}

/// The list as indented JSON, ended by a newline.
///
/// # Errors
/// When a path is not UTF-8.
pub fn json(services: &[ListedService]) -> Result<String, serde_json::Error> {
    json::indented(&services)
}

fn service(service: &ListedService, verbose: bool, style: Style) -> String {
    let mut out = style.paint(Paint::Bold, &printable(&service.name));
    out.push('\n');
    let mut facts = vec![
        printable(&service.executable.to_string_lossy()).into_owned(),
        processes(&service.pids, verbose),
    ];
    if !service.ports.is_empty() {
        let ports: Vec<String> = service.ports.iter().map(u16::to_string).collect();
        facts.push(format!("listens on {}", ports.join(", ")));
    }
    out.push_str(&indented(&facts.join(" · "), 2, style.width));
    if service.libraries.is_empty() {
        out.push_str("  no TLS library\n");
    }
    for one in &service.libraries {
        out.push_str(&library(one, verbose, style));
    }
    out
}

fn processes(pids: &[u32], verbose: bool) -> String {
    let number = pids.len() as u64;
    match pids {
        [pid] => format!("pid {pid}"),
        [first, ..] if !verbose => {
            format!(
                "{} (pid {first}, ...)",
                counted(number, "process", "processes")
            )
        }
        _ => {
            let all: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("pids {}", all.join(" "))
        }
    }
}

fn library(library: &ListedLibrary, verbose: bool, style: Style) -> String {
    let (paint, mark, state) = match &library.state {
        LibraryState::Supported(how) => (Paint::Green, "✓", how),
        LibraryState::Unsupported(why) => (Paint::Yellow, "✗", why),
    };
    let name = format!("{} {}", library.kind, library.version);
    let mut out = format!(
        "  {} {} · {}\n",
        style.paint(paint, mark),
        printable(name.trim_end()),
        printable(&library.path.to_string_lossy())
    );
    out.push_str(&indented(&printable(state), 4, style.width));
    if verbose {
        for site in &library.sites {
            out.push_str(&indented(&printable(site), 6, style.width));
        }
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
        ]
    }

    #[test]
    fn snapshots_of_the_text() {
        let style = Style::plain(80);
        golden::snapshot("list.txt", &text(&services(), false, style));
        golden::snapshot("list-verbose.txt", &text(&services(), true, style));
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        assert!(text(&[], false, Style::plain(80)).contains("list --all"));
    }

    #[test]
    fn json_has_the_state_and_its_detail() {
        let value: serde_json::Value = serde_json::from_str(&json(&services()).unwrap()).unwrap();
        let state = &value[1]["libraries"][0]["state"];
        assert_eq!(state["state"], "unsupported");
        assert_eq!(state["detail"], "stripped, and SSL_free is not exported");
    }
}
