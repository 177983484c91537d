//! Where a report or a comparison goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::notices::Notices;
use tlsprof_outlet::terminal::Style;

/// Width of a text in a file.
const WIDTH: usize = 100;

/// A file that is to be written when the work is done, and can be as far as is known
/// before it. Until then what is in it stays, and where there is none, none is made.
pub(super) struct Output {
    path: PathBuf,
    /// What was there: a file, a pipe or a device.
    existing: Option<File>,
}

impl Output {
    /// Sees to it that the file can be written, for `what`.
    pub fn to(path: &Path, what: &str) -> Result<Self> {
        let existing = open_or_try(path)
            .with_context(|| format!("cannot write {what} to {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            existing,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file. One that was not there before is there in whole afterwards, or not
    /// at all.
    pub(crate) fn fill(self, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let Self { path, existing } = self;
        let made = existing.is_none();
        let filled = existing
            .map_or_else(|| File::create(&path), emptied)
            .map_err(anyhow::Error::from)
            .and_then(|mut file| {
                fill(&mut file)?;
                Ok(settle(&file)?)
            });
        if filled.is_err() && made {
            let _ = fs::remove_file(&path);
        }
        filled
    }
}

/// Opens what is there; where there is nothing, tries whether a file can be made.
fn open_or_try(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match File::create_new(path) {
                Ok(_) => fs::remove_file(path)?,
                // A link to nothing.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn emptied(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Writes what `render` makes to `output`, else to standard output.
///
/// # Errors
/// When it cannot be made or written. What was measured is not lost with a full disk: it
/// goes to standard output then.
pub(super) fn write(
    what: &str,
    output: Option<Output>,
    notices: Notices,
    render: impl Fn(Style) -> Result<String>,
) -> Result<()> {
    let stdout = io::stdout();
    let to_stdout = |text: &str| {
        let mut stdout = stdout.lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
    };
    let Some(output) = output else {
        let text = render(Style::of(&stdout))?;
        return to_stdout(&text).with_context(|| format!("cannot write {what} to standard output"));
    };
    let text = render(Style::plain(WIDTH))?;
    let path = output.path.display().to_string();
    if let Err(error) = output.fill(|file| Ok(file.write_all(text.as_bytes())?)) {
        let said = match to_stdout(&text) {
            Ok(()) => format!("cannot write {what} to {path}; it is on standard output instead"),
            Err(_) => format!("cannot write {what} to {path}, nor to standard output"),
        };
        return Err(error).context(said);
    }
    notices.say(format_args!("wrote {what} to {path}"));
    Ok(())
}

/// Waits until the file is on its disk; pipes and devices have none.
fn settle(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    fn text(file: &mut File) -> Result<()> {
        Ok(file.write_all(b"new")?)
    }

    fn failure(file: &mut File) -> Result<()> {
        file.write_all(b"half of it")?;
        anyhow::bail!("the disk is full")
    }

    #[test]
    fn a_file_is_made_when_it_is_written_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let output = Output::to(&path, "the report").unwrap();
        assert!(!path.exists());
        output.fill(text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn half_a_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let output = Output::to(&path, "the report").unwrap();
        assert!(output.fill(failure).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn what_is_in_a_file_stays_until_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        fs::write(&path, "something longer").unwrap();
        let output = Output::to(&path, "the report").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "something longer");
        output.fill(text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no such folder/report");
        assert!(Output::to(&path, "the report").is_err());
        assert!(Output::to(folder.path(), "the report").is_err());
    }
}
