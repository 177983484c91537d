//! The one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tlsprof::command::run(tlsprof::cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tlsprof: {error:#}");
            ExitCode::FAILURE
        }
    }
}
