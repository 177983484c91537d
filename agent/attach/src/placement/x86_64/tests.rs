//! Placement on real prologues. The code is that of functions in Debian's
//! OpenSSL packages, as `objdump -d` shows it; jump targets are relative.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;

const ADDRESS: u64 = 0x1000;
const RET: u8 = 0xc3;

fn whole(bytes: &[u8]) -> Code<'_> {
    Code {
        bytes,
        address: ADDRESS,
        whole: true,
    }
}

const fn needs(arguments: usize, return_address: bool) -> Needs {
    Needs {
        arguments,
        return_address,
    }
}

#[track_caller]
fn assert_site(bytes: &[u8], needs: Needs, offset: u64, shown: &str) {
    let placement = place(whole(bytes), needs).unwrap();
    assert_eq!(placement.to_string(), shown);
    assert_eq!(placement.offset_in_function, offset);
}

#[test]
fn ssl_free_is_probed_on_the_jump_behind_test() {
    // 3.0.19: test %rdi,%rdi; je +0x397; push %r13
    let code = [0x48, 0x85, 0xff, 0x0f, 0x84, 0x97, 3, 0, 0, 0x41, 0x55];
    assert_site(
        &code,
        needs(1, false),
        3,
        "je 0x13a0 at +3: emulated by the kernel",
    );
}

#[test]
fn ssl_free_with_endbr64() {
    // 3.5.7: endbr64; test %rdi,%rdi; je; push %rbx
    let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x6f, 0x53];
    assert_site(
        &code,
        needs(1, false),
        7,
        "je 0x1078 at +7: emulated by the kernel",
    );
}

#[test]
fn ssl_clear_with_load_before_the_jump() {
    // 3.5.7: endbr64; mov 0x18(%rdi),%rax; test %rax,%rax; je; jmp *…
    let code = [
        0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x47, 0x18, 0x48, 0x85, 0xc0, 0x74, 0x03, 0xff, 0x60,
        0x08,
    ];
    assert_site(
        &code,
        needs(1, false),
        11,
        "je 0x1010 at +11: emulated by the kernel",
    );
}

#[test]
fn keygen_is_probed_on_the_jump_behind_cmp() {
    // 3.0.19: cmpl $4,(%rdi); jne; jmp EVP_PKEY_generate
    let code = [0x83, 0x3f, 0x04, 0x75, 0x0b, 0xe9, 0x46, 0xe1, 0xea, 0xff];
    assert_site(
        &code,
        needs(0, true),
        3,
        "jne 0x1010 at +3: emulated by the kernel",
    );
}

#[test]
fn push_at_the_entry() {
    // EVP_PKEY_derive, 3.0.19: push %rbx; sub $0x10,%rsp
    let code = [0x53, 0x48, 0x83, 0xec, 0x10];
    assert_site(
        &code,
        needs(0, true),
        0,
        "push %rbx at entry: emulated by the kernel",
    );
}

#[test]
fn push_of_a_numbered_register_behind_endbr64() {
    // EVP_DigestSign, 3.5.7: endbr64; push %r15
    let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, RET];
    assert_site(
        &code,
        needs(3, true),
        4,
        "push %r15 at +4: emulated by the kernel",
    );
}

#[test]
fn thunk_is_probed_on_its_jump() {
    // EVP_PKEY_public_check, 3.0.19: xor %esi,%esi; jmp
    let code = [0x31, 0xf6, 0xe9, 0x39, 0xfe, 0xff, 0xff];
    assert_site(
        &code,
        needs(1, true),
        2,
        "jmp 0xe40 at +2: emulated by the kernel",
    );
    // The thunk sets the second argument: too late for who reads it.
    assert_site(
        &code,
        needs(2, true),
        0,
        "xor %esi,%esi at entry: single-stepped, xor %esi,%esi overwrites an argument",
    );
}

#[test]
fn ossl_statem_accept() {
    // 3.0.22: mov $1,%esi; jmp state_machine
    let code = [0xbe, 1, 0, 0, 0, 0xe9, 0xb6, 0xf1, 0xff, 0xff];
    assert_site(
        &code,
        needs(1, true),
        5,
        "jmp 0x1c0 at +5: emulated by the kernel",
    );
    // 1.1.1w: cmpl $1,0x48(%rdi); je; mov $1,%esi; jmp
    let code = [0x83, 0x7f, 0x48, 1, 0x74, 0x0a, 0xbe, 1, 0, 0, 0];
    assert_site(
        &code,
        needs(1, true),
        4,
        "je 0x1010 at +4: emulated by the kernel",
    );
}

#[test]
fn sub_hides_the_return_address_from_a_uretprobe_only() {
    // EVP_PKEY_derive, 3.6.5: endbr64; sub $0x28,%rsp; … test %rdi,%rdi; je
    let code = [
        0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x28, 0x48, 0x85, 0xff, 0x74, 0x01, RET, RET,
    ];
    assert_site(
        &code,
        needs(1, true),
        0,
        "endbr64 at entry: single-stepped, sub $0x28,%rsp moves the stack pointer",
    );
    assert_site(
        &code,
        needs(1, false),
        11,
        "je 0x100e at +11: emulated by the kernel",
    );
}

