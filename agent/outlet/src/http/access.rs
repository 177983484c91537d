//! The web configuration, as its files are now.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::web_config::{Contents, WebConfig};
use tlsprof_common::ConfigError;
use tlsprof_common::causes::one_line;

/// Tells each new connection what holds for it.
#[derive(Debug)]
pub struct Access(Kind);

#[derive(Debug)]
enum Kind {
    /// There is no file.
    Open(Arc<WebConfig>),
    File(PathBuf, Mutex<Seen>),
}

/// The files as they were last, and what came of them.
#[derive(Debug)]
struct Seen {
    contents: Contents,
    /// None where they are not valid.
    config: Option<Arc<WebConfig>>,
}

impl Access {
    /// Everyone, over plain HTTP.
    pub fn open() -> Self {
        Self(Kind::Open(Arc::default()))
    }

    /// As the web configuration file at `path` says.
    ///
    /// # Errors
    /// When the file, or one that it names, cannot be read or is not valid.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let mut contents = Contents::default();
        let config = Some(Arc::new(WebConfig::load(path, &mut contents)?));
        let seen = Seen { contents, config };
        Ok(Self(Kind::File(path.to_owned(), Mutex::new(seen))))
    }

    /// What holds for a new connection. None where the files have become
    /// invalid: then nobody is let in, as with other exporters, since what the
    /// administrator means is not known. The log says once what is wrong.
    ///
    /// Reads the files each time: they are small, and a certificate that was
    /// renewed holds from the next connection on.
    pub(super) fn now(&self) -> Option<Arc<WebConfig>> {
        let (path, seen) = match &self.0 {
            Kind::Open(config) => return Some(Arc::clone(config)),
            Kind::File(path, seen) => (path, seen),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contents.have_changed() {
            *seen = Seen::load(path);
        }
        seen.config.clone()
    }

    /// Whether it has TLS or asks for passwords.
    pub fn is_protected(&self) -> bool {
        let protects = |config: Arc<WebConfig>| config.tls.is_some() || config.users.is_some();
        self.now().is_none_or(protects)
    }

    /// The scheme of its address, `http` or `https`.
    pub(super) fn scheme(&self) -> &'static str {
        match self.now() {
            Some(config) if config.tls.is_some() => "https",
            _ => "http",
        }
    }
}

impl Seen {
    fn load(path: &Path) -> Self {
        let mut contents = Contents::default();
        let config = match WebConfig::load(path, &mut contents) {
            Ok(config) => {
                tracing::info!("{} was read again", path.display());
                Some(Arc::new(config))
            }
            Err(error) => {
                tracing::error!(
                    "{}. Nobody can read the metrics until this is fixed",
                    one_line(&error)
                );
                None
            }
        };
        Self { contents, config }
    }
}
