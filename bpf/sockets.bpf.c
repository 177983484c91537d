/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Hooks on socket calls, of three kinds: the agent attaches the first that the kernel
 * allows. All run in the calling thread after the data has moved, and call
 * handle_call().
 *
 * tracepoint: sock_recv_length and sock_send_length, calls on all sockets (Linux 6.3,
 * kernel commit 6e6eda44b939).
 *
 * fentry: the ends of tcp_recvmsg() and tcp_sendmsg(), calls on TCP sockets whose
 * protocol was not replaced, as kernel TLS does it.
 *
 * raw_syscalls: sys_exit, every system call of the host. The socket is looked up by its
 * number, so the verifier takes no pointer to it.
 */
#include "include/files.h"
#include "include/socket_call.h"

#define SOCK_STREAM 1 /* include/linux/net.h */
#define MSG_PEEK 2    /* include/linux/socket.h */
#define MSG_ERRQUEUE 0x2000
#define TLSPROF_EBADF 9 /* asm-generic/errno-base.h */

struct msghdr;

static __always_inline void handle_received(struct socket_call *call, int flags)
{
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))
		handle_look();
	else
		handle_call(call);
}

static __always_inline bool is_tcp(struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP && sk->sk_type == SOCK_STREAM;
}

static __always_inline void receives(struct sock *sk, int flags, int length, bool tcp)
{
	struct socket_call call = {
		.sock = sk, .length = length, .direction = TLSPROF_DIRECTION_IN, .tcp = tcp
	};

	handle_received(&call, flags);
}

static __always_inline void sends(struct sock *sk, int length, bool tcp)
{
	struct socket_call call = {
		.sock = sk, .length = length, .direction = TLSPROF_DIRECTION_OUT, .tcp = tcp
	};

	handle_call(&call);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(socket_received, struct sock *sk, int length, int flags)
{
	RUN(TLSPROF_RUN_CALL, receives(sk, flags, length, is_tcp(sk)));
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(socket_sent, struct sock *sk, int length, int flags)
{
	RUN(TLSPROF_RUN_CALL, sends(sk, length, is_tcp(sk)));
	return 0;
}

/* Up to 5.18 (kernel commit ec095263a965). */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(tcp_received_6, struct sock *sk, struct msghdr *message, unsigned long size,
	     int nonblock, int flags, int *address_length, int length)
{
	RUN(TLSPROF_RUN_CALL, receives(sk, flags, length, true));
	return 0;
}

SEC("fexit/tcp_recvmsg")
int BPF_PROG(tcp_received_5, struct sock *sk, struct msghdr *message, unsigned long size, int flags,
	     int *address_length, int length)
{
	RUN(TLSPROF_RUN_CALL, receives(sk, flags, length, true));
	return 0;
}

/* Seen in 6.18 and later. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(tcp_received_4, struct sock *sk, struct msghdr *message, unsigned long size, int flags,
	     int length)
{
	RUN(TLSPROF_RUN_CALL, receives(sk, flags, length, true));
	return 0;
}

SEC("fexit/tcp_sendmsg")
int BPF_PROG(tcp_sent, struct sock *sk, struct msghdr *message, unsigned long size, int length)
{
	RUN(TLSPROF_RUN_CALL, sends(sk, length, true));
	return 0;
}

/* The current task's files by number. */
static __always_inline struct file **open_files(void)
{
	struct task_struct *task;

	/* 5.11 (kernel commit 3ca1032ab7ab): three calls of a helper less. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
		task = (void *)bpf_get_current_task_btf();
		return task->files->fdt->fd;
	}
	task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, files, fdt, fd);
}

/* The socket of a file, NULL for other files. */
static __always_inline struct sock *sock_of(__u32 number)
{
	struct file *file = file_by_number(open_files(), number);
	struct socket *socket;

	if (!is_type(BPF_CORE_READ(file, f_inode, i_mode), S_IFSOCK))
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

static __always_inline int receive_flags(struct pt_regs *regs, long nr)
{
	switch (receive_flags_of_syscall(nr)) {
	case 3:
		return SYSCALL_PARM3(regs);
	case 4:
		return SYSCALL_PARM4(regs);
	default:
		return 0;
	}
}

static __always_inline void handle_accepted_file(__u32 number)
{
	struct sock *sk = sock_of(number);

	if (sk && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
		handle_accept(sk);
}

static __always_inline void handle_syscall(struct pt_regs *regs, long nr, long returned)
{
	struct socket_call call = { .registers = regs,
				    .length = returned,
				    .direction = direction_of_syscall(nr) };
	struct sock *sk;

	if (accepts(nr) && returned >= 0 && !is_compat(regs))
		handle_accepted_file(returned);
	if (!call.direction || returned == -TLSPROF_EBADF)
		return;
	sk = sock_of(SYSCALL_PARM1(regs));
	/* 32-bit processes use other call numbers. Checked last, when most calls are already
	 * ruled out. */
	if (!sk || is_compat(regs))
		return;
	call.sock = sk;
	call.tcp = BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP &&
		   BPF_CORE_READ(sk, sk_type) == SOCK_STREAM;
	handle_received(&call, receive_flags(regs, nr));
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_returned, struct pt_regs *regs, long returned)
{
	RUN(TLSPROF_RUN_CALL, handle_syscall(regs, syscall_number(regs), returned));
	return 0;
}
