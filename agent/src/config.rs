//! The configuration file: TOML, every key optional.
//!
//! `docs/configuration.md` documents each key. Unknown keys and wrong values are
//! errors that name the file, the line and the key; nothing is ignored.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::session::Keep;
use tlsprof_advise::Thresholds;
use tlsprof_common::ConfigError;
use tlsprof_kernel::connections::ConnectionHooks;
use tlsprof_kernel::object::UprobeMode;
use tlsprof_ledger::Limits as LedgerLimits;

mod check;
mod values;
mod written;

pub(crate) use values::parse_duration;
use values::{address, at_least_one, duration, file, frequency, share, uprobes};

/// Where the configuration is when no `--config` names another file.
pub(crate) const DEFAULT_PATH: &str = "/etc/tlsprof/tlsprof.toml";

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// `[agent]`
    pub agent: Agent,
    /// `[profile]`
    pub(crate) profile: Profile,
    /// `[limits]`
    pub limits: Limits,
    /// `[findings]`
    #[serde(with = "Findings")]
    pub findings: Thresholds,
}

/// `[agent]`: the daemon.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Where metrics are served.
    #[serde(deserialize_with = "address")]
    pub(crate) listen: SocketAddr,
    /// The web configuration file of the listener: TLS, users, headers.
    #[serde(deserialize_with = "file", serialize_with = "written::file")]
    pub(crate) web_config: Option<PathBuf>,
    /// Share of the targets' CPU time that profiling may cost, over 0 up to 1.
    #[serde(deserialize_with = "share")]
    pub(crate) budget: f64,
    /// What the budget must not take.
    pub keep: Keep,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            // Loopback: service names and versions are nobody else's business
            // unless the administrator says so.
            listen: ([127, 0, 0, 1], 9843).into(),
            web_config: None,
            budget: 0.01,
            keep: Keep::default(),
        }
    }
}

/// When the probes of handshake steps are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepProbes {
    /// Public-key steps always, key derivation in windows.
    #[default]
    Auto,
    /// All, always. Key derivation alone is 20 calls a handshake.
    Always,
    /// Never: reports have the cost of handshakes, not of their steps.
    Off,
}

/// Whether TLS libraries are probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LibraryProbes {
    /// Those that are known.
    #[default]
    Auto,
    /// None: handshakes are seen from socket calls only.
    Off,
}

/// `[profile]`: how much is measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Whether TLS libraries are probed.
    pub library: LibraryProbes,
    /// When step probes are attached.
    pub steps: StepProbes,
    /// How uprobes are attached; None for the best that the kernel has.
    #[serde(deserialize_with = "uprobes", serialize_with = "written::uprobes")]
    pub(crate) uprobes: Option<UprobeMode>,
    /// How much of TCP connections is followed.
    pub connections: ConnectionHooks,
    /// With `auto`: how long the probes of key derivation stay attached.
    #[serde(deserialize_with = "duration", serialize_with = "written::duration")]
    pub(crate) key_derivation_window: Duration,
    /// With `auto`: how often they are attached, from begin to begin.
    #[serde(deserialize_with = "duration", serialize_with = "written::duration")]
    pub(crate) key_derivation_interval: Duration,
    /// CPU samples a second on each CPU; 0 for none, None for as many as suit the command.
    #[serde(deserialize_with = "frequency", serialize_with = "written::frequency")]
    pub(crate) sample_frequency: Option<u32>,
    /// The file that describes the kernel's types, for kernels that do not show them.
    #[serde(deserialize_with = "file", serialize_with = "written::file")]
    pub btf: Option<PathBuf>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            library: LibraryProbes::default(),
            steps: StepProbes::default(),
            uprobes: None,
            connections: ConnectionHooks::default(),
            key_derivation_window: Duration::from_secs(1),
            key_derivation_interval: Duration::from_secs(20),
            sample_frequency: None,
            btf: None,
        }
    }
}

