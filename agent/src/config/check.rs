//! All errors of a configuration file, and the effective configuration as a file.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use super::Config;
use tlsprof_common::ConfigError;

/// Errors that are reported at most.
const MOST: usize = 50;

impl Config {
    /// All errors in the text of the file at `path`, in the order of its lines; none if it is
    /// valid.
    pub fn errors(text: &str, path: &Path) -> Vec<ConfigError> {
        let mut text = text.to_owned();
        let mut errors = Vec::new();
        while errors.len() < MOST
            && let Err(error) = Self::parse(&text, path)
        {
            let line = error.line();
            errors.push(error);
            // The parser ends at its first error: it goes on without that line.
            match line.and_then(|line| blanked(&text, line)) {
                Some(rest) => text = rest,
                None => break,
            }
        }
        errors.sort_by_key(ConfigError::line);
        errors
    }

    /// This configuration as TOML, each key that `given`, the text of a file, does not have marked
    /// as a default.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub(crate) fn written(&self, given: &str) -> Result<String, toml::ser::Error> {
        let given: toml::Table = given.parse().unwrap_or_default();
        let mut section = String::new();
        let mut out = String::new();
        for line in toml::to_string(self)?.lines() {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                name.clone_into(&mut section);
            }
            let key = line.split_once(" = ").map(|(key, _)| key);
            let is_given = |key| {
                given
                    .get(&section)
                    .is_some_and(|table| table.get(key).is_some())
            };
            let remark = match key {
                Some(key) if !is_given(key) => "  # default",
                _ => "",
            };
            // A string takes what is written to it.
            let _ = writeln!(out, "{line}{remark}");
        }
        Ok(out)
    }
}

/// The text without a line, counted from 1, or without a whole section where that line begins
/// one; the other lines keep their numbers. None where there is nothing left to take out.
fn blanked(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = line.checked_sub(1)?;
    let is_section = |line: &&str| line.trim_start().starts_with('[');
    let gone: Range<usize> = match lines.get(at).filter(|line| is_section(line)) {
        Some(_) => {
            let next = lines.iter().skip(line).position(is_section);
            at..next.map_or(lines.len(), |next| line + next)
        }
        None => at..line,
    };
    lines.get(at).filter(|line| !line.trim().is_empty())?;
    let kept = lines.iter().enumerate();
    let kept = kept.map(|(at, line)| if gone.contains(&at) { "" } else { line });
    Some(kept.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::time::Duration;
    use tlsprof_kernel::object::UprobeMode;

    fn errors(text: &str) -> Vec<String> {
        let errors = Config::errors(text, Path::new("t.toml"));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_errors_are_found_with_line_and_key() {
        let found = errors(
            "[agent]\nlisten = 7\nbudget = 0.02\nlissen = 1\n[no_such]\na = 1\nb = 2\n\
             [limits]\nservices = 0\n[profile]\nsteps \"off\"\n",
        );
        let begins = [
            "t.toml:2: agent.listen: invalid type",
            "t.toml:4: agent.lissen: unknown field",
            "t.toml:5: no_such: unknown field",
            "t.toml:9: limits.services: must be at least 1",
            "t.toml:11: ",
        ];
        assert_eq!(found.len(), begins.len(), "{found:?}");
        for (error, begin) in found.iter().zip(begins) {
            assert!(error.starts_with(begin), "{found:?}");
        }
    }

    #[test]
    fn a_valid_file_has_none() {
        assert_eq!(errors(""), [""; 0]);
        assert_eq!(errors("[agent]\nbudget = 0.02\n"), [""; 0]);
    }

    #[test]
    fn windows_longer_than_their_interval_are_one_error() {
        let found =
            errors("[profile]\nkey_derivation_window = \"2m\"\nkey_derivation_interval = \"1m\"\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let mut config = Config::default();
        let again = |config: &Config| {
            let text = config.written("").unwrap();
            Config::parse(&text, Path::new("x")).unwrap()
        };
        assert_eq!(again(&config), config);
        config.agent.web_config = Some("/etc/web.yml".into());
        config.profile.uprobes = Some(UprobeMode::Single);
        config.profile.key_derivation_interval = Duration::from_millis(90_500);
        assert_eq!(again(&config), config);
    }

    #[test]
    fn defaults_are_marked() {
        let given = "[agent]\nbudget = 0.02\n";
        let config = Config::parse(given, Path::new("x")).unwrap();
        let text = config.written(given).unwrap();
        assert!(text.contains("\nbudget = 0.02\n"), "{text}");
        assert!(
            text.contains("\nlisten = \"127.0.0.1:9843\"  # default\n"),
            "{text}"
        );
    }
}
