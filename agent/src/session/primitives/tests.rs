#![allow(clippy::unwrap_used, reason = "tests")]

mod calls;
mod images;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::images::Images;
use super::*;
use tlsprof_common::Device;
use tlsprof_common::ImageId;
use tlsprof_discover::elf::ElfView;
use tlsprof_discover::elf::fixture::{CODE, Fixture};
use tlsprof_discover::sample::{add_perf_map, installed};
use tlsprof_evidence::callers::UserStack;

const SERVICE: &str = "nginx";

/// A sample of this process at that address, with that code.
fn sample(address: u64, code: &[u8]) -> CpuSample {
    CpuSample {
        process: std::process::id(),
        handshake: true,
        before_handshakes: false,
        instruction: address,
        code: code.to_vec(),
        at: 0,
        kernel_stack: Vec::new(),
        user_stack: UserStack::default(),
        count: 1,
    }
}

const HANDSHAKE: (Activity, Mode) = (Activity::Handshake, Mode::User);

/// What is booked of these samples of handshakes.
fn booked(samples: &[CpuSample]) -> PrimitiveAccount {
    let proc = ProcRoot::default();
    let mappings = proc.images(std::process::id()).unwrap().unwrap();
    let mut primitives = Primitives::new();
    for sample in samples {
        primitives.note(SERVICE, HANDSHAKE, sample, &proc, &mappings);
    }
    let elsewhere = (Activity::Application, Mode::User);
    let one = sample(0, &[]);
    primitives.note(SERVICE, elsewhere, &one, &proc, &mappings);
    account_of(&mut primitives)
}

/// What is booked of all that was noted, and not booked yet.
fn account_of(primitives: &mut Primitives) -> PrimitiveAccount {
    let mut ledger = Ledger::default();
    ledger.add_samples(SERVICE, HANDSHAKE.0, HANDSHAKE.1, 1);
    primitives.book(&mut ledger, |_| true);
    primitives.await_answers();
    primitives.hand_over(&mut ledger);
    let account = &ledger.service(SERVICE).unwrap().activities;
    account.primitives().clone()
}

/// `aesenc %xmm1,%xmm0` a few times, as no other code.
const AES: [u8; 20] = [
    0x66, 0x0f, 0x38, 0xdc, 0xc1, 0x66, 0x0f, 0x38, 0xdc, 0xc2, 0x66, 0x0f, 0x38, 0xdc, 0xc3, 0x66,
    0x0f, 0x38, 0xdd, 0xc4,
];

#[inline(never)]
fn not_cryptography() -> u32 {
    std::process::id()
}

#[test]
fn a_sample_is_identified_by_the_name_of_its_function() {
    let free = libc::free as *const () as u64 + 1;
    let account = booked(&[sample(free, &[]), sample(free + 2, &[])]);
    let memory = account.part(Activity::Handshake, Primitive::Memory);
    assert_eq!((memory.samples, account.samples()), (2, 2));
    assert_eq!(account.identified(Evidence::Name), 2);
}

#[test]
fn a_sample_that_is_counted_before_the_answer_is_a_loss() {
    let proc = ProcRoot::default();
    let mappings = proc.images(std::process::id()).unwrap().unwrap();
    let free = libc::free as *const () as u64 + 1;
    for waits in [true, false] {
        let mut primitives = Primitives::new();
        primitives.note(SERVICE, HANDSHAKE, &sample(free, &[]), &proc, &mappings);
        primitives.ask();
        match waits {
            true => primitives.await_answers(),
            false => primitives.take(Answer::new()),
        }
        assert_eq!(primitives.not_looked_up(), u64::from(!waits));
    }
}

#[test]
fn nothing_more_is_asked_until_the_answer_comes() {
    let proc = ProcRoot::default();
    let mappings = proc.images(std::process::id()).unwrap().unwrap();
    let mut primitives = Primitives::new();
    for function in [libc::free as *const (), libc::malloc as *const ()] {
        let one = sample(function as u64 + 1, &[]);
        primitives.note(SERVICE, HANDSHAKE, &one, &proc, &mappings);
        primitives.ask();
    }
    assert_eq!(primitives.waiting.as_ref().unwrap().spots.len(), 1);
    assert_eq!(primitives.now.spots.len(), 1);
    let account = account_of(&mut primitives);
    let memory = account.part(Activity::Handshake, Primitive::Memory);
    assert_eq!((memory.samples, primitives.not_looked_up()), (2, 0));
}

#[test]
fn code_of_another_name_is_known_by_its_instructions_or_is_other() {
    let address = not_cryptography as *const () as u64;
    let account = booked(&[sample(address, &[]), sample(address, &AES)]);
    let count = |primitive| account.part(Activity::Handshake, primitive).samples;
    assert_eq!(count(Primitive::Other), 1);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(count(Primitive::Aes), 1);
}

