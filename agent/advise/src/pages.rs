//! Tests of the pages in docs/findings: each finding has one, with the remedies and the
//! risk as the report tells them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::cause::Cause;
use super::remedies::refused_since;
use super::{Hybrid, Id, Remedy, Server, remedy};
use tlsprof_common::{Role, golden};

const BEGIN: &str = "<!-- from agent/advise/src/remedies -->\n";
const END: &str = "<!-- end -->\n";

/// The finding whose cause may be known.
const ID: Id = Id::ResumptionRefused;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn says_the_same(one: &Remedy, other: &Remedy) -> bool {
    (one.change, one.directive) == (other.change, other.directive)
}

/// The part of a page that the program says too.
fn remedies(id: Id) -> String {
    let mut text = String::from("\n");
    let roles: &[Role] = match id {
        Id::ResumptionNotOffered => &[Role::Server, Role::Client],
        Id::UpstreamKeepAliveOff | Id::EphemeralPorts => &[Role::Client],
        _ => &[Role::Server],
    };
    for role in roles {
        if roles.len() > 1 {
            let _ = writeln!(text, "As a {}:\n", role.label());
        }
        let of = |server, hybrid| remedy(id, *role, (server, hybrid));
        let general = of(Server::Unknown, Hybrid::Has);
        for server in Server::ALL {
            let remedy = of(server, Hybrid::Has);
            if server != Server::Unknown && says_the_same(&remedy, &general) {
                continue;
            }
            let _ = writeln!(text, "**{}.** {}\n", server.name(), remedy.change);
            if !remedy.directive.is_empty() {
                let _ = writeln!(text, "```\n{}\n```\n", remedy.directive);
            }
            let older = of(server, Hybrid::Lacks);
            if !says_the_same(&older, &remedy) {
                let _ = writeln!(
                    text,
                    "With OpenSSL before 3.5:\n\n```\n{}\n```\n",
                    older.directive
                );
            }
        }
    }
    if id == ID {
        text.push_str(&by_cause());
    }
    let _ = writeln!(text, "**Risk.** {}\n", id.risk());
    text
}

/// Where the cause is known: the servers that have a remedy of their own for it.
fn by_cause() -> String {
    let mut text = String::new();
    for cause in Cause::ALL {
        let mut remedies = String::new();
        for server in Server::ALL {
            let remedy = refused_since(cause, server);
            if remedy.directive.is_empty()
                || remedy == super::remedy(ID, Role::Server, (server, Hybrid::Has))
            {
                continue;
            }
            let _ = writeln!(remedies, "**{}.** {}\n", server.name(), remedy.change);
            let _ = writeln!(remedies, "```\n{}\n```\n", remedy.directive);
        }
        if !remedies.is_empty() {
            let _ = write!(text, "If {}:\n\n{remedies}", cause.words());
        }
    }
    text
}

#[test]
fn each_page_tells_the_remedies_and_the_risk() {
    for id in Id::ALL {
        let path = root().join(id.page());
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let current = format!("{before}{BEGIN}{}{END}{after}", remedies(id));
        golden::check(path.to_str().unwrap(), &current);
    }
}

#[test]
fn each_page_belongs_to_a_finding_and_the_index_names_it() {
    let folder = root().join("docs/findings");
    let files: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let expected: BTreeSet<String> = Id::ALL
        .iter()
        .map(|id| format!("{}.md", id.label()))
        .collect();
    assert_eq!(files, expected);
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for name in expected {
        assert!(index.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn each_page_has_all_parts() {
    for id in Id::ALL {
        let page = std::fs::read_to_string(root().join(id.page())).unwrap();
        let label = format!("\n`{}`\n", id.label());
        for part in [
            label.as_str(),
            "\n## How tlsprof knows\n",
            "\n## What to change\n",
            "\n## What it saves\n",
        ] {
            assert!(page.contains(part), "{id:?}: {part}");
        }
    }
}
