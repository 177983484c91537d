//! What the kernel's functions are at work on, as far as a ledger of CPU time needs
//! it: a reviewed list.
//!
//! Each row was looked up in the symbols of Debian's kernels in [`KERNELS`] (x86-64,
//! the module tls included) and says in which of them it is; a test compares. Of those
//! that decide, 55 of 92 were seen on the stacks of nginx and ab. The others are their
//! twins for IPv6, and rarer cases (SYN cookies, lost SYN-ACKs, resets, kernel TLS in
//! workers and devices), placed by what net/ipv4, net/tls and net/socket.c call.
//!
//! A function is here only if all that happens in it belongs to one activity. So
//! `tcp_write_xmit` and `tcp_ack` are not: they serve connections at any stage, and
//! what calls them decides. Static functions that a compiler may inline are rows
//! only beside others that bracket the same work.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::types::Activity::{self, Application, Encryption, SocketIo, TcpClose, TcpOpen};
use super::types::{Packets, Upkeep};
use Meaning::{Decides, Hints, Interrupts, Keeps, Passes, Traces};
use Upkeep::{Memory, Process};

/// What a kernel function on a stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The work is this.
    Decides(Activity),
    /// The work is this if no other function decides.
    Hints(Activity),
    /// The work is the application's if no other function decides, for that purpose.
    Keeps(Upkeep),
    /// Packets pass here. The work is for those of TCP if no other function says more.
    Passes(Packets),
    /// What lies outside was interrupted by it.
    Interrupts,
    /// A probe was hit.
    Traces,
}

/// The kernels that the list was checked with, by series.
pub(crate) const KERNELS: [&str; 5] = ["5.10", "6.1", "6.12", "6.18", "7.3"];

/// Functions of one meaning that came and went together.
pub(super) struct Row {
    pub(super) meaning: Meaning,
    /// Indices of the first and the last of [`KERNELS`] that have them.
    #[cfg_attr(not(test), expect(dead_code, reason = "what a row was checked with"))]
    pub(super) kernels: (usize, usize),
    /// With `*` at the end: all that begin so.
    pub(super) names: &'static [&'static str],
}

const V5_10: usize = 0;
const V6_1: usize = 1;
const V6_12: usize = 2;
const V6_18: usize = 3;
const NEWEST: usize = KERNELS.len() - 1;

const fn always(meaning: Meaning, names: &'static [&'static str]) -> Row {
    since(V5_10, meaning, names)
}

const fn since(first: usize, meaning: Meaning, names: &'static [&'static str]) -> Row {
    within(first, NEWEST, meaning, names)
}

const fn until(last: usize, meaning: Meaning, names: &'static [&'static str]) -> Row {
    within(V5_10, last, meaning, names)
}

const fn within(
    first: usize,
    last: usize,
    meaning: Meaning,
    names: &'static [&'static str],
) -> Row {
    Row {
        meaning,
        kernels: (first, last),
        names,
    }
}

