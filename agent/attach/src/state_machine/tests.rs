//! The method tables of real libraries, and tables in which something is wrong.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::File;
use std::path::Path;

use super::*;
use tlsprof_discover::sample::installed;

/// Members 2 to 9 of libssl 3.0.22 (Debian 12): both roles, server, client.
const OPENSSL_3_0: [[u64; 3]; 8] = [
    [0x455b0, 0x455b0, 0x455b0],
    [0x45610, 0x45610, 0x45610],
    [0x455e0, 0x455e0, 0x455e0],
    [0x66dc0, 0x66dc0, 0x32a60],
    [0x66db0, 0x32a60, 0x66db0],
    [0x297a0, 0x297a0, 0x297a0],
    [0x297b0, 0x297b0, 0x297b0],
    [0x29650, 0x29650, 0x29650],
];

fn tables(members: &[[u64; 3]]) -> Tables {
    // Version and flags come first; they are no pointers.
    let column = |index: usize| {
        let pointers = members.iter().map(move |member| member.get(index).copied());
        [None, None].into_iter().chain(pointers).collect()
    };
    Tables {
        any: column(0),
        server: column(1),
        client: column(2),
    }
}

fn pairs(members: &[[u64; 3]]) -> Result<(u64, u64), String> {
    let found = tables(members).accept_and_connect(|address| address < 0x90000);
    found.map_err(|error| error.to_string())
}

const NOT_ONE: &str =
    "pairs of members differ between the method tables as accept and connect do, not one";

#[test]
fn tables_of_openssl_3_0() {
    assert_eq!(pairs(&OPENSSL_3_0), Ok((0x66dc0, 0x66db0)));
}

#[test]
fn other_layouts_of_the_same_members() {
    let mut reversed = OPENSSL_3_0;
    reversed.reverse();
    assert_eq!(pairs(&reversed), Ok((0x66dc0, 0x66db0)));
}

#[test]
fn equal_tables_have_no_pair() {
    assert_eq!(pairs(&[[0x100; 3]; 8]), Err(format!("0 {NOT_ONE}")));
    assert_eq!(pairs(&[]), Err(format!("0 {NOT_ONE}")));
}

#[test]
fn different_undefined_functions_are_no_pair() {
    let members = [[0x10, 0x10, 0x30], [0x20, 0x40, 0x20]];
    assert_eq!(pairs(&members), Err(format!("0 {NOT_ONE}")));
}

#[test]
fn members_that_are_no_code_are_no_pair() {
    let members = [[0x90010, 0x90010, 0x30], [0x20, 0x30, 0x20]];
    assert_eq!(pairs(&members), Err(format!("0 {NOT_ONE}")));
}

#[test]
fn two_pairs_are_refused() {
    let members = [[0x10, 0x10, 0x30], [0x20, 0x30, 0x20], [0x11, 0x11, 0x30]];
    assert_eq!(pairs(&members), Err(format!("2 {NOT_ONE}")));
}

#[test]
fn methods_return_the_address_of_a_table() {
    // TLS_method, Debian 12: lea 0x7da79(%rip),%rax; ret
    let code = [0x48, 0x8d, 0x05, 0x79, 0xda, 0x07, 0x00, 0xc3];
    assert_eq!(returned_address(&code, 0x25040), Some(0xa2ac0));
    // Debian 13: endbr64; lea 0xdc095(%rip),%rax; ret
    let code = [
        0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05, 0x95, 0xc0, 0x0d, 0x00, 0xc3,
    ];
    assert_eq!(returned_address(&code, 0x2ac00), Some(0x106ca0));
    // Node.js 20: mov $0x2d44fa0,%eax; ret
    let code = [0xb8, 0xa0, 0x4f, 0xd4, 0x02, 0xc3];
    assert_eq!(returned_address(&code, 0x1a58a60), Some(0x2d4_4fa0));
}

#[test]
fn methods_that_do_anything_else_are_refused() {
    // xor %eax,%eax; ret
    assert_eq!(returned_address(&[0x31, 0xc0, 0xc3], 0), None);
    // lea 0(%rip),%rdx; ret
    assert_eq!(
        returned_address(&[0x48, 0x8d, 0x15, 0, 0, 0, 0, 0xc3], 0),
        None
    );
    // lea 0(%rip),%rax; jmp
    assert_eq!(
        returned_address(&[0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xeb, 0], 0),
        None
    );
    assert_eq!(returned_address(&[], 0), None);
}

