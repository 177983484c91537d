//! SIGHUP: the agent reads its configuration again, and keeps its counters and its history.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};

use super::notices::Notices;
use super::service_manager;
use crate::config::Config;
use tlsprof_common::causes::one_line;

/// Reads the configuration again when it is asked to.
pub(super) struct Reload<'a> {
    asked: Arc<AtomicBool>,
    load: &'a dyn Fn() -> Result<Config>,
    current: Config,
}

impl<'a> Reload<'a> {
    /// `current` is what `load` has read.
    pub fn new(load: &'a dyn Fn() -> Result<Config>, current: Config) -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&asked))
            .context("cannot handle signals")?;
        Ok(Self {
            asked,
            load,
            current,
        })
    }

    /// The new configuration if there was a signal. One that is not valid changes nothing; the
    /// log says what is wrong with it.
    pub fn take(&mut self, notices: Notices) -> Option<&Config> {
        if !self.asked.swap(false, Ordering::Relaxed) {
            return None;
        }
        service_manager::reloading();
        let loaded = (self.load)();
        service_manager::ready();
        let new = loaded
            .inspect_err(|error| {
                let error = one_line(&**error);
                tracing::error!("{error}. The configuration stays as it was");
            })
            .ok()?;
        let waiting = not_taken_over(&self.current, &new);
        if waiting.is_empty() {
            notices.say("configuration reloaded");
        } else {
            let waiting = waiting.join(", ");
            tracing::warn!(
                "configuration reloaded; restart the agent for the changes of {waiting}"
            );
        }
        self.current.agent.budget = new.agent.budget;
        self.current.findings = new.findings;
        Some(&self.current)
    }
}

/// What differs and is only looked at when the agent starts.
fn not_taken_over(current: &Config, new: &Config) -> Vec<&'static str> {
    let changes = [
        ("agent.listen", current.agent.listen != new.agent.listen),
        ("agent.keep", current.agent.keep != new.agent.keep),
        (
            "agent.web_config",
            current.agent.web_config != new.agent.web_config,
        ),
        ("[profile]", current.profile != new.profile),
        ("[limits]", current.limits != new.limits),
    ];
    let changed = changes.into_iter().filter(|(_, differs)| *differs);
    changed.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("tlsprof.toml")).unwrap()
    }

    #[test]
    fn what_needs_a_restart_is_named() {
        let current = Config::default();
        let live = config("[agent]\nbudget = 0.02\n[findings]\nmin_handshakes = 5\n");
        assert!(not_taken_over(&current, &live).is_empty());
        let other = config("[agent]\nlisten = \"127.0.0.1:1\"\n[limits]\nservices = 3\n");
        assert_eq!(
            not_taken_over(&current, &other),
            ["agent.listen", "[limits]"]
        );
        let other = config("[agent]\nweb_config = \"a\"\n[profile]\nsteps = \"off\"\n");
        assert_eq!(
            not_taken_over(&current, &other),
            ["agent.web_config", "[profile]"]
        );
    }

    #[test]
    fn what_is_not_valid_changes_nothing() {
        let load = || {
            Ok(Config::parse(
                "[findings]\nmin_handshakes = 0\n",
                Path::new("x"),
            )?)
        };
        let mut reload = Reload::new(&load, Config::default()).unwrap();
        assert!(reload.take(Notices { quiet: true }).is_none());
        reload.asked.store(true, Ordering::Relaxed);
        assert!(reload.take(Notices { quiet: true }).is_none());
        assert_eq!(reload.current, Config::default());
    }
}
