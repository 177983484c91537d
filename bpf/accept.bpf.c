/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * When a process accepts a connection: from ESTABLISHED until then it waited in the
 * accept queue. No tracepoint tells, so it is the end of the kernel's function that
 * takes connections out of the queue, or of the system call where all of these are
 * seen anyway (sockets.bpf.c). Without either it is not known: the first read comes
 * after it, and may come much later.
 */
#include "include/connections.h"

struct proto_accept_arg;

/* Up to 6.9 (kernel commit 92ef0fd55ac8). */
SEC("fexit/inet_csk_accept")
int BPF_PROG(accepted_4, struct sock *listener, int flags, int *error, bool kernel,
	     struct sock *accepted)
{
	if (accepted)
		handle_accept(accepted);
	return 0;
}

SEC("fexit/inet_csk_accept")
int BPF_PROG(accepted_2, struct sock *listener, struct proto_accept_arg *arg, struct sock *accepted)
{
	if (accepted)
		handle_accept(accepted);
	return 0;
}
