/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Where the bytes of a socket call lie in the memory of the calling process: its
 * saved registers tell, as the kernel's hooks do not.
 */
#ifndef TLSPROF_PAYLOAD_H
#define TLSPROF_PAYLOAD_H

#include "kernel.h"

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

enum buffer_kind {
	BUFFER_UNKNOWN = 0,
	BUFFER_PLAIN,   /* second argument: address */
	BUFFER_VECTOR,  /* second and third: struct iovec array and count */
	BUFFER_MESSAGE, /* second: struct msghdr */
};

/* System call numbers, stable ABI: x86-64 and the generic table (arm64). What is
 * missing has no buffer of the caller (sendfile, splice), or is not the call of
 * the thread that asked (io_uring). */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
static inline __u8 buffer_of_syscall(long nr)
{
	switch (nr) {
	case 0:  /* read */
	case 1:  /* write */
	case 44: /* sendto */
	case 45: /* recvfrom */
		return BUFFER_PLAIN;
	case 19: /* readv */
	case 20: /* writev */
		return BUFFER_VECTOR;
	case 46: /* sendmsg */
	case 47: /* recvmsg */
		return BUFFER_MESSAGE;
	default:
		return BUFFER_UNKNOWN;
	}
}
#else
static inline __u8 buffer_of_syscall(long nr)
{
	switch (nr) {
	case 63:  /* read */
	case 64:  /* write */
	case 206: /* sendto */
	case 207: /* recvfrom */
		return BUFFER_PLAIN;
	case 65: /* readv */
	case 66: /* writev */
		return BUFFER_VECTOR;
	case 211: /* sendmsg */
	case 212: /* recvmsg */
		return BUFFER_MESSAGE;
	default:
		return BUFFER_UNKNOWN;
	}
}
#endif

#endif