#[test]
fn code_in_no_file_is_known_by_its_instructions_alone() {
    let on_the_heap = Box::new(7_u64);
    let address = std::ptr::from_ref(&*on_the_heap) as u64;
    let account = booked(&[sample(address, &[]), sample(address, &AES)]);
    let count = |primitive| account.part(Activity::Handshake, primitive).samples;
    assert_eq!(count(Primitive::NotIdentified), 1);
    assert_eq!(account.identified(Evidence::None), 1);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(account.identified(Evidence::Instructions), 1);
}

/// A copy of parts of /proc in which this process wrote such a map.
fn with_map(map: &str) -> (tempfile::TempDir, ProcRoot, PathBuf) {
    let tree = tempfile::tempdir().unwrap();
    let path = add_perf_map(tree.path(), std::process::id(), Some(map));
    let proc = ProcRoot::new(tree.path());
    (tree, proc, path)
}

#[test]
fn code_that_a_virtual_machine_compiled_is_known_by_its_map() {
    let map = "1000 100 void java.math.BigInteger.oddModPow(int[])\n1100 100 StubRoutines (1)\n";
    let (_tree, proc, _path) = with_map(map);
    let mut primitives = Primitives::new();
    for address in [0x1000, 0x10ff, 0x1100, 0x1200] {
        primitives.note(SERVICE, HANDSHAKE, &sample(address, &[]), &proc, &[]);
    }
    let account = account_of(&mut primitives);
    let count = |primitive| account.part(Activity::Handshake, primitive).samples;
    assert_eq!((count(Primitive::RsaDh), account.samples()), (2, 4));
    assert_eq!(count(Primitive::NotIdentified), 2);
}

#[test]
fn a_map_that_is_written_anew_is_read_anew() {
    let (_tree, proc, path) = with_map("1000 100 Interpreter\n");
    let mut primitives = Primitives::new();
    let mut now = || {
        primitives.note(SERVICE, HANDSHAKE, &sample(0x1010, &[]), &proc, &[]);
        let account = account_of(&mut primitives);
        account.part(Activity::Handshake, Primitive::Sha).samples
    };
    assert_eq!(now(), 0);
    fs::write(
        &path,
        "1000 100 void sun.security.provider.SHA2.implCompress0(int[])\n",
    )
    .unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let later = SystemTime::now() + Duration::from_secs(10);
    file.set_modified(later).unwrap();
    // Not at once.
    let until = (1..20).find(|_| now() == 1);
    assert_eq!(until, Some(5));
}

#[test]
fn the_kernel_is_no_code_of_an_image() {
    let kernel = CpuSample {
        kernel_stack: vec![1],
        user_stack: UserStack::default(),
        ..sample(0, &[])
    };
    let account = booked(&[kernel]);
    let part = account.part(Activity::Handshake, Primitive::Kernel);
    assert_eq!(part.samples, 1);
}

#[test]
fn samples_wait_for_an_account_of_their_service() {
    let proc = ProcRoot::default();
    let mut primitives = Primitives::new();
    primitives.note(SERVICE, HANDSHAKE, &sample(0, &[]), &proc, &[]);
    let mut ledger = Ledger::default();
    primitives.book(&mut ledger, |_| true);
    assert!(ledger.service(SERVICE).is_none());
    ledger.add_cpu(SERVICE, Duration::from_secs(1), Duration::ZERO);
    primitives.book(&mut ledger, |_| true);
    let account = &ledger.service(SERVICE).unwrap().activities;
    assert_eq!(account.primitives().samples(), 1);
}

#[test]
fn functions_of_a_stripped_library_are_named_where_it_exports_them() {
    let path = installed("libcrypto.so.3");
    let view = ElfView::open(File::open(&path).unwrap()).unwrap();
    let symbols = view.symbols(&["BN_mod_exp_mont_consttime"]).unwrap();
    let function = symbols.get("BN_mod_exp_mont_consttime").unwrap();
    let start = view.file_offset(function.address).unwrap();
    let found = lookup::look_into(File::open(&path).unwrap(), &[start + 5, 0], &[], false).unwrap();
    let extent = lookup::Extent {
        start,
        end: start + function.size,
        primitive: Some((Primitive::BigNumber, Evidence::Name)),
        step: None,
    };
    assert_eq!(found.extents, [extent]);
    // With names, no other is needed.
    assert!(!found.surveyed);
}

