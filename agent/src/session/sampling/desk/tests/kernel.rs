//! The kernel's functions, when modules come.

use super::*;
use std::thread::sleep;
use std::time::Duration;
use tlsprof_evidence::activity::kernel_symbols::Modules;

/// A kernel with kernel TLS.
const WITH_TLS: &[u8] = b"\
ffffffff81000000 T tcp_close
ffffffff81001000 T tcp_v4_do_rcv
ffffffff81002000 T handle_softirqs
ffffffff81003000 T nothing_known
ffffffff81004000 T tcp_v4_syn_recv_sock
ffffffff81005000 T sock_sendmsg
ffffffffc0300000 t aes_gcm_enc\t[aesni_intel]
ffffffffc0400000 t tls_sw_sendmsg\t[tls]
";

/// Knows the kernel as it was before kernel TLS was loaded.
fn desk_before_tls(source: Source) -> SampleDesk {
    let without = WITH_TLS.strip_suffix(b"ffffffffc0400000 t tls_sw_sendmsg\t[tls]\n");
    let functions = KernelFunctions::parse(without.unwrap()).unwrap();
    let modules = Modules::parse("aesni_intel 1 2 - Live 0xffffffffc0300000\n");
    let mut desk = SampleDesk::default();
    let kernel = Kernel::known(Ok(functions), Some(modules), source);
    desk.know_kernel(kernel, InterruptTime::InThread);
    desk
}

/// What a send by kernel TLS counts as.
fn activity_of_kernel_tls(desk: &mut SampleDesk) -> Activity {
    const CRYPTO: u64 = 0xffff_ffff_c030_0010;
    const TLS_SENDMSG: u64 = 0xffff_ffff_c040_0010;
    const SENDMSG: u64 = 0xffff_ffff_8100_5010;
    let table = table_of_the_server();
    let sample = in_kernel(SERVER, &[CRYPTO, TLS_SENDMSG, SENDMSG]);
    let shown = desk.take(&scene_of(&table, None), &sample);
    shown.unwrap().0
}

#[test]
fn kernel_tls_is_known_when_its_module_is_loaded_later() {
    let mut desk = desk_before_tls(Source {
        modules: || {
            Some(Modules::parse(
                "tls 4 0 - Live 0xffffffffc0400000\naesni_intel 1 3 - Live 0xffffffffc0300000\n",
            ))
        },
        functions: || KernelFunctions::parse(WITH_TLS).map_err(|error| error.to_string()),
    });
    assert_eq!(activity_of_kernel_tls(&mut desk), Activity::SocketIo);
    let is_known = (0..1000).any(|_| {
        sleep(Duration::from_millis(1));
        desk.ask_again();
        activity_of_kernel_tls(&mut desk) == Activity::Encryption
    });
    assert!(is_known, "the functions were not read again");
}
