/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Why a thread leaves the CPU, from its state and its system call. */
#ifndef TLSPROF_WAIT_H
#define TLSPROF_WAIT_H

#include "kernel.h"
#include "contract.h"
#include "syscalls.h"

static inline __u8 wait_of_syscall(long nr)
{
	switch (nr) {
	case NR_FUTEX:
		return TLSPROF_WAIT_LOCK;
	case NR_GETRANDOM:
		return TLSPROF_WAIT_RANDOM;
#ifdef NR_HAS_OLD_CALLS
	case NR_POLL:
	case NR_SELECT:
	case NR_EPOLL_WAIT:
#endif
	case NR_READ:
	case NR_WRITE:
	case NR_READV:
	case NR_WRITEV:
	case NR_SENDTO:
	case NR_RECVFROM:
	case NR_SENDMSG:
	case NR_RECVMSG:
	case NR_PSELECT6:
	case NR_PPOLL:
	case NR_EPOLL_PWAIT:
		return TLSPROF_WAIT_NETWORK;
	default:
		return TLSPROF_WAIT_OTHER;
	}
}

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
