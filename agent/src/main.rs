//! The one binary.

use std::process::ExitCode;

use tlsprof::causes::one_line;

fn main() -> ExitCode {
    match tlsprof::command::run(tlsprof::cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            tracing::debug!(?error);
            eprintln!("tlsprof: {}", one_line(&*error));
            ExitCode::FAILURE
        }
    }
}