/// Instructions as objdump prints them.
fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn methods_return_the_address_of_a_table_on_aarch64() {
    // TLS_method, Debian 12: adrp x0, ac000; add x0, x0, #0x3e8; ret
    let debian12 = [0xf000_0420, 0x910f_a000, 0xd65f_03c0];
    let returned = aarch64::returned_address(&code(&debian12), 0x25490);
    assert_eq!(returned, Some(0xac3e8));
    // TLS_server_method, Debian 13:
    // bti c; adrp x0, 11b000; add x0, x0, #0x430; add x0, x0, #0x4d8; ret
    let debian13 = [
        0xd503_245f,
        0xf000_0760,
        0x9110_c000,
        0x9113_6000,
        0xd65f_03c0,
    ];
    let returned = aarch64::returned_address(&code(&debian13), 0x2c240);
    assert_eq!(returned, Some(0x11b908));
    // adr x0, -4; nop; add x0, x0, #1, lsl #12; ret
    let other = [0x10ff_ffe0, 0xd503_201f, 0x9140_0400, 0xd65f_03c0];
    assert_eq!(
        aarch64::returned_address(&code(&other), 0x8000),
        Some(0x8ffc)
    );
}

#[test]
fn methods_that_do_anything_else_are_refused_on_aarch64() {
    let (adrp, ret) = (0xf000_0420, 0xd65f_03c0);
    let others: [&[u32]; 6] = [
        &[],
        &[ret],
        // Cut off before the end.
        &[adrp, 0x910f_a000],
        // adrp x1, 0; ret
        &[0x9000_0001, ret],
        // adrp x0, ac000; ldr x0, [x0, #8]; ret
        &[adrp, 0xf940_0400, ret],
        // adrp x0, ac000; add x0, x1, #0; ret
        &[adrp, 0x9100_0020, ret],
    ];
    for other in others {
        let returned = aarch64::returned_address(&code(other), 0x25490);
        assert_eq!(returned, None, "{other:x?}");
    }
}

#[test]
fn tables_and_symbols_of_node_agree() {
    let path = Path::new("/usr/bin/node");
    if !path.exists() {
        eprintln!("skipped: {} is not installed", path.display());
        return;
    }
    let image = ElfView::open(File::open(path).unwrap()).unwrap();
    let symbols = image.symbols(&SYMBOLS).unwrap();
    let named = find(&image, &symbols).unwrap();
    assert_eq!(named.origin, Origin::Symbols);
    let tables = read_tables(&image, &symbols).unwrap();
    let derived = tables.accept_and_connect(|address| image.is_executable(address));
    assert_eq!(derived.unwrap(), (named.accept, named.connect));
}

/// Both functions end in a jump to (or hold a call of) the same state machine,
/// with 1 and 0 for "server".
#[test]
fn functions_of_the_installed_libssl_run_handshakes() {
    let image = ElfView::open(File::open(installed("libssl.so.3")).unwrap()).unwrap();
    let found = find(&image, &image.symbols(&SYMBOLS).unwrap()).unwrap();
    assert_eq!(found.origin, Origin::MethodTables);
    let accept = jumps_with_flag(&image, found.accept);
    let connect = jumps_with_flag(&image, found.connect);
    let common = accept
        .iter()
        .find(|(server, target)| *server && connect.contains(&(false, *target)));
    assert!(common.is_some(), "{accept:x?} {connect:x?}");
}

/// Jumps of a function that follow directly on a load of 1 or 0 into %esi.
fn jumps_with_flag(image: &ElfView, address: u64) -> Vec<(bool, u64)> {
    let size = image.function_extent(address).unwrap().unwrap();
    let code = image.code(address, size).unwrap();
    let instructions: Vec<Instruction> = Decoder::with_ip(64, &code, address, DecoderOptions::NONE)
        .iter()
        .collect();
    let pairs = instructions.iter().zip(instructions.iter().skip(1));
    pairs
        .filter(|(load, jump)| {
            load.op0_register() == Register::ESI && jump.mnemonic() == Mnemonic::Jmp
        })
        .map(|(load, jump)| (load.mnemonic() == Mnemonic::Mov, jump.near_branch_target()))
        .collect()
}
