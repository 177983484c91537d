/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * When a process accepts a connection: it waited in the accept queue from ESTABLISHED
 * until then. The kernel has no tracepoint for this. The hook is the return of the
 * function that takes connections off the queue, or the end of the system call where
 * raw_syscalls is in use (sockets.bpf.c). Without either the wait is unknown: the first
 * read may come much later than accept.
 */
#include "include/connections.h"

struct proto_accept_arg;

/* Up to 6.9 (kernel commit 92ef0fd55ac8). */
SEC("fexit/inet_csk_accept")
int BPF_PROG(accepted_4, struct sock *listener, int flags, int *error, bool kernel,
	     struct sock *accepted)
{
	if (accepted)
		RUN(TLSPROF_RUN_STATE, handle_accept(accepted));
	return 0;
}

SEC("fexit/inet_csk_accept")
int BPF_PROG(accepted_2, struct sock *listener, struct proto_accept_arg *arg, struct sock *accepted)
{
	if (accepted)
		RUN(TLSPROF_RUN_STATE, handle_accept(accepted));
	return 0;
}
