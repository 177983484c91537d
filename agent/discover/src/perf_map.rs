//! Names of code that a process compiled itself: the map that its virtual machine writes for perf.
//!
//! `/tmp/perf-PID.map`, with the process's own id as itself sees it, has a line for each function: its address and its
//! size in hexadecimal, and its name (tools/perf/Documentation/jit-interface.txt). Java writes it on
//! `jcmd PID Compiler.perfmap` (JDK 17 and later), Node.js with `--perf-basic-prof`, .NET with
//! `DOTNET_PerfMapEnabled=1`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use super::ProcRoot;
use super::image::open::device;
use tlsprof_common::{ImageId, Pid};

/// No more of a map is read: that of a large Java server has 5 MB.
const MAX_SIZE: u64 = 64 << 20;
/// Longer lines are skipped.
const MAX_LINE: usize = 4096;
/// No more of a name is kept.
const MAX_NAME: usize = 512;

/// A map as it was when it was opened.
#[derive(Debug)]
pub struct PerfMap {
    /// For reading.
    pub file: File,
    /// What identifies the file.
    pub id: ImageId,
    /// When it was last written.
    pub written: SystemTime,
}

/// A function that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Its first address.
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// As the virtual machine calls it: Java with its signature.
    pub name: String,
}

impl Compiled {
    /// Its name without a signature: of `void java.lang.Object.wait(long)` what is called
    /// `java.lang.Object.wait`.
    pub fn own_name(&self) -> &str {
        let before = self.name.split_once('(').map(|(before, _)| before);
        let own = before.and_then(|before| before.rsplit(' ').next());
        own.filter(|own| !own.is_empty()).unwrap_or(&self.name)
    }
}

impl ProcRoot {
    /// The map of a process, in its own mount namespace. It must belong to the user of the process, or to root:
    /// anybody can write to /tmp.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn perf_map(&self, pid: Pid) -> io::Result<PerfMap> {
        let status = self.read(pid, "status").map_err(io::Error::other)?;
        let status = status.ok_or(io::ErrorKind::NotFound)?;
        let (own, user) = own_id_and_user(&status).ok_or(io::ErrorKind::InvalidData)?;
        let root = open(
            self.root_of(pid),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(openat2(
            root,
            format!("tmp/perf-{own}.map"),
            flags,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || ![0, user].contains(&metadata.uid()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let id = ImageId {
            device: device(metadata.dev()),
            inode: metadata.ino(),
        };
        Ok(PerfMap {
            id,
            written: metadata.modified()?,
            file,
        })
    }
}

/// The id of a process in the innermost namespace that it is in, and its effective user (`NSpid` and `Uid` of
/// proc_pid_status(5)).
fn own_id_and_user(status: &[u8]) -> Option<(Pid, u32)> {
    let status = String::from_utf8_lossy(status);
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let own = field("NSpid")?.split_whitespace().next_back()?;
    let user = field("Uid")?.split_whitespace().nth(1)?;
    Some((own.parse().ok()?, user.parse().ok()?))
}

/// The functions of a map that these addresses are in, by their first address; from its beginning, whoever has read
/// in it before. Of two at one place the later line counts: it was compiled later. Of the earlier one only the part
/// beside it is left, if there is one of these addresses.
///
/// # Errors
/// Those of reading.
pub fn functions_in(mut map: &File, addresses: &[u64]) -> io::Result<BTreeMap<u64, Compiled>> {
    map.rewind()?;
    functions_at(map, addresses)
}

/// Lines of another form are skipped.
fn functions_at(map: impl Read, addresses: &[u64]) -> io::Result<BTreeMap<u64, Compiled>> {
    let mut found = Functions {
        addresses: addresses.to_vec(),
        by_start: BTreeMap::new(),
    };
    found.addresses.sort_unstable();
    let mut map = BufReader::new(map.take(MAX_SIZE));
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = map.by_ref().take(MAX_LINE as u64);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(found.by_start);
        }
        if line.len() == MAX_LINE && !line.ends_with(b"\n") {
            map.skip_until(b'\n')?;
        } else if let Some(function) = parse_line(&line) {
            found.add(function);
        }
    }
}

/// Functions that addresses are in: none without one, and no address in two.
struct Functions {
    /// Ascending.
    addresses: Vec<u64>,
    by_start: BTreeMap<u64, Compiled>,
}

impl Functions {
    /// Adds a function, in place of what was there.
    fn add(&mut self, function: Compiled) {
        if !self.is_wanted(&function) {
            return;
        }
        let (start, end) = (function.start, function.end);
        let before = self.by_start.range(..end).rev();
        let replaced = before.take_while(|(_, one)| one.end > start);
        let replaced: Vec<u64> = replaced.map(|(first, _)| *first).collect();
        for first in replaced {
            let Some(one) = self.by_start.remove(&first) else {
                continue;
            };
            let below = Compiled {
                end: start,
                ..one.clone()
            };
            let above = Compiled { start: end, ..one };
            for part in [below, above] {
                if self.is_wanted(&part) {
                    self.by_start.insert(part.start, part);
                }
            }
        }
        self.by_start.insert(start, function);
    }

