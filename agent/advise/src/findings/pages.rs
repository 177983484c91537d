//! Tests of the pages in docs/findings: each finding has one, with the remedies and the
//! risk that the report shows, and a line in their index.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::ALL;
use super::resumption_refused::{Cause, KIND as REFUSED, since};
use crate::finding::{Kind, Target};
use crate::{Hybrid, Remedy, Server};
use tlsprof_common::{Role, golden};

const BEGIN: &str = "from agent/advise/src/findings";

fn page(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings");
    Path::new(folder).join(name)
}

/// Checks the part of a page that the program says too.
fn check(name: &str, part: &str) {
    golden::check_part(page(name).to_str().unwrap(), BEGIN, part);
}

fn says_the_same(one: &Remedy, other: &Remedy) -> bool {
    (one.change, one.directive) == (other.change, other.directive)
}

fn remedy(kind: &Kind, role: Role, server: Server, hybrid: Hybrid) -> Remedy {
    let target = Target {
        role,
        server,
        hybrid,
    };
    Remedy::of(kind, target)
}

/// The remedies and the risk of a finding.
fn remedies(kind: &Kind) -> String {
    let mut text = String::from("\n");
    for (role, _) in kind.rules {
        if kind.rules.len() > 1 {
            let _ = writeln!(text, "As a {}:\n", role.label());
        }
        let of = |server, hybrid| remedy(kind, *role, server, hybrid);
        let general = of(Server::Unknown, Hybrid::Has);
        for server in Server::ALL {
            let remedy = of(server, Hybrid::Has);
            if server != Server::Unknown && says_the_same(&remedy, &general) {
                continue;
            }
            let _ = writeln!(text, "**{}.** {}\n", server.label(), remedy.change);
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
    if *kind == REFUSED {
        text.push_str(&by_cause());
    }
    let _ = writeln!(text, "**Risk.** {}\n", kind.risk);
    text
}

/// Where the cause is known: the servers that have a remedy of their own for it.
fn by_cause() -> String {
    let mut text = String::new();
    for cause in Cause::ALL {
        let mut remedies = String::new();
        for server in Server::ALL {
            let remedy = Remedy::new(server, since(cause, server));
            let usual = self::remedy(&REFUSED, Role::Server, server, Hybrid::Has);
            if remedy.directive.is_empty() || remedy == usual {
                continue;
            }
            let _ = writeln!(remedies, "**{}.** {}\n", server.label(), remedy.change);
            let _ = writeln!(remedies, "```\n{}\n```\n", remedy.directive);
        }
        if !remedies.is_empty() {
            let _ = write!(text, "If {}:\n\n{remedies}", cause.label());
        }
    }
    text
}

#[test]
fn each_page_shows_the_remedies_and_the_risk() {
    for kind in ALL {
        check(&format!("{}.md", kind.label), &remedies(kind));
    }
}

#[test]
fn each_page_belongs_to_a_finding_and_the_index_names_it() {
    let files: BTreeSet<String> = std::fs::read_dir(page(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let expected: BTreeSet<String> = ALL
        .iter()
        .map(|kind| format!("{}.md", kind.label))
        .collect();
    assert_eq!(files, expected);
    assert_eq!(expected.len(), ALL.len(), "labels are unique");
    let mut index = "| finding | what is wrong |\n| --- | --- |\n".to_owned();
    for Kind { label, summary, .. } in ALL {
        let _ = writeln!(index, "| [{label}]({label}.md) | {summary} |");
    }
    check("README.md", &index);
}

#[test]
fn each_page_has_all_parts() {
    for kind in ALL {
        let page = std::fs::read_to_string(page(&format!("{}.md", kind.label))).unwrap();
        let label = format!("\n`{}`\n", kind.label);
        for part in [
            label.as_str(),
            "\n## How tlsprof knows\n",
            "\n## What to change\n",
            "\n## What it saves\n",
        ] {
            assert!(page.contains(part), "{kind:?}: {part}");
        }
        // Not the page of another finding.
        assert!(kind.page().contains(&label), "{kind:?}");
    }
}

#[test]
fn every_remedy_says_something() {
    for kind in ALL {
        let servers = Server::ALL.into_iter();
        for (server, hybrid) in servers.flat_map(|one| Hybrid::ALL.map(|hybrid| (one, hybrid))) {
            for (role, _) in kind.rules {
                let remedy = remedy(kind, *role, server, hybrid);
                assert!(remedy.change.ends_with('.'), "{kind:?} {server:?}");
                // Directives are shown with an indentation at 80 columns.
                let wide = |line: &str| line.chars().count() > 72;
                assert!(!remedy.directive.lines().any(wide), "{kind:?} {server:?}");
            }
        }
    }
}