#[test]
fn partial_write_of_an_argument_counts() {
    // movzbl %dil,%edi; push %rbx
    let code = [0x40, 0x0f, 0xb6, 0xff, 0x53, RET];
    let placement = place(whole(&code), needs(1, false)).unwrap();
    assert!(!placement.emulated);
    // mov $1,%dl; push %rbx: writes the third argument's low byte.
    let code = [0xb2, 1, 0x53, RET];
    assert!(!place(whole(&code), needs(3, false)).unwrap().emulated);
    assert!(place(whole(&code), needs(2, false)).unwrap().emulated);
}

#[test]
fn nothing_beyond_a_branch_that_is_not_emulated() {
    // RSA_private_decrypt, 1.1.1w: mov 8(%rcx),%rax; jmp *0x20(%rax)
    let code = [0x48, 0x8b, 0x41, 0x08, 0xff, 0x60, 0x20, 0x90];
    assert_site(
        &code,
        needs(0, true),
        0,
        "mov 8(%rcx),%rax at entry: single-stepped, jmpq *0x20(%rax) leaves the straight line",
    );
    // A call is emulated, but faults under shadow stacks.
    let code = [0xe8, 0, 0, 0, 0, 0x53, RET];
    assert!(!place(whole(&code), needs(0, false)).unwrap().emulated);
}

#[test]
fn loop_back_before_the_site_makes_it_unusable() {
    // 0: endbr64; 4: test %rdi,%rdi; 7: je 0xe; 9: mov (%rdi),%rdi; c: jmp 4; e: ret
    let code = [
        0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8b, 0x3f, 0xeb, 0xf6, RET,
    ];
    assert_site(
        &code,
        needs(1, false),
        0,
        "endbr64 at entry: single-stepped, jmp 0x1004 jumps back before the cheap instruction",
    );
}

#[test]
fn loop_to_the_entry_or_behind_the_site_is_harmless() {
    // 0: test %rdi,%rdi; 3: je 7; 5: jmp 0; 7: ret
    let code = [0x48, 0x85, 0xff, 0x74, 0x02, 0xeb, 0xf9, RET];
    assert!(place(whole(&code), needs(1, false)).unwrap().emulated);
    // 0: test %rdi,%rdi; 3: je 7; 5: jmp 5; 7: ret
    let code = [0x48, 0x85, 0xff, 0x74, 0x02, 0xeb, 0xfe, RET];
    assert!(place(whole(&code), needs(1, false)).unwrap().emulated);
}

#[test]
fn unknown_end_allows_only_the_entry() {
    let bytes = [0x48, 0x85, 0xff, 0x74, 0x00, RET];
    let mut code = whole(&bytes);
    code.whole = false;
    let placement = place(code, needs(1, false)).unwrap();
    assert_eq!(placement.offset_in_function, 0);
    assert!(place(whole(&bytes), needs(1, false)).unwrap().emulated);
    // An entry that is cheap itself needs no check.
    let bytes = [0x53, RET];
    code = whole(&bytes);
    code.whole = false;
    assert!(place(code, needs(1, true)).unwrap().emulated);
}

#[test]
fn only_what_all_kernels_emulate() {
    for bytes in [
        &[0x50_u8][..],
        &[0x57],
        &[0x41, 0x50],
        &[0x90],
        &[0xeb, 0],
        &[0xe9, 0, 0, 0, 0],
        &[0x0f, 0x85, 0, 0, 0, 0],
    ] {
        assert!(is_emulated(bytes), "{bytes:x?}");
    }
    for bytes in [
        &[0x6a_u8, 1][..],         // push imm8
        &[0xff, 0x77, 8],          // push 8(%rdi)
        &[0x40, 0x50],             // push %rax with an idle REX
        &[0x66, 0x90],             // refused by older kernels
        &[0x0f, 0x1f, 0],          // single-stepped by older kernels
        &[0xf3, 0x90],             // pause
        &[0x41, 0x90],             // xchg %r8,%rax, taken for a nop by some kernels
        &[0xe8, 0, 0, 0, 0],       // call
        &[0xff, 0x25, 0, 0, 0, 0], // jmp *(%rip)
        &[0xf3, 0x0f, 0x1e, 0xfa], // endbr64
        &[0xe3, 0],                // jrcxz
        &[0x2e, 0x74, 0],          // je with a hint: refused
    ] {
        assert!(!is_emulated(bytes), "{bytes:x?}");
    }
}

#[test]
fn refused_and_undecodable_entries_are_errors() {
    let refused = |bytes: &[u8]| place(whole(bytes), needs(0, false)).unwrap_err();
    // lock xadd %eax,(%rdi)
    let error = refused(&[0xf0, 0x0f, 0xc1, 0x07]);
    assert!(matches!(error, PlacementError::Refused { .. }), "{error}");
    assert!(matches!(refused(&[0xcc]), PlacementError::Refused { .. }));
    let error = PlacementError::Undecodable { address: ADDRESS };
    assert_eq!(refused(&[]), error);
    assert_eq!(refused(&[0x06]), error);
}

proptest::proptest! {
    #[test]
    fn any_bytes_give_a_site_inside_or_an_error(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
        arguments in 0_usize..8,
        return_address: bool,
        whole: bool,
    ) {
        let code = Code { bytes: &bytes, address: u64::MAX - 16, whole };
        let needs = Needs { arguments, return_address };
        if let Ok(placement) = place(code, needs) {
            proptest::prop_assert!(placement.offset_in_function < bytes.len() as u64);
        }
    }
}
