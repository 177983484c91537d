//! Comparison of a text with a file that is kept in the repository.

const END: &str = "<!-- end -->\n";

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

/// [`check`] against the part of the file at `path` between the lines `<!-- begin -->` and
/// `<!-- end -->`.
pub fn check_part(path: &str, begin: &str, part: &str) {
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let begin = format!("<!-- {begin} -->\n");
    let (before, rest) = page.split_once(&begin).unwrap_or_default();
    let after = rest.split_once(END).map(|(_, after)| after);
    assert!(after.is_some(), "{path} lacks the line {begin}or {END}");
    let after = after.unwrap_or_default();
    check(path, &format!("{before}{begin}{part}{END}{after}"));
}

/// [`check`] against a file in `agent/tests/snapshots`.
pub fn snapshot(name: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/snapshots");
    check(&format!("{folder}/{name}"), text);
}
