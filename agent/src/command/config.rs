//! `tlsprof config`: whether the configuration is valid, and what is in effect.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::print::print;
use crate::config::{Config, DEFAULT_PATH};
use tlsprof_common::ConfigError;
use tlsprof_common::causes::one_line;
use tlsprof_outlet::http::Access;

/// Says whether the file is valid, and all that is wrong with it.
pub(super) fn check(path: Option<&Path>) -> Result<ExitCode> {
    let Some((file, text)) = Config::read(path)? else {
        print(format!("ok: there is no {DEFAULT_PATH}, the defaults are in effect\n").as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut errors: Vec<String> = Config::errors(&text, file)
        .iter()
        .map(ConfigError::to_string)
        .collect();
    if errors.is_empty() {
        errors.extend(web_config(&Config::parse(&text, file)?));
    }
    if errors.is_empty() {
        print(format!("ok: {}\n", file.display()).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    for error in errors {
        eprintln!("tlsprof: {error}");
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong with the web configuration that it names, if it names one.
fn web_config(config: &Config) -> Option<String> {
    let file = config.agent.web_config.as_ref()?;
    Access::from_file(file).err().map(|error| one_line(&error))
}

/// Writes what is in effect. `config` is what `path` led to, with `btf` from the command line.
pub(super) fn show(config: &Config, path: Option<&Path>, btf: Option<&Path>) -> Result<ExitCode> {
    let (source, given) = match Config::read(path)? {
        Some((file, text)) => {
            let source = format!("From {}, which does not set the defaults", file.display());
            (source, text)
        }
        None => {
            let source = format!("There is no {DEFAULT_PATH}: all values are defaults");
            (source, String::new())
        }
    };
    let text = config
        .written(&given)
        .context("cannot write the configuration as TOML")?;
    let mut head = format!("# {source}.\n");
    if let Some(btf) = btf {
        head.push_str(&format!("# profile.btf is from --btf {}.\n", btf.display()));
    }
    print(format!("{head}\n{text}").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