/// The list.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Softirqs. handle_softirqs does the work since 1dd1eff161bd (May 2024, also in
    // stable kernels, 6.1 among them); __do_softirq is a shell around it there.
    always(Interrupts, &["__do_softirq", "do_softirq", "run_ksoftirqd"]),
    since(V6_1, Interrupts, &["handle_softirqs", "napi_threaded_poll"]),
    since(V6_12, Interrupts, &["run_backlog_napi"]),
    // Interrupts: their handlers, not their entries. The entries (sysvec_*,
    // common_interrupt) also contain the way out, where the thread is preempted,
    // gets its signals, and uprobes are handled.
    always(Interrupts, &[
        "__sysvec_*", "handle_edge_irq", "handle_fasteoi_irq", "handle_level_irq",
        "handle_percpu_devid_irq", "hrtimer_interrupt",
    ]),
    since(V6_1, Interrupts, &["__common_interrupt"]),
    // Probes, of this program or of another; breakpoints and single steps are theirs,
    // or a debugger's. The names of BPF programs say nothing:
    // seccomp and XDP have some, too. What calls them does.
    always(Traces, &[
        "uprobe_notify_resume", "uprobe_pre_sstep_notifier", "uprobe_post_sstep_notifier",
        "uprobe_dispatcher", "uretprobe_dispatcher", "asm_exc_int3", "exc_int3",
        "asm_exc_debug", "exc_debug",
        "bpf_trace_run*", "__bpf_trace_*", "trace_call_bpf", "bpf_trampoline_*",
        "__bpf_prog_enter*", "__bpf_prog_exit*", "perf_syscall_enter", "perf_syscall_exit",
        "perf_trace_*",
    ]),
    since(V6_12, Traces, &[
        "uprobe_handle_trampoline", "uprobe_multi_link_handler", "__x64_sys_uretprobe",
    ]),

    // A connection is opened: SYN, SYN-ACK, ACK, accept, connect. do_accept and
    // __sys_accept4 also serve Unix sockets; a new socket's and file's allocation,
    // most of an accept, is in them.
    always(Decides(TcpOpen), &[
        "tcp_conn_request", "tcp_v4_conn_request", "tcp_v6_conn_request",
        "tcp_v4_send_synack", "tcp_v6_send_synack", "tcp_rtx_synack", "tcp_check_req",
        "tcp_v4_syn_recv_sock", "tcp_v6_syn_recv_sock", "tcp_child_process",
        "tcp_get_cookie_sock", "cookie_v4_check", "cookie_v6_check",
        "reqsk_timer_handler", "tcp_finish_connect", "tcp_v4_connect", "tcp_v6_connect",
        "inet_stream_connect", "__inet_stream_connect", "inet_csk_accept", "inet_accept",
        "do_accept", "__sys_accept4", "tcp_v4_init_sock", "tcp_v6_init_sock",
    ]),
    // It is closed: FIN, RST, close, shutdown, TIME_WAIT. A socket that is not TCP is
    // told by the row after these.
    always(Decides(TcpClose), &[
        "tcp_fin", "tcp_reset", "tcp_done", "tcp_close", "__tcp_close", "tcp_shutdown",
        "tcp_send_fin", "tcp_send_active_reset", "tcp_v4_send_reset", "tcp_v6_send_reset",
        "tcp_disconnect", "tcp_abort", "tcp_time_wait", "tcp_timewait_state_process",
        "tw_timer_handler", "inet_twsk_kill", "inet_twsk_deschedule_put", "inet_twsk_put",
        "inet_twsk_purge", "inet_csk_destroy_sock", "inet_csk_listen_stop",
        "inet_release", "inet6_release", "inet_shutdown",
    ]),
    always(Decides(Application), &[
        "sk_common_release", "unix_release", "unix_stream_connect", "netlink_release",
    ]),
    // The states that are neither open nor established: mostly closing ones. For those
    // on the way to open, the rows above decide.
    always(Hints(TcpClose), &["tcp_rcv_state_process"]),

    // Kernel TLS: entries from system calls, from the network, from workers. What
    // they hand on to TCP is a send or a receive again. Debian's 5.10 is without.
    since(V6_1, Decides(Encryption), &[
        "tls_sw_sendmsg", "tls_sw_recvmsg", "tls_sw_splice_read", "tls_data_ready",
        "tls_set_sw_offload", "tls_set_device_offload", "tls_device_sendmsg",
        "tls_validate_xmit_skb", "tx_work_handler", "tls_encrypt_done", "tls_decrypt_done",
    ]),
    within(V6_1, V6_1, Decides(Encryption), &["tls_sw_sendpage", "tls_device_sendpage"]),
    since(V6_12, Decides(Encryption), &["tls_sw_read_sock"]),

    // Send and receive, of any kind of socket.
    always(Decides(SocketIo), &[
        "sock_sendmsg", "sock_write_iter", "__sys_sendto", "___sys_sendmsg",
        "____sys_sendmsg", "__sys_sendmsg", "__sys_sendmmsg", "tcp_sendmsg",
        "tcp_sendmsg_locked", "sock_recvmsg", "sock_read_iter", "__sys_recvfrom",
        "___sys_recvmsg", "____sys_recvmsg", "__sys_recvmsg", "__sys_recvmmsg",
        "tcp_recvmsg", "sock_splice_read", "tcp_splice_read", "tcp_read_sock",
        "tcp_rcv_established",
    ]),
    until(V6_1, Decides(SocketIo), &["sock_sendpage", "tcp_sendpage", "do_tcp_sendpages"]),
    since(V6_12, Decides(SocketIo), &["splice_to_socket"]),
    // The network below: what is no other activity is done to send and receive. TCP's
    // timers also run for connections that open or close.
    always(Hints(SocketIo), &[
        "tcp_v4_rcv", "tcp_v6_rcv", "tcp4_gro_receive",
        "tcp_write_timer", "tcp_delack_timer", "tcp_keepalive_timer", "tcp_pace_kick",
        "tcp_compressed_ack_kick", "__tcp_push_pending_frames",
    ]),
    always(Passes(Packets::Any), &["net_rx_action", "net_tx_action", "process_backlog"]),
    since(V6_1, Passes(Packets::Any), &["__napi_poll"]),
    // What is received and is not TCP, or is forwarded. A compiler makes jumps of the last
    // calls in these, so that each may be on the stack in the place of the one before it.
    // What is forwarded looks, from ip_output on, like what is sent; the packet filter and
    // bridges have packets of any kind.
    always(Passes(Packets::NotTcp), &[
        "udp_rcv", "udpv6_rcv", "udp_unicast_rcv_skb", "udp6_unicast_rcv_skb",
        "udp_queue_rcv_skb", "udpv6_queue_rcv_skb", "udp_queue_rcv_one_skb",
        "udpv6_queue_rcv_one_skb", "__udp_enqueue_schedule_skb", "udp_v4_early_demux",
        "udp_v6_early_demux", "udp4_gro_receive", "udp6_gro_receive",
        "icmp_rcv", "icmpv6_rcv", "igmp_rcv", "arp_rcv", "ip_forward", "ip_forward_finish",
        "ip6_forward", "ip6_forward_finish",
    ]),
    until(V6_18, Passes(Packets::NotTcp), &["__udp4_lib_rcv", "__udp6_lib_rcv"]),
    until(V6_12, Hints(SocketIo), &["tcp_tasklet_func"]),
    since(V6_18, Hints(SocketIo), &["tcp_tsq_workfn"]),

    // Known not to be for connections. The system calls read, write and close are not
    // here: should a kernel rename what they call for sockets, it has to be seen.
    always(Hints(Application), &[
        "rcu_core", "run_timer_softirq", "hrtimer_run_softirq", "tasklet_action",
        "tasklet_hi_action", "blk_done_softirq", "irq_poll_softirq",
        "schedule", "do_futex", "do_epoll_wait", "do_epoll_ctl", "do_sys_poll", "do_select",
        "do_sys_openat2", "vfs_statx", "vfs_fstat", "do_fcntl", "iterate_dir",
        "vfs_fsync_range", "do_nanosleep",
        "get_signal", "task_work_run", "__sys_setsockopt", "__sys_getsockopt",
        "__sys_socket", "eventpoll_release_file", "eventfd_write", "eventfd_read",
        "generic_perform_write", "shmem_file_read_iter",
    ]),
    always(Keeps(Process), &[
        "kernel_clone", "do_exit", "do_execveat_common", "load_elf_binary", "begin_new_exec",
        "kernel_wait4",
    ]),
    always(Keeps(Memory), &[
        "exc_page_fault", "handle_mm_fault", "do_mmap", "__vm_munmap", "do_mprotect_pkey",
        "do_brk_flags", "do_madvise",
    ]),
    until(V6_1, Hints(Application), &["exit_to_user_mode_prepare"]),
    since(V6_12, Hints(Application), &["exit_to_user_mode_loop"]),
    until(V5_10, Hints(Application), &["generic_file_buffered_read"]),
    since(V6_1, Hints(Application), &["filemap_read"]),
    until(V6_12, Hints(Application), &["pipe_read", "pipe_write"]),
    since(V6_18, Hints(Application), &["anon_pipe_read", "anon_pipe_write"]),
    until(V6_1, Hints(Application), &["run_rebalance_domains", "generic_file_splice_read"]),
    since(V6_12, Hints(Application), &[
        "sched_balance_softirq", "workqueue_softirq_action", "filemap_splice_read",
        "shmem_file_splice_read",
    ]),
];

