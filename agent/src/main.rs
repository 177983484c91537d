//! The one binary.

use std::process::ExitCode;

use tlsprof_common::causes::{one_line, remedy};

fn main() -> ExitCode {
    match tlsprof::command::run(tlsprof::cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            tracing::debug!(?error);
            match remedy(&*error) {
                Some(remedy) => eprintln!("tlsprof: {}. {remedy}.", one_line(&*error)),
                None => eprintln!("tlsprof: {}", one_line(&*error)),
            }
            ExitCode::FAILURE
        }
    }
}
