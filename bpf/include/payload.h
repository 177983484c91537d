/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Where the bytes of a socket call are in the memory of the calling process. The
 * kernel's hooks do not pass that, so it comes from the thread's saved registers.
 */
#ifndef TLSPROF_PAYLOAD_H
#define TLSPROF_PAYLOAD_H

#include "kernel.h"
#include "contract.h"
#include "syscalls.h"

/* struct iovec and the part of struct user_msghdr that matters (POSIX; 64 bit). */
struct user_iovec {
	__u64 base;
	__u64 length;
};

struct user_message {
	__u64 name;
	__u64 name_length; /* 32 bits and padding */
	__u64 iov;
	__u64 iov_count;
};

struct payload {
	__u64 base; /* next byte */
	__u64 left; /* in this piece */
	__u64 iov;  /* next piece */
	__u64 iov_left;
};

/* One socket call at its end, as a hook of any tier reports it. */
struct socket_call {
	struct sock *sock;
	struct pt_regs *registers; /* the system call's; NULL: those of the current task */
	__u64 time;     /* 0 until it is needed: the clock is expensive, see call_time() */
	int length;     /* bytes that moved; 0 or less: none did */
	__u8 direction; /* enum tlsprof_direction */
	bool tcp;
};

enum buffer_kind {
	BUFFER_UNKNOWN = 0,
	BUFFER_PLAIN,   /* second argument: address */
	BUFFER_VECTOR,  /* second and third: struct iovec array and count */
	BUFFER_MESSAGE, /* second: struct msghdr */
};

/* What is missing has no buffer of the caller (sendfile, splice), is not the call of
 * the thread that asked (io_uring), or has many buffers (recvmmsg, sendmmsg), which
 * nobody uses for streams. */
static inline __u8 buffer_of_syscall(long nr)
{
	switch (nr) {
	case NR_READ:
	case NR_WRITE:
	case NR_SENDTO:
	case NR_RECVFROM:
		return BUFFER_PLAIN;
	case NR_READV:
	case NR_WRITEV:
		return BUFFER_VECTOR;
	case NR_SENDMSG:
	case NR_RECVMSG:
		return BUFFER_MESSAGE;
	default:
		return BUFFER_UNKNOWN;
	}
}

/* Which way a system call moves data if its first argument is a socket; NONE for all
 * that never do. */
static inline __u8 direction_of_syscall(long nr)
{
	switch (nr) {
	case NR_READ:
	case NR_READV:
	case NR_RECVFROM:
	case NR_RECVMSG:
	case NR_RECVMMSG:
		return TLSPROF_DIRECTION_IN;
	case NR_WRITE:
	case NR_WRITEV:
	case NR_SENDFILE:
	case NR_SENDTO:
	case NR_SENDMSG:
	case NR_SENDMMSG:
		return TLSPROF_DIRECTION_OUT;
	default:
		return TLSPROF_DIRECTION_NONE;
	}
}

/* Whether a system call returns the number of an accepted connection. */
static inline bool accepts(long nr)
{
	return nr == NR_ACCEPT || nr == NR_ACCEPT4;
}

/* Which argument of a system call, from 1, holds the flags of a receive; 0 for none. */
static inline __u8 receive_flags_of_syscall(long nr)
{
	switch (nr) {
	case NR_RECVMSG:
		return 3;
	case NR_RECVFROM:
	case NR_RECVMMSG:
		return 4;
	default:
		return 0;
	}
}

#endif