/// As OpenSSL's assembly for P-256 is in a library for arm64.
#[test]
fn assembly_without_bounds_is_found_by_its_callers() {
    const RETURN: u32 = 0xd65f_03c0;
    const FUNCTIONS: u64 = CODE + 0x300;
    // A record of the unwind table, with the distance and the size of a function; and the end of the table.
    let mut words = vec![12, 1, 0x300 - 8, 8];
    words.resize(0x300 / 4, 0);
    // The function calls the second, and returns; ldr x6, the prime; bl to the third; ret
    words.extend([0x9400_0002, RETURN, 0x5800_00e6, 0x9400_0002, RETURN]);
    // adcs x4, x4, x3, three times; ret
    words.extend([0xba03_0084, 0xba03_0084, 0xba03_0084, RETURN]);
    // The prime of P-256.
    words.extend([u32::MAX, u32::MAX, u32::MAX, 0, 0, 0, 1, u32::MAX]);
    let image = Fixture {
        code: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        code_section: ".eh_frame",
        machine: 183,
        ..Fixture::default()
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&image.build()).unwrap();
    let sampled = FUNCTIONS + 24;
    let found = lookup::look_into(file, &[sampled], &[], false).unwrap();
    assert!(found.surveyed);
    let mut around = found.extents.iter();
    let around = around.find(|one| one.start < sampled && sampled < one.end);
    let expected = lookup::Extent {
        start: FUNCTIONS + 20,
        end: FUNCTIONS + 36,
        primitive: Some((Primitive::P256, Evidence::Instructions)),
        step: None,
    };
    assert_eq!(around, Some(&expected));
}

fn site(offset: u64, site: lookup::Site) -> lookup::Found {
    lookup::Found {
        sites: BTreeMap::from([(offset, site)]),
        ..lookup::Found::default()
    }
}

fn learned(extents: Vec<lookup::Extent>, surveyed: bool) -> lookup::Found {
    lookup::Found {
        extents,
        surveyed,
        ..lookup::Found::default()
    }
}

fn extent(start: u64, end: u64, primitive: Primitive) -> lookup::Extent {
    lookup::Extent {
        start,
        end,
        primitive: Some((primitive, Evidence::Name)),
        step: None,
    }
}

fn one_image() -> (Images, ImageId) {
    let device = Device { major: 8, minor: 1 };
    let image = ImageId { device, inode: 7 };
    let mut images = Images::default();
    assert!(images.touch(image, || Ok(File::open("/proc/self/exe").unwrap())));
    (images, image)
}

#[test]
fn the_innermost_function_around_a_place_is_its_own() {
    let (mut images, image) = one_image();
    let at = |offset| Place { image, offset };
    let inner = extent(0x20, 0x30, Primitive::P256);
    let outer = extent(0x10, 0x80, Primitive::Sha);
    images.learn(image, learned(vec![outer, inner], false));
    images.learn(image, site(0x10, lookup::Site::default()));
    assert_eq!(
        images.known(at(0x2f)),
        Some((Primitive::P256, Evidence::Name))
    );
    assert_eq!(
        images.known(at(0x30)),
        Some((Primitive::Sha, Evidence::Name))
    );
    assert_eq!(images.known(at(0x80)), None);
    // The second is in a function that was analysed.
    let places = [0x10, 0x25, 0x90, 0x90];
    let unknown = images.unknown(places.into_iter().map(at));
    let [unknown] = unknown.as_slice() else {
        unreachable!("one image")
    };
    assert_eq!(unknown.functions, [0x90]);
    assert_eq!(unknown.sites, [0x25, 0x90]);
    assert!(!unknown.surveyed);
    (0..UNUSED_LONG).for_each(|_| images.forget_unused());
    assert_eq!(images.known(at(0x2f)), None);
}

#[test]
fn an_answer_adds_to_what_is_known() {
    let (mut images, image) = one_image();
    let at = |offset| Place { image, offset };
    let inner = extent(0x20, 0x30, Primitive::P256);
    images.learn(image, learned(vec![inner], false));
    // The function around a place that was looked up before.
    let place = lookup::Extent {
        primitive: None,
        step: None,
        ..extent(0x94, 0x95, Primitive::Other)
    };
    let around = extent(0x90, 0xa0, Primitive::BigNumber);
    images.learn(image, learned(vec![place], false));
    images.learn(image, learned(vec![around, place], false));
    assert_eq!(
        images.known(at(0x94)),
        Some((Primitive::BigNumber, Evidence::Name))
    );
    // An answer to an older question knows less.
    let less = lookup::Extent {
        primitive: None,
        step: None,
        ..inner
    };
    images.learn(image, learned(vec![], true));
    images.learn(image, learned(vec![less], false));
    assert!(images.known(at(0x2f)).is_some());
    // By all functions it is another than by its own code, to which a later question leads again.
    let [by_all, by_itself] =
        [Primitive::RsaDh, Primitive::BigNumber].map(|one| extent(0x20, 0x30, one));
    images.learn(image, learned(vec![by_all], true));
    images.learn(image, learned(vec![by_itself], false));
    assert_eq!(
        images.known(at(0x2f)),
        Some((Primitive::RsaDh, Evidence::Name))
    );
    assert!(
        images
            .unknown([at(0xa0)].into_iter())
            .iter()
            .all(|one| one.surveyed)
    );
}

/// More bookings than an unused image stays open for.
const UNUSED_LONG: u32 = 601;
