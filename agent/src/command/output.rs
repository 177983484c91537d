//! Where a report or a comparison goes.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::outlet::terminal::Style;

/// Width of a text in a file.
const WIDTH: usize = 100;

/// A file that was opened before the work began.
pub(super) struct Output {
    pub path: PathBuf,
    pub file: File,
}

impl Output {
    /// Opens the file, for `what`.
    pub fn create(path: &Path, what: &str) -> Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("cannot write {what} to {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }
}

/// Writes what `render` makes to `output`, else to standard output.
///
/// # Errors
/// When it cannot be made or written. What was measured is not lost with a full disk: it
/// goes to standard output then.
pub(super) fn write(
    what: &str,
    output: Option<Output>,
    render: impl Fn(Style) -> Result<String>,
) -> Result<()> {
    let stdout = io::stdout();
    let to_stdout = |text: &str| {
        let mut stdout = stdout.lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
    };
    let Some(Output { path, mut file }) = output else {
        let text = render(Style::of(&stdout))?;
        return to_stdout(&text).with_context(|| format!("cannot write {what} to standard output"));
    };
    let text = render(Style::plain(WIDTH))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| settle(&file));
    if let Err(error) = written {
        let path = path.display();
        let said = match to_stdout(&text) {
            Ok(()) => format!("cannot write {what} to {path}; it is on standard output instead"),
            Err(_) => format!("cannot write {what} to {path}, nor to standard output"),
        };
        return Err(error).context(said);
    }
    eprintln!("tlsprof: {what} written to {}", path.display());
    Ok(())
}

/// Waits until the file is on its disk; pipes and devices have none.
fn settle(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.sync_all()?;
    }
    Ok(())
}
