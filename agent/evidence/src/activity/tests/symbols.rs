//! The table of functions, from good and bad text.

use proptest::prelude::*;

use crate::activity::kernel_functions::Meaning;
use crate::activity::kernel_symbols::{Error, KernelFunctions, Modules, names_in};
use crate::activity::{Activity, KernelWork};

/// Out of order, with data, a module, a BPF program, parts of functions and an alias.
const TEXT: &[u8] = b"\
ffffffff81000000 T _text
ffffffff81002000 t tcp_conn_request.constprop.0
ffffffff81001000 T tcp_sendmsg
ffffffff81001000 t an_alias
ffffffff81001000 T zz_alias
ffffffff81001800 D tcp_close
ffffffff81003000 t tcp_close_it
ffffffffc0400100 t tls_sw_sendmsg\t[tls]
ffffffffc0400000 t tls_init\t[tls]
ffffffffc0500000 t bpf_trampoline_6442509104\t[bpf]
ffffffffc0600000 t bpf_prog_6deef7357e7b4530_seccomp\t[bpf]
";

fn meaning(address: u64) -> KernelWork {
    KernelFunctions::parse(TEXT).unwrap().work(&[address])
}

fn is(meaning: Option<Meaning>) -> KernelWork {
    KernelWork::of([meaning])
}

#[test]
fn an_address_belongs_to_the_function_that_begins_before_it() {
    let decides = |activity| is(Some(Meaning::Decides(activity)));
    for (address, expected) in [
        (0xffff_ffff_8100_0fff, is(None)),
        (0xffff_ffff_8100_1000, decides(Activity::SocketIo)),
        (0xffff_ffff_8100_1fff, decides(Activity::SocketIo)),
        (0xffff_ffff_8100_2000, decides(Activity::TcpOpen)),
        (0xffff_ffff_8100_3000, is(None)),
        (0xffff_ffff_c040_00ff, is(None)),
        (0xffff_ffff_c040_0100, decides(Activity::Encryption)),
        (0xffff_ffff_c050_0000, is(Some(Meaning::Traces))),
        (0xffff_ffff_c060_0000, is(None)),
        (0, is(None)),
    ] {
        assert_eq!(meaning(address), expected, "{address:#x}");
    }
}

#[test]
fn names_come_back_whole() {
    let (inside, before) = (0xffff_ffff_8100_2004, 0x1000);
    let names = names_in(TEXT, &[inside, before]).unwrap();
    assert_eq!(names.len(), 1);
    assert_eq!(names[&inside], "tcp_conn_request.constprop.0");
}

#[test]
fn modules_are_the_same_until_one_comes_goes_or_moves() {
    let tls = |users: u32, address: &str| {
        Modules::parse(&format!(
            "tls 151552 {users} - Live {address}\nnft_ct 24576 1 nf_tables, Live 0xffffffffc0500000 (E)\n"
        ))
    };
    let before = tls(0, "0xffffffffc0400000");
    assert_eq!(tls(9, "0xffffffffc0400000"), before);
    assert_ne!(tls(0, "0xffffffffc0600000"), before);
    assert_ne!(Modules::parse(""), before);
    assert_eq!(Modules::parse("tls 151552\n\n"), Modules::parse(""));
}

#[test]
fn hidden_addresses_are_told_with_the_remedy() {
    let text = b"0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n\
                 0000000000000000 T tcp_sendmsg\n";
    let error = KernelFunctions::parse(text).unwrap_err();
    assert!(matches!(error, Error::Hidden), "{error}");
    let text = error.to_string();
    assert!(text.contains("CAP_SYSLOG") && text.contains("kernel.kptr_restrict"));
    assert!(matches!(names_in(b"0 T f\n", &[]), Err(Error::Hidden)));
}

#[test]
fn other_text_is_refused() {
    for text in ["", "\n", "ffffffff81000000 D jiffies\n"] {
        let error = KernelFunctions::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Empty), "{text:?}: {error}");
    }
    for line in [
        "x",
        "1",
        "1 T",
        "1 T ",
        "1 TT f",
        " 1 T f",
        "-1 T f",
        "g T f",
        "10000000000000000 T f",
    ] {
        let text = format!("1 T f\n{line}\n");
        let error = KernelFunctions::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Malformed(2)), "{line:?}: {error}");
    }
}

#[test]
fn what_a_kernel_lacks_is_told() {
    let missing = |text: &[u8]| KernelFunctions::parse(text).unwrap().missing().to_vec();
    assert!(!missing(TEXT).contains(&"tcp_sendmsg"));
    assert!(!missing(TEXT).contains(&"tcp_conn_request"));
    assert!(missing(TEXT).contains(&"tcp_close"));
    assert!(missing(TEXT).contains(&"handle_softirqs"));
    assert!(!missing(b"1 T __do_softirq\n").contains(&"handle_softirqs"));
}

#[test]
fn this_kernel_has_what_the_rules_need_or_hides_it() {
    match KernelFunctions::read() {
        Ok(functions) => assert_eq!(functions.missing(), [""; 0]),
        Err(error) => assert!(matches!(error, Error::Hidden | Error::Read(_)), "{error}"),
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text: Vec<u8>, address: u64) {
        if let Ok(functions) = KernelFunctions::parse(&text) {
            functions.work(&[address, address]);
        }
    }

    #[test]
    fn nearly_good_text_does_not_either(
        lines in prop::collection::vec("[0-9a-f]{1,17}[ \t][tTwDa][ \t][a-z._]{0,8}", 0..20),
        address: u64,
    ) {
        if let Ok(functions) = KernelFunctions::parse(lines.join("\n").as_bytes()) {
            functions.work(&[address, 0]);
        }
    }
}
