//! What comes with the program: manual pages and shell completions, both from the definition of
//! the command line.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, ValueEnum as _};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::definition;
use crate::config::DEFAULT_PATH;

/// Writes the completions for a shell.
pub(crate) fn completions(shell: Shell, out: &mut dyn Write) {
    clap_complete::generate(shell, &mut definition(), "tlsprof", out);
}

/// The manual page of the command with these words, of tlsprof itself without any; None where there
/// is no such command.
pub(crate) fn manual(words: &[String]) -> Option<Vec<u8>> {
    let root = built();
    let mut command = &root;
    for word in words {
        command = shown(command).find(|one| one.get_name() == word.as_str())?;
    }
    let mut page = Vec::new();
    // Memory has room.
    render(command, &root, &mut page).ok()?;
    Some(page)
}

/// Writes all manual pages to `FOLDER/man`, and completions for all shells to
/// `FOLDER/completions`.
///
/// # Errors
/// When they cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    let (pages, scripts) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&scripts)?;
    let root = built();
    write_pages(&root, &root, &pages)?;
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut definition(), "tlsprof", &scripts)?;
    }
    Ok(())
}

fn write_pages(command: &Command, root: &Command, folder: &Path) -> io::Result<()> {
    let path = folder.join(format!("{}.1", name(command)));
    render(command, root, &mut File::create(path)?)?;
    shown(command).try_for_each(|one| write_pages(one, root, folder))
}

fn built() -> Command {
    let mut root = definition().disable_help_subcommand(true);
    root.build();
    root
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

/// `tlsprof-report`.
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn render(command: &Command, root: &Command, out: &mut dyn Write) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let man = Man::new(command.clone().override_usage(usage))
        .source(format!("tlsprof {}", env!("CARGO_PKG_VERSION")))
        .manual("tlsprof");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    options(&man, out)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    table(&mut rest, "EXIT STATUS", &exit_statuses(name(command)));
    table(&mut rest, "FILES", &FILES);
    table(&mut rest, "ENVIRONMENT", &ENVIRONMENT);
    examples(&mut rest, command);
    see_also(&mut rest, command, root);
    rest.to_writer(out)
}

/// All options in one section: each heading of the help becomes a part of it.
fn options(man: &Man, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    man.render_options_section(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    writeln!(out, ".SH OPTIONS")?;
    for line in text.lines().filter(|line| *line != ".SH OPTIONS") {
        writeln!(out, "{}", line.replacen(".SH ", ".SS ", 1))?;
    }
    Ok(())
}

fn table(roff: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (head, text) in rows {
        roff.control("TP", []);
        roff.text([bold(*head)]);
        roff.text([roman(*text)]);
    }
}

/// What the examples at the end of the help are preceded by.
const EXAMPLES: &str = "Examples:\n";

fn examples(roff: &mut Roff, command: &Command) {
    let Some(text) = command.get_after_help().map(ToString::to_string) else {
        return;
    };
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for line in text.trim_start_matches(EXAMPLES).lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

fn see_also(roff: &mut Roff, command: &Command, root: &Command) {
    let all = [root].into_iter().chain(shown(root));
    let others = all.filter(|one| name(one) != name(command));
    let pages: Vec<String> = others.map(|one| format!("{}(1)", name(one))).collect();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(format!(
        "{}, capabilities(7). Packages install the documentation in /usr/share/doc/tlsprof.",
        pages.join(", ")
    ))]);
}

const FILES: [(&str, &str); 1] = [(
    DEFAULT_PATH,
    "The configuration, unless --config names another file. `tlsprof config show` writes all settings.",
)];

const ENVIRONMENT: [(&str, &str); 1] = [(
    "NO_COLOR",
    "If set and not empty, output has no colours. Output that is not a terminal never has any.",
)];

const SUCCESS: (&str, &str) = ("0", "Success.");
const FAILURE: (&str, &str) = ("1", "Failure; a message on standard error says what to do.");
const USAGE: (&str, &str) = ("2", "Wrong usage.");

/// The exit statuses of a command, by the name of its page.
fn exit_statuses(page: &str) -> Vec<(&'static str, &'static str)> {
    match page {
        "tlsprof-doctor" => vec![
            ("0", "The host is ready: it can be profiled."),
            (
                "1",
                "It is not; the first line of the output says what to do.",
            ),
            USAGE,
        ],
        "tlsprof-report" => vec![
            (
                "0",
                "The report was written, and COMMAND succeeded, if any, or was ended by --duration.",
            ),
            (
                "1",
                "tlsprof failed; a message on standard error says what to do.",
            ),
            USAGE,
            (
                "other",
                "That of COMMAND, which may also be 1 or 2: 128 + N if signal N ended it. The report was written.",
            ),
        ],
        "tlsprof-compare" => vec![
            SUCCESS,
            (
                "1",
                "A report cannot be read, or, with --fail-if-worse, a figure is worse.",
            ),
            USAGE,
        ],
        "tlsprof-config-check" => vec![
            ("0", "The configuration is valid."),
            ("1", "It is not, or cannot be read."),
            USAGE,
        ],
        _ => vec![SUCCESS, FAILURE, USAGE],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn page(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        manual(&words).map(|page| String::from_utf8(page).unwrap())
    }

    #[test]
    fn each_page_has_all_sections() {
        for words in [
            &[][..],
            &["report"],
            &["doctor"],
            &["config"],
            &["config", "check"],
        ] {
            let page = page(words).unwrap();
            for section in [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "OPTIONS",
                "\"EXIT STATUS\"",
                "FILES",
                "ENVIRONMENT",
                "EXAMPLES",
                "\"SEE ALSO\"",
            ] {
                let heading = format!("\n.SH {section}\n");
                assert_eq!(
                    page.matches(&heading).count(),
                    1,
                    "{words:?} {section}: {page}"
                );
            }
        }
    }

    #[test]
    fn the_synopsis_has_the_arguments() {
        let page = page(&["report"]).unwrap();
        assert!(page.contains("[\\-\\- <COMMAND>...]"), "{page}");
        assert!(page.contains(".SS \"WHAT TO PROFILE\""), "{page}");
    }

    #[test]
    fn there_is_no_page_of_what_is_no_command() {
        assert_eq!(page(&["internal"]), None);
        assert_eq!(page(&["report", "check"]), None);
    }

    #[test]
    fn all_shells_complete_commands() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            completions(*shell, &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("cpu-breakdown"), "{shell}");
        }
    }
}
