#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::time::Duration;

use super::images::Images;
use super::*;
use tlsprof_common::Device;
use tlsprof_discover::elf::ElfView;
use tlsprof_discover::sample::installed;

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
        count: 1,
    }
}

/// What is booked of these samples of handshakes.
fn booked(samples: &[CpuSample]) -> PrimitiveAccount {
    let proc = ProcRoot::default();
    let mappings = proc.images(std::process::id()).unwrap().unwrap();
    let mut primitives = Primitives::new();
    let mut ledger = Ledger::default();
    let handshake = (Activity::Handshake, Mode::User);
    ledger.add_samples(SERVICE, handshake.0, handshake.1, 1);
    for sample in samples {
        primitives.note(SERVICE, handshake, sample, &proc, &mappings);
    }
    let elsewhere = (Activity::Application, Mode::User);
    let one = sample(0, &[]);
    primitives.note(SERVICE, elsewhere, &one, &proc, &mappings);
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

#[test]
fn the_kernel_is_no_code_of_an_image() {
    let kernel = CpuSample {
        kernel_stack: vec![1],
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
    let handshake = (Activity::Handshake, Mode::User);
    primitives.note(SERVICE, handshake, &sample(0, &[]), &proc, &[]);
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
    let found = lookup::functions(File::open(&path).unwrap(), &[start + 5, 0], false).unwrap();
    let extent = lookup::Extent {
        start,
        end: start + function.size,
        primitive: Some((Primitive::BigNumber, Evidence::Name)),
    };
    assert_eq!(found.extents, [extent]);
    // With names, no other is needed.
    assert!(!found.surveyed);
}

fn extent(start: u64, end: u64, primitive: Primitive) -> lookup::Extent {
    lookup::Extent {
        start,
        end,
        primitive: Some((primitive, Evidence::Name)),
    }
}

#[test]
fn the_innermost_function_around_a_place_is_its_own() {
    let device = Device { major: 8, minor: 1 };
    let image = ImageId { device, inode: 7 };
    let at = |offset| Place { image, offset };
    let mut images = Images::default();
    assert!(images.touch(image, || Ok(File::open("/proc/self/exe").unwrap())));
    let inner = extent(0x20, 0x30, Primitive::P256);
    let learned = |extents, surveyed| lookup::Found { extents, surveyed };
    let outer = extent(0x10, 0x80, Primitive::Sha);
    images.learn(image, learned(vec![outer, inner], false));
    assert_eq!(
        images.known(at(0x2f)),
        Some((Primitive::P256, Evidence::Name))
    );
    assert_eq!(
        images.known(at(0x30)),
        Some((Primitive::Sha, Evidence::Name))
    );
    assert_eq!(images.known(at(0x80)), None);
    let unknown = images.unknown([at(0x10), at(0x90), at(0x90)].into_iter());
    let [unknown] = unknown.as_slice() else {
        unreachable!("one image")
    };
    assert_eq!(
        (unknown.offsets.as_slice(), unknown.surveyed),
        ([0x90].as_slice(), false)
    );
    // The function around a place that was looked up before.
    let place = lookup::Extent {
        primitive: None,
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
        ..inner
    };
    images.learn(image, learned(vec![], true));
    images.learn(image, learned(vec![less], false));
    assert!(images.known(at(0x2f)).is_some());
    assert!(
        images
            .unknown([at(0xa0)].into_iter())
            .iter()
            .all(|one| one.surveyed)
    );
    (0..UNUSED_LONG).for_each(|_| images.forget_unused());
    assert_eq!(images.known(at(0x2f)), None);
}

/// More bookings than an unused image stays open for.
const UNUSED_LONG: u32 = 601;
