//! Why a configuration file cannot be used.

use std::io;
use std::path::PathBuf;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file says something that cannot be meant.
    #[error("{}:{line}: {}{message}", .path.display(), in_front(.key))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key with its section, empty where the line has none.
        key: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl ConfigError {
    /// The line of the error, from 1; None for a file that cannot be read.
    pub const fn line(&self) -> Option<usize> {
        match self {
            Self::Read { .. } => None,
            Self::Invalid { line, .. } => Some(*line),
        }
    }
}

fn in_front(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("{key}: ")
    }
}
