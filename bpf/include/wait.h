/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Why a thread leaves the CPU, from its state and its system call. */
#ifndef TLSPROF_WAIT_H
#define TLSPROF_WAIT_H

#include "kernel.h"
#include "contract.h"

/* System call numbers, stable ABI: x86-64 and the generic table (arm64). */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
static inline __u8 wait_of_syscall(long nr)
{
	switch (nr) {
	case 202: /* futex */
		return TLSPROF_WAIT_LOCK;
	case 318: /* getrandom */
		return TLSPROF_WAIT_RANDOM;
	case 0:   /* read */
	case 1:   /* write */
	case 7:   /* poll */
	case 19:  /* readv */
	case 20:  /* writev */
	case 23:  /* select */
	case 44:  /* sendto */
	case 45:  /* recvfrom */
	case 46:  /* sendmsg */
	case 47:  /* recvmsg */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
		return TLSPROF_WAIT_NETWORK;
	default:
		return TLSPROF_WAIT_OTHER;
	}
}
#else
static inline __u8 wait_of_syscall(long nr)
{
	switch (nr) {
	case 98: /* futex */
		return TLSPROF_WAIT_LOCK;
	case 278: /* getrandom */
		return TLSPROF_WAIT_RANDOM;
	case 22:  /* epoll_pwait */
	case 63:  /* read */
	case 64:  /* write */
	case 65:  /* readv */
	case 66:  /* writev */
	case 72:  /* pselect6 */
	case 73:  /* ppoll */
	case 206: /* sendto */
	case 207: /* recvfrom */
	case 211: /* sendmsg */
	case 212: /* recvmsg */
		return TLSPROF_WAIT_NETWORK;
	default:
		return TLSPROF_WAIT_OTHER;
	}
}
#endif

/*
 * `state` is the task's state when it is switched out, 0 (TASK_RUNNING) when
 * it was pre-empted. `in_iowait` wins over the system call: a read may be of a
 * file as well as of a socket.
 */
static inline __u8 wait_reason(long state, bool in_iowait, long syscall)
{
	if (state == 0)
		return TLSPROF_WAIT_RUN_QUEUE;
	if (in_iowait)
		return TLSPROF_WAIT_DISK;
	return wait_of_syscall(syscall);
}

#endif