    fn is_wanted(&self, function: &Compiled) -> bool {
        let is_before = |address: &u64| *address < function.start;
        let first = self.addresses.partition_point(is_before);
        let first = self.addresses.get(first);
        first.is_some_and(|address| *address < function.end)
    }
}

fn parse_line(line: &[u8]) -> Option<Compiled> {
    let line = String::from_utf8_lossy(line);
    let (start, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let start = number(start)?;
    let name = name.trim();
    Some(Compiled {
        start,
        end: start.checked_add(number(size)?)?,
        name: name.get(..name.floor_char_boundary(MAX_NAME))?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )]

    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;
    use crate::sample::add_perf_map;

    const MAP: &str = "\
0x00007f0010000000 0x0000000000000100 void java.lang.Object.wait(long)
7f0010000100 80 LazyCompile:*handle /srv/app.js:10:3
not a line
7f0010000200 zz name
ffffffffffffff00 200 beyond
7f0010000100 40 later
";

    fn names(addresses: &[u64]) -> Vec<String> {
        let found = functions_at(MAP.as_bytes(), addresses).unwrap();
        found.into_values().map(|one| one.name).collect()
    }

    #[test]
    fn functions_are_found_by_the_addresses_in_them() {
        let wait = "void java.lang.Object.wait(long)";
        assert_eq!(names(&[0x7f00_1000_0000]), [wait]);
        assert_eq!(names(&[0x7f00_1000_00ff, 0x7f00_1000_0001]), [wait]);
        assert_eq!(names(&[0x7f00_1000_0110]), ["later"]);
        assert_eq!(
            names(&[0x7f00_1000_0200, 0xffff_ffff_ffff_ff01, 0]),
            [""; 0]
        );
    }

    #[test]
    fn an_address_has_the_last_function_around_it_alone() {
        let cover = |number: u64| format!("{:x} {:x} f{number}\n", number % 7, 1000 + number);
        let map: String = (0..100_000).map(cover).collect();
        let found = functions_at(map.as_bytes(), &[500]).unwrap();
        let found: Vec<Compiled> = found.into_values().collect();
        assert!(matches!(&found[..], [only] if only.name == "f99999"));
    }

    #[test]
    fn of_an_earlier_function_the_part_beside_a_later_one_is_left() {
        let parts = |addresses: &[u64]| {
            let map = "10 40 outer\n20 10 inner\n";
            let found = functions_at(map.as_bytes(), addresses).unwrap();
            let parts = found
                .into_values()
                .map(|one| (one.start, one.end, one.name));
            parts.collect::<Vec<(u64, u64, String)>>()
        };
        let part = |start, end, name: &str| (start, end, name.to_owned());
        let [below, inner, above] = [
            part(0x10, 0x20, "outer"),
            part(0x20, 0x30, "inner"),
            part(0x30, 0x50, "outer"),
        ];
        assert_eq!(
            parts(&[0x4f, 0x1f, 0x20]),
            [below, inner.clone(), above.clone()]
        );
        assert_eq!(parts(&[0x2f, 0x30]), [inner, above]);
    }

    #[test]
    fn long_lines_and_names_are_bounded() {
        let name = "é".repeat(1 << 19);
        let endless = format!("10 10 {name}");
        assert!(
            functions_at(endless.as_bytes(), &[0x10])
                .unwrap()
                .is_empty()
        );
        let before = format!("{endless}\n10 10 short");
        let found = functions_at(before.as_bytes(), &[0x10]).unwrap();
        assert_eq!(found[&0x10].name, "short");
        let long = format!("10 10 {}\n", &name[..2000]);
        let found = functions_at(long.as_bytes(), &[0x10]).unwrap();
        assert_eq!(found[&0x10].name.len(), MAX_NAME);
    }

    #[test]
    fn a_name_is_one_without_its_signature() {
        let own = |line: &str| parse_line(line.as_bytes()).unwrap().own_name().to_owned();
        assert_eq!(
            own("0x10 0x10 void java.lang.Object.wait(long, int)"),
            "java.lang.Object.wait"
        );
        assert_eq!(own("10 10 JS:*fib [eval]:1:13"), "JS:*fib [eval]:1:13");
        assert_eq!(own("10 10 (anonymous)"), "(anonymous)");
    }

    #[test]
    fn ids_are_those_that_the_process_itself_sees() {
        let status = b"Name:\tjava\nNSpid:\t4711\t12\nUid:\t1\t1000\t1\t1\n";
        assert_eq!(own_id_and_user(status), Some((12, 1000)));
        assert_eq!(own_id_and_user(b"Name:\tjava\n"), None);
    }

    /// A copy of parts of /proc with a process 10, and where its map would be.
    fn tree() -> (tempfile::TempDir, ProcRoot, PathBuf) {
        let tree = tempfile::tempdir().unwrap();
        let path = add_perf_map(tree.path(), 10, None);
        let proc = ProcRoot::new(tree.path());
        (tree, proc, path)
    }

    #[test]
    fn the_map_is_in_the_root_of_the_process() {
        let (_tree, proc, path) = tree();
        assert!(proc.perf_map(10).is_err());
        fs::write(&path, MAP).unwrap();
        let map = proc.perf_map(10).unwrap();
        assert_eq!(map.id.inode, fs::metadata(&path).unwrap().ino());
        assert_eq!(
            functions_in(&map.file, &[0x7f00_1000_0000]).unwrap().len(),
            1
        );
    }

    #[test]
    fn links_lead_to_nothing_outside() {
        let (tree, proc, path) = tree();
        let outside = tree.path().join("perf-3.map");
        fs::write(&outside, MAP).unwrap();
        symlink(&outside, &path).unwrap();
        assert!(proc.perf_map(10).is_err());
        let folder = path.parent().unwrap();
        fs::remove_dir_all(folder).unwrap();
        for target in [tree.path(), Path::new("../..")] {
            symlink(target, folder).unwrap();
            assert!(proc.perf_map(10).is_err());
            fs::remove_file(folder).unwrap();
        }
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (_tree, proc, path) = tree();
        fs::create_dir(path).unwrap();
        assert!(proc.perf_map(10).is_err());
    }

    proptest! {
        #[test]
        fn any_map_is_survived(map: Vec<u8>, addresses: Vec<u64>) {
            functions_at(map.as_slice(), &addresses).unwrap();
        }

        #[test]
        fn any_line_of_numbers_is_survived(
            start: u64, size: u64, name in ".{0,40}", addresses: Vec<u64>,
        ) {
            let map = format!("{start:x} {size:x} {name}\n");
            let found = functions_at(map.as_bytes(), &addresses).unwrap();
            prop_assert!(found.len() <= addresses.len());
        }
    }
}
