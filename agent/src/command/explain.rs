//! `tlsprof explain`: the pages on findings.

use std::io;
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::print::print;
use tlsprof_advise::Kind;
use tlsprof_common::{did_you_mean, near};
use tlsprof_outlet::explain;
use tlsprof_outlet::terminal::Style;

pub(super) fn run(finding: Option<&str>) -> Result<ExitCode> {
    let style = Style::of(&io::stdout());
    let text = match finding {
        None => {
            let rows = Kind::all().iter().map(|kind| (kind.label, kind.summary));
            explain::index(rows, style)
        }
        Some(name) => explain::page(document(name)?, style),
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a finding; its name may have underscores, as metrics' labels have.
fn document(name: &str) -> Result<&'static str> {
    let asked = name.to_lowercase().replace('_', "-");
    match Kind::named(&asked) {
        Some(kind) => Ok(kind.page()),
        None => {
            let near = did_you_mean(&near(&asked, Kind::all().iter().map(|kind| kind.label)));
            bail!("no finding `{name}`{near}; `tlsprof explain` lists all")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn every_finding_has_a_page_that_fits_a_terminal() {
        for kind in Kind::all() {
            let text = explain::page(document(kind.label).unwrap(), Style::plain(80));
            assert!(text.contains(kind.label), "{text}");
            assert!(!text.contains("<!--") && !text.contains("]("), "{text}");
            // A line of code is as long as it is.
            let is_wide = |line: &&str| !line.starts_with("    ") && line.chars().count() > 80;
            assert_eq!(text.lines().find(is_wide), None);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_near_ones() {
        let error = document("slow_key_exchang").unwrap_err().to_string();
        assert!(
            error.contains("did you mean `slow-key-exchange`?"),
            "{error}"
        );
        assert!(document("slow_key_exchange").is_ok());
    }
}
