//! Errors, with what caused them, on one line.

use std::error::Error;
use std::io;

/// An error and its causes on one line, from the outside to the inside.
///
/// Of each only the first line is taken, and the last of what the kernel's verifier
/// writes, which is the reason after thousands of lines. What has been said already
/// is not said again: libraries are at odds whether an error names its own cause.
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        next = cause.source();
        let whole = cause.to_string();
        let line = match whole.split_once(VERIFIER) {
            Some((error, log)) => verdict(error, log),
            None => whole.lines().next().unwrap_or_default().trim().to_owned(),
        };
        if !said.iter().any(|text| text.contains(&line)) {
            said.push(line);
        }
    }
    said.join(": ")
}

/// What to do about an error whose cause is a limit of the system, as a sentence.
pub fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(cause) = next {
        next = cause.source();
        let number = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        match number {
            Some(libc::EMFILE) => return Some(TOO_MANY_FILES),
            Some(libc::ENFILE) => {
                return Some("The whole system is out of files: sysctl fs.file-max");
            }
            Some(libc::ENOMEM) => return Some(OUT_OF_MEMORY),
            _ => {}
        }
    }
    None
}

const TOO_MANY_FILES: &str = "Raise the limit of open files: `ulimit -n 4096`, or LimitNOFILE= of \
                              the systemd unit. tlsprof needs about 100, one for each network \
                              namespace, and a few for each TLS library";
const OUT_OF_MEMORY: &str = "tlsprof needs about 100 MB, including its memory in the kernel: raise the \
                             memory limit of its control group (MemoryMax= of the systemd unit), \
                             or lower [limits] of the configuration";

const VERIFIER: &str = ". Verifier output:";

/// What the verifier writes after its reason.
const STATISTICS: [&str; 3] = ["processed ", "stack depth ", "verification time "];

/// An error with the reason at the end of the verifier's log.
fn verdict(error: &str, log: &str) -> String {
    let lines = log.lines().map(str::trim);
    let statistics = |line: &str| STATISTICS.iter().any(|begin| line.starts_with(begin));
    let mut said = lines.filter(|line| !line.is_empty() && !statistics(line));
    match said.next_back() {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use thiserror::Error;

    use super::{one_line, remedy};

    #[derive(Debug, Error)]
    enum Outer {
        #[error("the kernel refused the program")]
        Silent(#[source] anyhow::Error),
        #[error(
            "the system call returned {0}. Verifier output: 0: R1=ctx\ninvalid func unknown#174\nstack depth 248\nprocessed 13 insns"
        )]
        Talkative(#[source] io::Error),
        #[error(transparent)]
        Transparent(#[from] io::Error),
    }

    fn denied() -> io::Error {
        io::Error::from_raw_os_error(libc::EPERM)
    }

    #[test]
    fn each_cause_is_named_once() {
        let inner = anyhow::Error::new(Outer::Talkative(denied())).context("loading failed");
        assert_eq!(
            one_line(&Outer::Silent(inner)),
            "the kernel refused the program: loading failed: the system call returned \
             Operation not permitted (os error 1): invalid func unknown#174"
        );
    }

    #[test]
    fn a_limit_of_the_system_has_a_remedy() {
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        let error = anyhow::Error::new(Outer::Silent(full.into())).context("cannot start");
        assert!(remedy(&*error).is_some_and(|text| text.contains("LimitNOFILE")));
        assert_eq!(remedy(&denied()), None);
    }

    #[test]
    fn a_transparent_error_is_not_named_twice() {
        assert_eq!(
            one_line(&Outer::Transparent(denied())),
            "Operation not permitted (os error 1)"
        );
    }
}
