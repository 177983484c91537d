//! The running kernel's types (BTF): as the kernel itself describes them, or as a file does
//! where it shows none.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aya::{Btf, Endianness};
use thiserror::Error;

use super::btf::{self, Unfit};

/// Where the kernel shows its own.
const OWN: &str = "/sys/kernel/btf/vmlinux";
/// All functions of the kernel by name; addresses are not needed.
const KALLSYMS: &str = "/proc/kallsyms";
/// Ten times what a distribution's kernel has.
const LONGEST: u64 = 64 << 20;
/// Share of the functions in a file that the running kernel may lack: those that ran at its
/// start or would run at its end are in no list. 0.6% on Debian's kernels.
const UNKNOWN: f64 = 0.05;

/// Why the kernel's types are not known.
#[derive(Debug, Error)]
pub enum TypesError {
    /// The kernel does not show them, and no file was named.
    #[error(
        "this kernel does not show its type information ({OWN}: {0}). If it was built with \
         CONFIG_DEBUG_INFO_BTF, provide it in a file: --btf FILE, or profile.btf in the \
         configuration. A kernel built without it cannot be profiled"
    )]
    Hidden(io::Error),
    /// The file cannot be read.
    #[error("cannot read the type information in {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{} {why}", .path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Unfit,
    },
}

/// Where the types come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel.
    Kernel,
    /// A file that the user named.
    File(PathBuf),
}

/// The types of the running kernel.
pub(super) struct KernelTypes {
    bytes: Vec<u8>,
    btf: Btf,
}

/// Where the types come from. `file` is used only if the kernel shows none: the kernel's own
/// description is always right.
///
/// # Errors
///
/// [`TypesError::Hidden`].
pub fn source(file: Option<&Path>) -> Result<Source, TypesError> {
    match (has_bytes(Path::new(OWN)), file) {
        (Ok(()), _) => Ok(Source::Kernel),
        (Err(_), Some(file)) => Ok(Source::File(file.to_owned())),
        (Err(error), None) => Err(TypesError::Hidden(error)),
    }
}

fn has_bytes(path: &Path) -> io::Result<()> {
    File::open(path)?.read_exact(&mut [0])
}

impl KernelTypes {
    /// Reads them from where [`source`] says.
    ///
    /// # Errors
    ///
    /// [`TypesError`].
    pub(super) fn read(file: Option<&Path>) -> Result<Self, TypesError> {
        match source(file)? {
            Source::Kernel => Self::parse(read(Path::new(OWN))?, Path::new(OWN)),
            Source::File(path) => {
                let types = Self::parse(read(&path)?, &path)?;
                match fs::read(KALLSYMS) {
                    Ok(kallsyms) => types.compare(&kallsyms).map_err(unfit(&path))?,
                    // Built without: then there is nothing to compare with.
                    Err(error) => tracing::debug!(%error, "{KALLSYMS}"),
                }
                Ok(types)
            }
        }
    }

    fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self, TypesError> {
        btf::check(&bytes).map_err(unfit(path))?;
        let btf = Btf::parse(&bytes, Endianness::default());
        let btf = btf.map_err(|error| unfit(path)(Unfit::Damaged(error.to_string())))?;
        Ok(Self { bytes, btf })
    }

    /// Whether the kernel whose functions are listed is the one that is described. A kernel
    /// of another series is detected; a neighbouring build, with the same functions, is not.
    fn compare(&self, kallsyms: &[u8]) -> Result<(), Unfit> {
        let known: HashSet<&[u8]> = names(kallsyms).collect();
        let (mut all, mut unknown) = (0_u32, Vec::new());
        for function in btf::functions(&self.bytes) {
            all += 1;
            if !known.contains(function) {
                unknown.push(function);
            }
        }
        let few = f64::from(all) * UNKNOWN;
        let count = u32::try_from(unknown.len()).unwrap_or(u32::MAX);
        match unknown.first() {
            Some(example) if f64::from(count) > few => Err(Unfit::AnotherKernel {
                example: String::from_utf8_lossy(example).into_owned(),
                unknown: count,
                all,
            }),
            _ => Ok(()),
        }
    }

    /// As aya has them.
    pub(super) const fn btf(&self) -> &Btf {
        &self.btf
    }

    /// How many parameters a function has.
    pub(super) fn parameters(&self, function: &str) -> Option<u32> {
        btf::parameters(&self.bytes, function)
    }
}

fn unfit(path: &Path) -> impl Fn(Unfit) -> TypesError {
    |why| TypesError::Unfit {
        path: path.to_owned(),
        why,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TypesError> {
    let failed = |source| TypesError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let length = file.take(LONGEST + 1).read_to_end(&mut bytes);
    match length.map_err(failed)? as u64 {
        length if length > LONGEST => Err(unfit(path)(Unfit::TooLong)),
        _ => Ok(bytes),
    }
}

/// Names in the text of /proc/kallsyms (address, type, name), without what compilers append
/// (`.isra.0`).
fn names(kallsyms: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = kallsyms.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let name = line.split(|byte| *byte == b' ').nth(2)?;
        name.split(|byte| matches!(byte, b'.' | b'\t')).next()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn own() -> Option<KernelTypes> {
        KernelTypes::read(None).ok()
    }

    #[test]
    fn this_kernel_is_what_it_says() {
        if let Some(types) = own() {
            assert_eq!(types.parameters("tcp_sendmsg"), Some(3));
            types.compare(&fs::read(KALLSYMS).unwrap()).unwrap();
        }
    }

    #[test]
    fn another_kernel_is_detected_by_its_functions() {
        let Some(types) = own() else { return };
        let other = b"0 T tcp_sendmsg\n0 t tcp_recvmsg.part.0\t[module]\n";
        let why = types.compare(other).unwrap_err().to_string();
        assert!(why.contains("is of another kernel"), "{why}");
    }

    #[test]
    fn names_are_without_what_is_appended() {
        let text = b"0 T tcp_sendmsg\n0 t tcp_recvmsg.part.0\n0 t one\t[module]\n\n";
        let expected: [&[u8]; 3] = [b"tcp_sendmsg", b"tcp_recvmsg", b"one"];
        assert_eq!(names(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_is_unfit_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("types");
        fs::write(&path, "no types").unwrap();
        let error = read(&path).and_then(|bytes| KernelTypes::parse(bytes, &path));
        let error = error.err().unwrap().to_string();
        assert!(
            error.ends_with("types is not type information (BTF)"),
            "{error}"
        );
        assert!(read(&folder.path().join("none")).is_err());
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
