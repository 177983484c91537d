#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test should stop"
)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;

use super::*;

const NGINX: &[u8] = include_bytes!("../../../tests/fixtures/proc/maps_nginx");
const ODD: &[u8] = include_bytes!("../../../tests/fixtures/proc/maps_odd");

#[test]
fn images_are_the_executable_files_each_once() {
    let images = parse_maps(NGINX);
    let short: Vec<_> = images
        .iter()
        .map(|m| {
            (
                m.path.to_str().unwrap(),
                m.start,
                m.file_offset,
                m.inode,
                m.deleted,
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (
                "/usr/sbin/nginx",
                0x5602_aa02_c000,
                0x2c000,
                1_311_768,
                false
            ),
            (
                "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                0x7f10_c207_c000,
                0x7c000,
                1_309_912,
                true
            ),
            (
                "/opt/my server/lib (old)/libssl.so.3",
                0x7f10_c250_0000,
                0,
                1_309_913,
                false
            ),
        ]
    );
    assert_eq!(images[0].image().to_string(), "fe:01:1311768");
    let proc = ProcRoot::default();
    assert_eq!(
        images[0].map_file(&proc, 7),
        Path::new("/proc/7/map_files/5602aa02c000-5602aa0f1000")
    );
}

#[test]
fn memory_without_a_file_is_no_image_and_odd_names_are_kept() {
    let images = parse_maps(ODD);
    let paths: Vec<&[u8]> = images
        .iter()
        .map(|m| m.path.as_os_str().as_bytes())
        .collect();
    let expected: [&[u8]; 5] = [
        b"/memfd:runtime",
        b"/SYSV",
        b"/tmp/two\nlines",
        b"/dev/shm/plugin.so",
        b"/srv/caf\xe9.so",
    ];
    assert_eq!(paths, expected);
    let last = images.last().unwrap();
    assert_eq!(
        last.device,
        Device {
            major: 0x103,
            minor: 0x10_0000
        }
    );
    assert_eq!(last.inode, 4_294_967_297);
}

#[test]
fn the_number_of_images_is_bounded() {
    let line = |n| format!("{n:x}000-{n:x}800 r-xp 00000000 fe:01 {n} /lib/{n}\n");
    let text: String = (1..2 * MAX_IMAGES).map(line).collect();
    assert_eq!(parse_maps(text.as_bytes()).len(), MAX_IMAGES);
}

proptest! {
    #[test]
    fn any_text_is_survived(text: Vec<u8>) {
        parse_maps(&text);
    }

    #[test]
    fn any_line_is_survived(line in "[0-9a-f-]{0,20} [r-][w-][x-][ps]? [0-9a-f]{0,18} [0-9a-f:]{0,8} [0-9]{0,22} .*") {
        parse_maps(line.as_bytes());
    }

    #[test]
    fn any_path_comes_back(path in "/[^\n]{0,40}[^\n ]") {
        prop_assume!(!path.ends_with(" (deleted)") && !path.contains("\\012"));
        let text = format!("1000-2000 r-xp 00000000 fe:01 7          {path}\n");
        let paths: Vec<_> = parse_maps(text.as_bytes()).into_iter().map(|m| m.path).collect();
        prop_assert!(paths == [PathBuf::from(&path)] || path == "/dev/zero" || path == "/anon_hugepage");
    }
}

/// A /proc with one process 4711 that maps `/lib/x.so` of its root directory.
struct Tree {
    tree: tempfile::TempDir,
    proc: ProcRoot,
    mapping: Mapping,
}

impl Tree {
    fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("4711");
        fs::create_dir_all(process.join("root/lib")).unwrap();
        fs::create_dir_all(process.join("map_files")).unwrap();
        fs::write(process.join("root/lib/x.so"), "the image").unwrap();
        let metadata = fs::metadata(process.join("root/lib/x.so")).unwrap();
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        let inode = metadata.ino();
        let maps = format!("1000-2000 r-xp 00000000 {major:02x}:{minor:02x} {inode} /lib/x.so\n");
        fs::write(process.join("maps"), &maps).unwrap();
        let mapping = parse_maps(maps.as_bytes()).remove(0);
        Self {
            proc: ProcRoot::new(tree.path()),
            tree,
            mapping,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tree.path().join("4711").join(name)
    }

    fn link_mapping(&self, range: &str, target: impl AsRef<Path>) {
        symlink(target, self.path("map_files").join(range)).unwrap();
    }

    fn open(&self) -> Result<String, OpenError> {
        let mut text = String::new();
        self.mapping
            .open(&self.proc, 4711)?
            .file
            .read_to_string(&mut text)
            .unwrap();
        Ok(text)
    }
}

#[test]
fn opens_through_the_mapping_when_the_path_leads_elsewhere() {
    let tree = Tree::new();
    fs::rename(tree.path("root/lib/x.so"), tree.path("old")).unwrap();
    fs::write(tree.path("root/lib/x.so"), "another").unwrap();
    tree.link_mapping("1000-2000", tree.path("old"));
    assert_eq!(tree.open().unwrap(), "the image");
}

#[test]
fn opens_through_another_mapping_of_the_image() {
    let mut tree = Tree::new();
    fs::rename(tree.path("root/lib/x.so"), tree.path("old")).unwrap();
    tree.link_mapping("1000-2000", tree.path("old"));
    tree.mapping.end = 0x4000;
    assert_eq!(tree.open().unwrap(), "the image");
}

#[test]
fn falls_back_to_the_path_where_mappings_may_not_be_opened() {
    assert_eq!(Tree::new().open().unwrap(), "the image");
}

#[test]
fn the_path_of_a_process_in_a_chroot_is_that_of_the_agent() {
    let mut tree = Tree::new();
    tree.mapping.path = tree.path("root/lib/x.so");
    assert_eq!(tree.open().unwrap(), "the image");
}

#[test]
fn maps_decides_where_stat_shows_another_inode() {
    // As overlayfs does for a file that was copied up.
    let mut tree = Tree::new();
    tree.link_mapping("1000-2000", tree.path("root/lib/x.so"));
    let maps = fs::read_to_string(tree.path("maps")).unwrap();
    tree.mapping.inode += 1;
    let shown = format!(" {} ", tree.mapping.inode);
    fs::write(
        tree.path("maps"),
        maps.replace(&format!(" {} ", tree.mapping.inode - 1), &shown),
    )
    .unwrap();
    assert_eq!(tree.open().unwrap(), "the image");
}

#[test]
fn a_mapping_that_went_to_another_image_is_refused() {
    let mut tree = Tree::new();
    tree.link_mapping("1000-2000", tree.path("root/lib/x.so"));
    tree.mapping.inode += 1;
    assert!(matches!(
        tree.open(),
        Err(OpenError::Gone { pid: 4711, .. })
    ));
}

#[test]
fn links_and_other_files_under_the_path_are_refused() {
    let tree = Tree::new();
    let path = tree.path("root/lib/x.so");
    fs::rename(&path, tree.path("secret")).unwrap();
    let other = tree.path("other");
    fs::write(&other, "another").unwrap();

    symlink(tree.path("secret"), &path).unwrap();
    assert!(
        matches!(tree.open(), Err(OpenError::Replaced { .. })),
        "a link, even to the image"
    );
    fs::remove_file(&path).unwrap();

    fs::rename(&other, &path).unwrap();
    let error = tree.open().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/lib/x.so of process 4711 was replaced"),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
    assert!(
        matches!(tree.open(), Err(OpenError::Replaced { .. })),
        "nothing there"
    );
}

#[test]
fn a_fifo_does_not_block() {
    let tree = Tree::new();
    let fifo = tree.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    tree.link_mapping("1000-2000", &fifo);
    assert_eq!(tree.open().unwrap(), "the image");
    fs::remove_file(tree.path("root/lib/x.so")).unwrap();
    fs::rename(&fifo, tree.path("root/lib/x.so")).unwrap();
    assert!(matches!(tree.open(), Err(OpenError::Replaced { .. })));
}

#[test]
fn a_process_that_is_gone_says_so() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.path("")).unwrap();
    assert!(matches!(tree.open(), Err(OpenError::Gone { .. })));
}

/// Ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_live_program_that_was_replaced_is_opened_as_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("cat");
    // By another process: a child that another test starts meanwhile would have it open for
    // writing until it runs its program, and this one could not be run (ETXTBSY).
    let copied = Command::new("cp").arg("/bin/cat").arg(&program).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let pid = child.0.id();
    // When it answers it is mapped; when spawn() returns it may not be yet.
    child.0.stdin.as_mut().unwrap().write_all(b"?").unwrap();
    let mut answer = [0];
    child
        .0
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut answer)
        .unwrap();
    fs::write(directory.path().join("new"), "#!/bin/sh").unwrap();
    fs::rename(directory.path().join("new"), &program).unwrap();

    let proc = ProcRoot::default();
    let images = proc.images(pid).unwrap().unwrap();
    let image = images
        .iter()
        .find(|mapping| mapping.path == program)
        .unwrap();
    assert!(image.deleted);
    match image.open(&proc, pid) {
        Ok(open) => {
            let original = fs::read("/bin/cat").unwrap();
            assert_eq!(fs::read(open.path()).unwrap(), original);
        }
        // Without the capability for map_files nothing leads to it any more.
        Err(error) => assert!(matches!(error, OpenError::Replaced { .. }), "{error}"),
    }
}
