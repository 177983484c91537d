/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* What the kernel's fields of a TCP socket say about how its connection ends. */
#ifndef TLSPROF_SOCKET_END_H
#define TLSPROF_SOCKET_END_H

#include "kernel.h"
#include "contract.h"
#include <linux/bpf.h> /* BPF_TCP_*: the kernel's TCP states, stable numbers */

/* asm-generic/errno.h, as sk_err holds them. */
#define TLSPROF_ECONNABORTED 103
#define TLSPROF_ETIMEDOUT 110

/* enum sock_flags (include/net/sock.h): bits of skc_flags. */
#define SOCK_DEAD_BIT (1UL << 0) /* no process has the socket any more */
#define SOCK_DONE_BIT (1UL << 1) /* the peer's FIN has come */

/* A socket at a change of its state. */
struct socket_end {
	int error;           /* sk_err */
	int linger2;         /* tcp_sock.linger2, negative: no waiting for the peer's FIN */
	unsigned long flags; /* skc_flags */
	bool in_call;        /* sk_lock.owned: a process is inside a call on it */
};

static inline bool in_states(int state, unsigned int states)
{
	return (1U << state) & states;
}

/*
 * Both sides have sent FIN, or the kernel still waits for the peer's on behalf
 * of a socket that is closed: the states in which tcp_time_wait() hands the
 * connection to a TIME_WAIT bucket, and then sets CLOSE (net/ipv4/tcp_input.c,
 * tcp_minisocks.c). A close with unread data also goes from FIN_WAIT2 to CLOSE,
 * but it sends a reset, before the socket is orphaned and without a FIN from
 * the peer. A bucket that the kernel has no room for (TcpExt
 * TCPTimeWaitOverflow) looks the same as one that it created.
 */
static inline bool makes_time_wait(int old, const struct socket_end *end)
{
	if (end->error)
		return false;
	if (old == BPF_TCP_CLOSING)
		return true;
	return old == BPF_TCP_FIN_WAIT2 && end->linger2 >= 0 &&
	       (end->flags & (SOCK_DEAD_BIT | SOCK_DONE_BIT));
}

/*
 * Whether the change into `new` is made by a task that has the socket: a close that sends FIN
 * (net/ipv4/tcp.c, tcp_close_state()), or one that resets, with unread data or a linger of 0 s
 * (__tcp_close(), tcp_disconnect()). A peer's reset leaves an error.
 */
static inline bool is_by_task(int new, const struct socket_end *end)
{
	if (new == BPF_TCP_CLOSE)
		return end->in_call && !end->error;
	return in_states(new, 1U << BPF_TCP_FIN_WAIT1 | 1U << BPF_TCP_LAST_ACK);
}

/* The kernel counts the peer's FIN as a byte (tcp_rcv_nxt_update()). */
static inline __u64 payload_received(__u64 bytes_received, unsigned long flags)
{
	return bytes_received && (flags & SOCK_DONE_BIT) ? bytes_received - 1 : bytes_received;
}

/* Nanoseconds of what tcp_min_rtt() has: microseconds, and ~0 where it has none. */
static inline __u64 round_trip(__u32 least)
{
	return least == ~0U ? 0 : least * 1000ULL;
}

/* Bytes after the first `part`. Where the kernel has left out runs of programs, what is
 * known of a connection may belong to another one. */
static inline __u64 bytes_after(__u64 all, __u64 part)
{
	return all > part ? all - part : 0;
}

/* Who ends a connection that goes straight to CLOSE. */
static inline __u8 closer_of_error(int error)
{
	switch (error) {
	case 0:                    /* closed with unread data, or SO_LINGER 0: we send RST */
	case TLSPROF_ECONNABORTED: /* ended by the administrator (ss -K) */
		return TLSPROF_CLOSER_LOCAL;
	case TLSPROF_ETIMEDOUT:
		return TLSPROF_CLOSER_TIMEOUT;
	default:
		return TLSPROF_CLOSER_REMOTE;
	}
}

#endif
