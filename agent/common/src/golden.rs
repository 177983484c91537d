//! Comparison of a text with a file that is kept in the repository.

/// Fails when `text` is not what the file at `path` says. With
/// `UPDATE_SNAPSHOTS=1` in the environment the file is written instead.
pub fn check(path: &str, text: &str) {
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let written = std::fs::write(path, text);
        assert!(written.is_ok(), "cannot write {path}: {written:?}");
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{path} is stale. If the change is meant, run\n  \
         UPDATE_SNAPSHOTS=1 cargo test --workspace --lib\n\
         and commit the file. The text is now:\n{text}"
    );
}

/// [`check`] against a file in `agent/tests/snapshots`.
pub fn snapshot(name: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/snapshots");
    check(&format!("{folder}/{name}"), text);
}
