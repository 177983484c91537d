//! Passes on what a command prints, and keeps the end of it.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Bytes that are kept: the summary of a load tool is shorter.
const KEPT: usize = 64 << 10;
/// How long the end is waited for once the command has ended: a process that it left behind
/// may hold its standard output open.
const PATIENCE: Duration = Duration::from_secs(1);

/// What passes by.
pub(super) struct Tee(Receiver<Vec<u8>>);

impl Tee {
    /// Passes on to standard output from now on, in a thread of its own.
    pub fn of(from: impl Read + Send + 'static) -> Self {
        let (sender, kept) = channel();
        thread::spawn(move || sender.send(pass_on(from, io::stdout())));
        Self(kept)
    }

    /// The end of what was printed; empty if it is still going on.
    pub fn end(self) -> String {
        let kept = self.0.recv_timeout(PATIENCE).unwrap_or_default();
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// Until either side is closed. Then `from` is closed too, so that who prints learns of it.
fn pass_on(mut from: impl Read, mut to: impl Write) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return kept,
        };
        kept.extend_from_slice(read);
        kept.drain(..kept.len().saturating_sub(KEPT));
        let passed = to.write_all(read).and_then(|()| to.flush());
        if read.is_empty() || passed.is_err() {
            return kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_passed_on_and_the_end_is_kept() {
        let printed: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut passed = Vec::new();
        let kept = pass_on(printed.as_slice(), &mut passed);
        assert_eq!(passed, printed);
        assert!(printed.ends_with(&kept) && kept.len() == KEPT);
    }

    #[test]
    fn who_prints_is_not_held_up_by_a_closed_standard_output() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(pass_on(b"a".as_slice(), Closed), b"a");
    }
}
