//! Who is told of a load test that `tlsprof report` runs: the agent of this host
//! while it runs, and Grafana when it is over.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::cli::{ReportOptions, Until};
use crate::config::Config;
use crate::outlet::load_test::annotation::Annotation;
use crate::outlet::load_test::grafana::{Grafana, Token};
use crate::outlet::load_test::running::{self, LoadTests, Mark, PATH};

/// The environment variable that may hold Grafana's token.
pub(super) const TOKEN_VARIABLE: &str = "TLSPROF_GRAFANA_TOKEN";

/// The Grafana that is to be told; None if there is none, or no load test.
///
/// # Errors
///
/// When its token is missing: that is better told before the test than after.
pub(super) fn grafana(options: &ReportOptions, config: &Config) -> Result<Option<Grafana>> {
    if !matches!(options.until, Until::CommandEnds(_)) {
        return Ok(None);
    }
    let configured = &config.grafana;
    let Some(url) = options.grafana.as_ref().or(configured.url.as_ref()) else {
        return Ok(None);
    };
    let file = options.grafana_token_file.as_ref();
    let token = match file.or(configured.token_file.as_ref()) {
        Some(file) => Token::read(file)?,
        None => {
            let text = std::env::var(TOKEN_VARIABLE).with_context(|| {
                format!("Grafana wants a token: name its file with --grafana-token-file, or set {TOKEN_VARIABLE}")
            })?;
            Token::parse(&text, TOKEN_VARIABLE)?
        }
    };
    Ok(Some(Grafana::new(url.clone(), token)))
}

/// Lets the agent know, until the mark is dropped. Without an agent nobody misses it.
pub(super) fn mark() -> Option<Mark> {
    let mark = Mark::set(Path::new(PATH));
    if let Err(error) = &mark {
        tracing::info!("an agent on this host will not know of this load test: {PATH}: {error}");
    }
    mark.ok()
}

/// What reports of this host have marked; nothing where that cannot be read.
pub(super) fn load_tests() -> LoadTests {
    running::look(Path::new(PATH)).unwrap_or_else(|error| {
        tracing::debug!("whether a load test is running is not known: {PATH}: {error}");
        LoadTests::default()
    })
}

/// Tells Grafana, and the user how that went: the report does not depend on it.
pub(super) fn tell(grafana: &Grafana, annotation: &Annotation) {
    match grafana.send(annotation) {
        Ok(id) => eprintln!("tlsprof: the load test is annotation {id} in Grafana"),
        Err(error) => {
            eprintln!("tlsprof: warning: the load test is not marked in Grafana: {error}");
        }
    }
}
