//! Stubs as linkers write them: GNU ld unless said otherwise.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::fs::File;

use super::super::fixture::{BASE, CODE, DATA, Fixture, global_data, jump_slot};
use super::*;
use crate::elf::fixture::LEGACY;
use crate::sample::installed;

const NAME: &str = "ERR_vset_error";
const PLT: u64 = BASE + CODE;
const SLOT: u64 = BASE + DATA;
/// The word behind the slot: another function's.
const OTHER_SLOT: u64 = SLOT + 8;

/// `.plt.sec`: `endbr64; jmp *slot(%rip); nopw 0(%rax,%rax,1)`.
const IBT: [u8; 16] = [
    0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00,
];
/// `.plt.sec` of older GNU ld: `endbr64; bnd jmp *slot(%rip); nopl 0(%rax,%rax,1)`.
const IBT_BND: [u8; 16] = [
    0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0x00, 0x00,
];
/// mold: `endbr64; mov $1,%r11d; jmp *slot(%rip)`.
const MOLD: [u8; 16] = [
    0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 1, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0,
];

/// `stub` at `address`, with its jump going through `slot`.
fn stub(template: [u8; 16], address: u64, slot: u64) -> Vec<u8> {
    let opcode = template
        .windows(2)
        .position(|bytes| *bytes == [0xff, 0x25])
        .unwrap();
    let end = opcode + 6;
    let distance = i64::try_from(slot).unwrap() - i64::try_from(address).unwrap();
    let distance = i32::try_from(distance).unwrap() - i32::try_from(end).unwrap();
    let mut code = template.to_vec();
    code.splice(opcode + 2..end, distance.to_le_bytes());
    code
}

/// An image with a stub for another function and one for [`NAME`].
fn fixture(section: &'static str, template: [u8; 16]) -> Fixture {
    Fixture {
        code: [
            stub(template, PLT, OTHER_SLOT),
            stub(template, PLT + 16, SLOT),
        ]
        .concat(),
        code_section: section,
        exported: vec![("ERR_new", 0, 0), (NAME, 0, 0)],
        versions: vec![2; 2],
        rela: vec![(OTHER_SLOT, jump_slot(1), 0), (SLOT, jump_slot(2), 0)],
        ..Fixture::default()
    }
}

fn import_jump(fixture: &Fixture) -> Result<Symbol, ImportError> {
    let image = ElfView::new(Box::new(fixture.build())).unwrap();
    let symbols = image.symbols(&[NAME]).unwrap();
    image.import_jump(&symbols, NAME)
}

#[test]
fn jump_is_found_in_every_kind_of_stub() {
    let kinds = [
        (".plt", LEGACY, 0, 6),
        (".plt.sec", IBT, 4, 6),
        (".plt.sec", IBT_BND, 4, 7),
        (".plt", MOLD, 10, 6),
    ];
    for (section, template, offset, size) in kinds {
        let address = PLT + 16 + offset;
        let found = import_jump(&fixture(section, template)).unwrap();
        assert_eq!(found, Symbol { address, size }, "{section} {template:x?}");
    }
}

#[test]
fn installed_libssl_has_one_jump_for_each_import() {
    let file = File::open(installed("libssl.so.3")).unwrap();
    let image = ElfView::open(file).unwrap();
    let names = [NAME, "ERR_set_error"];
    let symbols = image.symbols(&names).unwrap();
    let jumps = names.map(|name| image.import_jump(&symbols, name).unwrap());
    assert_ne!(jumps[0].address, jumps[1].address);
    for jump in jumps {
        let code = image.code(jump.address, jump.size).unwrap();
        let opcode = code.strip_prefix(&[0xf2]).unwrap_or(&code);
        assert!(opcode.starts_with(&[0xff, 0x25]), "{code:x?}");
    }
}

#[test]
fn function_that_is_not_imported_has_no_jump() {
    let mut image = fixture(".plt", LEGACY);
    image.rela.pop();
    assert!(matches!(import_jump(&image), Err(ImportError::NotImported)));
    image.exported.pop();
    assert!(matches!(import_jump(&image), Err(ImportError::NotImported)));
}

#[test]
fn calls_without_the_stub_are_not_overlooked() {
    // As with `-fno-plt`, and as with a pointer to the function besides.
    for more in [None, Some((SLOT, jump_slot(2), 0))] {
        let mut image = fixture(".plt", LEGACY);
        image.rela = vec![(OTHER_SLOT, global_data(2), 0)];
        image.rela.extend(more);
        assert!(matches!(
            import_jump(&image),
            Err(ImportError::AddressTaken)
        ));
    }
}

#[test]
fn jumps_must_be_one_in_a_section_of_stubs() {
    let count = |fixture: &Fixture| match import_jump(fixture) {
        Err(ImportError::Jumps(count)) => Some(count),
        _ => None,
    };
    assert_eq!(count(&fixture(".text", LEGACY)), Some(0));
    let mut twice = fixture(".plt", LEGACY);
    twice.code.extend(stub(LEGACY, PLT + 32, SLOT));
    assert_eq!(count(&twice), Some(2));
}

#[test]
fn section_that_is_not_all_code_is_refused() {
    let mut image = fixture(".plt", LEGACY);
    image.code.extend([0x06; 16]);
    assert!(matches!(
        import_jump(&image),
        Err(ImportError::Elf(ElfError::Malformed(WHAT)))
    ));
}

#[test]
fn other_processors_are_not_supported() {
    let mut image = fixture(".plt", LEGACY);
    image.machine = u64::from(format::EM_AARCH64.0);
    assert!(matches!(
        import_jump(&image),
        Err(ImportError::Architecture(Arch::Aarch64))
    ));
}