/// `[limits]`: memory is bounded by these.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Services kept apart.
    #[serde(deserialize_with = "at_least_one")]
    pub services: usize,
    /// Sets of labels kept apart for each service.
    #[serde(deserialize_with = "at_least_one")]
    pub label_sets: usize,
    /// Handshakes in progress at once, on the whole host.
    #[serde(deserialize_with = "at_least_one")]
    pub handshakes_in_progress: u32,
    /// How long nothing may move on a connection in a handshake.
    #[serde(deserialize_with = "duration", serialize_with = "written::duration")]
    pub(crate) handshake_silence: Duration,
    /// Different CPU samples in one second, on the whole host.
    #[serde(deserialize_with = "at_least_one")]
    pub samples: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let LedgerLimits {
            services,
            label_sets,
        } = LedgerLimits::default();
        Self {
            services,
            label_sets,
            handshakes_in_progress: 32_768,
            handshake_silence: Duration::from_secs(600),
            samples: 8192,
        }
    }
}

/// `[findings]`: when a report has findings, with the checks of their values.
#[derive(Deserialize, Serialize)]
#[serde(
    remote = "Thresholds",
    default = "Thresholds::default",
    deny_unknown_fields
)]
struct Findings {
    /// Handshakes or connections on which a finding must rest.
    #[serde(deserialize_with = "at_least_one")]
    min_handshakes: u64,
    /// Share of the service's CPU time that a change must save, over 0 up to 1.
    #[serde(deserialize_with = "share")]
    min_saving: f64,
}

impl From<&Limits> for LedgerLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            services: limits.services,
            label_sets: limits.label_sets,
        }
    }
}

impl Config {
    /// Reads `path`, or [`DEFAULT_PATH`] where that exists, or takes the
    /// defaults.
    ///
    /// # Errors
    /// When a file cannot be read or is not valid. That the default file does
    /// not exist is no error.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        match Self::read(path)? {
            Some((file, text)) => Self::parse(&text, file),
            None => Ok(Self::default()),
        }
    }

    /// The file that [`load`](Self::load) takes, and its text; None for the defaults.
    ///
    /// # Errors
    /// When it cannot be read. That the default file does not exist is no error.
    pub fn read(path: Option<&Path>) -> Result<Option<(&Path, String)>, ConfigError> {
        let file = path.unwrap_or_else(|| Path::new(DEFAULT_PATH));
        match fs::read_to_string(file) {
            Ok(text) => Ok(Some((file, text))),
            Err(error) if path.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Read {
                path: file.to_owned(),
                source,
            }),
        }
    }

    /// Parses the text of the file at `path`.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let invalid = |span: Option<Range<usize>>, message: &str| {
            let (line, key) = locate(text, span.map_or(0, |span| span.start));
            ConfigError::Invalid {
                path: path.to_owned(),
                line,
                key,
                message: message.trim_end().replace('\n', ", "),
            }
        };
        let config: Self =
            toml::from_str(text).map_err(|error| invalid(error.span(), error.message()))?;
        let profile = &config.profile;
        if profile.key_derivation_window > profile.key_derivation_interval {
            let at = text.find("key_derivation_").map(|at| at..at);
            return Err(invalid(
                at,
                "the window must not be longer than the interval",
            ));
        }
        Ok(config)
    }
}

/// The line (from 1) at a byte offset, and the key on it with its section.
fn locate(text: &str, offset: usize) -> (usize, String) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count();
    let section = |text: &str| -> Option<String> {
        let inner = text.trim().strip_prefix('[')?.split(']').next()?;
        Some(inner.trim().to_owned())
    };
    let here = text.lines().nth(line).unwrap_or_default();
    let key = here.split_once('=').map(|(key, _)| key.trim().to_owned());
    let Some(key) = key else {
        return (line + 1, section(here).unwrap_or_default());
    };
    match before.lines().rev().find_map(section) {
        Some(section) => (line + 1, format!("{section}.{key}")),
        None => (line + 1, key),
    }
}

#[cfg(test)]
mod tests;
