//! Whether a library may be loaded.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Write permission for the group or for all.
const OTHERS_WRITE: u32 = 0o022;

/// Whether only root can have put the file there that a process has mapped: it is in
/// this process's own file system, not in a container's, is still the file with that
/// inode, and belongs to root with all folders above. Returns its path without links,
/// which is the one to load: a link may lead elsewhere a moment later.
///
/// # Errors
/// In a few words, why not.
pub fn check(process_root: &Path, library: &Path, inode: u64) -> Result<PathBuf, String> {
    let ours = fs::metadata("/").map_err(|error| error.to_string())?;
    let theirs = fs::metadata(process_root).map_err(|_| "its process has ended".to_owned())?;
    if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
        return Err("it is in a container, and loading it would run the container's code".into());
    }
    let path = fs::canonicalize(library).map_err(|_| "its file is gone".to_owned())?;
    let file = fs::metadata(&path).map_err(|_| "its file is gone".to_owned())?;
    if !file.is_file() || file.ino() != inode {
        return Err("its file was replaced since it was loaded".to_owned());
    }
    if let Some(above) = path.ancestors().find(|above| !is_roots(above)) {
        return Err(format!(
            "users other than root can write to {}",
            above.display()
        ));
    }
    Ok(path)
}

fn is_roots(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.uid() == 0 && it.mode() & OTHERS_WRITE == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn inode(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn a_program_of_the_system_is_trusted_and_a_file_of_anybody_is_not() {
        let root = Path::new("/");
        let system = fs::canonicalize("/bin/sh").unwrap();
        assert_eq!(check(root, &system, inode(&system)), Ok(system.clone()));
        let folder = tempfile::tempdir().unwrap();
        // Below /tmp, to which all may write.
        let planted = folder.path().join("libcrypto.so.3");
        fs::write(&planted, "x").unwrap();
        let refused = check(root, &planted, inode(&planted)).unwrap_err();
        assert!(
            refused.starts_with("users other than root can write to"),
            "{refused}"
        );
    }

    #[test]
    fn another_root_and_another_file_are_refused() {
        let system = fs::canonicalize("/bin/sh").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let refused = check(folder.path(), &system, inode(&system)).unwrap_err();
        assert!(refused.contains("container"), "{refused}");
        let refused = check(Path::new("/"), &system, inode(&system) + 1).unwrap_err();
        assert!(refused.contains("replaced"), "{refused}");
    }
}
