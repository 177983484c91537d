//! The configuration file: TOML, every key optional.
//!
//! `docs/configuration.md` documents each key. Unknown keys and wrong values are
//! errors that name the file, the line and the key; nothing is ignored.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use tlsprof_advise::Thresholds;
use tlsprof_common::ConfigError;
use tlsprof_kernel::connections::ConnectionHooks;
use tlsprof_kernel::object::UprobeMode;
use tlsprof_ledger::Limits as LedgerLimits;

/// Where the configuration is when no `--config` names another file.
pub const DEFAULT_PATH: &str = "/etc/tlsprof/tlsprof.toml";

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[agent]`
    pub agent: Agent,
    /// `[profile]`
    pub profile: Profile,
    /// `[limits]`
    pub limits: Limits,
    /// `[findings]`
    pub findings: Findings,
}

/// `[agent]`: the daemon.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Where metrics are served.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// The web configuration file of the listener: TLS, users, headers.
    #[serde(deserialize_with = "file")]
    pub web_config: Option<PathBuf>,
    /// Share of the targets' CPU time that probes may cost, over 0 up to 1.
    #[serde(deserialize_with = "share")]
    pub budget: f64,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            // Loopback: service names and versions are nobody else's business
            // unless the administrator says so.
            listen: ([127, 0, 0, 1], 9843).into(),
            web_config: None,
            budget: 0.01,
        }
    }
}

/// When the probes of handshake steps are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepProbes {
    /// Public-key steps always, key derivation in windows.
    #[default]
    Auto,
    /// All, always. Key derivation alone is 20 calls a handshake.
    Always,
    /// Never: reports tell the cost of handshakes, not of their steps.
    Off,
}

/// Whether TLS libraries are probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibraryProbes {
    /// Those that are known.
    #[default]
    Auto,
    /// None: handshakes are seen from socket calls only.
    Off,
}

/// `[profile]`: how much is measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Whether TLS libraries are probed.
    pub library: LibraryProbes,
    /// When step probes are attached.
    pub steps: StepProbes,
    /// How uprobes are attached; None for the best that the kernel has.
    #[serde(deserialize_with = "uprobes")]
    pub uprobes: Option<UprobeMode>,
    /// How much of TCP connections is followed.
    pub connections: ConnectionHooks,
    /// With `auto`: how long the probes of key derivation stay attached.
    #[serde(deserialize_with = "duration")]
    pub key_derivation_window: Duration,
    /// With `auto`: how often they are attached, from begin to begin.
    #[serde(deserialize_with = "duration")]
    pub key_derivation_interval: Duration,
    /// CPU samples a second on each CPU; 0 for none.
    #[serde(deserialize_with = "frequency")]
    pub sample_frequency: u32,
    /// Whether TLS ports are asked for the kind of key in their certificate.
    pub ask_certificates: bool,
    /// The file that describes the kernel's types, for kernels that do not show them.
    #[serde(deserialize_with = "file")]
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
            // A prime, not 100: work that a timer starts is not always, nor
            // never, seen.
            sample_frequency: 97,
            ask_certificates: false,
            btf: None,
        }
    }
}

/// `[limits]`: memory is bounded by these.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
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
    #[serde(deserialize_with = "duration")]
    pub handshake_silence: Duration,
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

/// `[findings]`: when a report tells what is wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Findings {
    /// Handshakes or connections on which a finding must rest.
    #[serde(deserialize_with = "at_least_one")]
    pub min_handshakes: u64,
    /// Share of the service's CPU time that a change must save, over 0 up to 1.
    #[serde(deserialize_with = "share")]
    pub min_saving: f64,
}

impl Default for Findings {
    fn default() -> Self {
        let Thresholds {
            min_handshakes,
            min_saving,
        } = Thresholds::default();
        Self {
            min_handshakes,
            min_saving,
        }
    }
}

impl From<&Findings> for Thresholds {
    fn from(findings: &Findings) -> Self {
        Self {
            min_handshakes: findings.min_handshakes,
            min_saving: findings.min_saving,
        }
    }
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
        let file = path.unwrap_or_else(|| Path::new(DEFAULT_PATH));
        match fs::read_to_string(file) {
            Ok(text) => Self::parse(&text, file),
            Err(error) if path.is_none() && error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
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

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is not an address and port, such as `127.0.0.1:9843` or `[::]:9843`"
        ))
    })
}

/// A path; empty for none.
fn file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Ok((!path.as_os_str().is_empty()).then_some(path))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(D::Error::custom)
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match f64::deserialize(deserializer)? {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(D::Error::custom(
            "must be over 0 and at most 1; 0.01 is one percent",
        )),
    }
}

/// More would cost the targets more than the default budget allows.
const HIGHEST_FREQUENCY: u32 = 1000;

fn frequency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        number if number <= HIGHEST_FREQUENCY => Ok(number),
        _ => Err(D::Error::custom(format!(
            "must be at most {HIGHEST_FREQUENCY}, and best a prime such as 97; 0 for no samples"
        ))),
    }
}

fn at_least_one<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + Default + PartialEq,
{
    let number = N::deserialize(deserializer)?;
    if number == N::default() {
        return Err(D::Error::custom("must be at least 1"));
    }
    Ok(number)
}

fn uprobes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UprobeMode>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "auto" => Ok(None),
        "multi" => Ok(Some(UprobeMode::Multi)),
        "single" => Ok(Some(UprobeMode::Single)),
        other => Err(D::Error::unknown_variant(
            other,
            &["auto", "multi", "single"],
        )),
    }
}

/// Parses a duration such as `30s`, `2m`, `500ms` or `1h 30m`; at most a year.
///
/// # Errors
/// A sentence that says what would be right.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let parsed = text.trim().parse::<jiff::SignedDuration>();
    let duration = parsed
        .ok()
        .and_then(|parsed| Duration::try_from(parsed).ok());
    match duration {
        Some(Duration::ZERO) => Err("must be longer than zero".to_owned()),
        Some(duration) if duration <= YEAR => Ok(duration),
        Some(_) => Err("must be at most a year".to_owned()),
        None => Err(format!(
            "`{text}` is not a duration, such as `30s`, `2m` or `500ms`"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn error(text: &str) -> String {
        let parsed = Config::parse(text, Path::new("tlsprof.toml"));
        parsed.unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_of_findings_are_those_of_the_rules() {
        assert_eq!(
            Thresholds::from(&Findings::default()),
            Thresholds::default()
        );
    }

    #[test]
    fn the_documented_example_is_the_default() {
        let page = include_str!("../../docs/configuration.md");
        let example = page.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let parsed = Config::parse(example, Path::new("docs/configuration.md")).unwrap();
        assert_eq!(parsed, Config::default());
        // It shows every key, so that none is undocumented.
        let keys = example.lines().filter(|line| line.contains(" = ")).count();
        assert_eq!(keys, 19);
    }

    #[test]
    fn the_configuration_for_domino_holds() {
        let file = include_str!("../../deploy/domino/tlsprof.toml");
        let parsed = Config::parse(file, Path::new("deploy/domino/tlsprof.toml")).unwrap();
        assert!(parsed.findings.min_handshakes < Config::default().findings.min_handshakes);
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(
            Config::parse("", Path::new("x")).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let text = error("[agent]\nlisten = \"127.0.0.1:9843\"\nlissen = 1\n");
        assert!(
            text.starts_with("tlsprof.toml:3: agent.lissen: unknown field `lissen`"),
            "{text}"
        );
        let text = error("# limits\n[limits]\nservices = \"many\"\n");
        assert!(
            text.starts_with("tlsprof.toml:3: limits.services: invalid type"),
            "{text}"
        );
        let text = error("[limits]\nlabel_sets = 0\n");
        assert_eq!(
            text,
            "tlsprof.toml:2: limits.label_sets: must be at least 1"
        );
        let text = error("[agent]\nlisten = \"9843\"\n");
        assert!(text.starts_with("tlsprof.toml:2: agent.listen: `9843` is not an address"));
        let text = error("[profile]\nsteps = \"often\"\n");
        assert!(
            text.contains(":2: profile.steps: unknown variant `often`"),
            "{text}"
        );
        let text = error("[profile]\nkey_derivation_window = \"soon\"\n");
        assert!(
            text.contains("profile.key_derivation_window: `soon` is not a duration"),
            "{text}"
        );
        let text = error("[profil]\n");
        assert!(
            text.starts_with("tlsprof.toml:1: profil: unknown field"),
            "{text}"
        );
        let text = error("a = [\n");
        assert!(text.starts_with("tlsprof.toml:"), "{text}");
        let text = error("[profile]\nkey_derivation_window = \"1m\"\n");
        assert!(
            text.contains(":2: profile.key_derivation_window: the window"),
            "{text}"
        );
    }

    #[test]
    fn a_named_file_must_exist() {
        let missing = Path::new("/nonexistent/tlsprof.toml");
        let text = Config::load(Some(missing)).unwrap_err().to_string();
        assert_eq!(
            text,
            "cannot read the configuration /nonexistent/tlsprof.toml"
        );
    }

    #[test]
    fn durations() {
        let cases = [
            ("30s", 30_000),
            ("2m", 120_000),
            ("500ms", 500),
            ("1h 30m", 5_400_000),
        ];
        for (text, millis) in cases {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "0s", "-3s", "30", "s", "400d", "99999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