/// What the rules cannot do without, each under the names that it has had.
pub(super) const ESSENTIAL: &[&[&str]] = &[
    &["handle_softirqs", "__do_softirq"],
    &["net_rx_action"],
    &["tcp_conn_request"],
    &["tcp_check_req"],
    &["do_accept", "inet_csk_accept"],
    &["tcp_close"],
    &["tcp_fin"],
    &["tcp_time_wait"],
    &["tw_timer_handler"],
    &["tcp_sendmsg"],
    &["tcp_recvmsg"],
    &["tcp_rcv_established"],
];

/// The list, ready to be asked.
pub(super) struct Lookup {
    exact: HashMap<&'static [u8], Meaning, RandomState>,
    prefixes: Vec<(&'static [u8], Meaning)>,
}

impl Lookup {
    pub(super) fn new() -> Self {
        let (mut exact, mut prefixes) = (HashMap::default(), Vec::new());
        for row in ROWS {
            for name in row.names {
                match name.strip_suffix('*') {
                    Some(prefix) => prefixes.push((prefix.as_bytes(), row.meaning)),
                    None => _ = exact.insert(name.as_bytes(), row.meaning),
                }
            }
        }
        Self { exact, prefixes }
    }

    /// What a function means by its name in kallsyms.
    pub(super) fn meaning(&self, name: &[u8]) -> Option<Meaning> {
        let exact = self.exact.get(base_name(name)).copied();
        exact.or_else(|| {
            let mut prefixes = self.prefixes.iter();
            prefixes.find_map(|(prefix, meaning)| name.starts_with(prefix).then_some(*meaning))
        })
    }
}

/// A function's name without what compilers append to the parts that they make of
/// it: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.123`.
pub(super) fn base_name(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or(name)
}
