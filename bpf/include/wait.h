/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Why a thread leaves the CPU, from its state and its system call. */
#ifndef TLSPROF_WAIT_H
#define TLSPROF_WAIT_H

#include "kernel.h"
#include "contract.h"
#include "files.h"
#include "syscalls.h"

/* The file of a read or write that a thread sleeps in; all 0 if unknown. */
struct waited_file {
	__u16 mode;    /* i_mode */
	__u32 device;  /* i_rdev, of character devices */
	__u64 name[2]; /* first bytes of the last part of its path, of FIFOs */
};

/* Numbers as the kernel keeps them: include/linux/kdev_t.h. */
#define DEVICE(major, minor) ((major) << 20 | (minor))

/* Documentation/admin-guide/devices.txt: /dev/random, which blocks up to 5.5 (kernel commit
 * 30c08efec888), /dev/urandom and /dev/hwrng. */
static inline bool is_random_device(__u32 device)
{
	return device == DEVICE(1, 8) || device == DEVICE(1, 9) || device == DEVICE(10, 183);
}

#define NAME(a, b, c, d, e, f, g)                                                                \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48)

/* A FIFO in place of a random device, as in a chroot: the names that OpenSSL looks for
 * (DEVRANDOM in its sources). The purpose of other FIFOs is unknown. */
static inline bool is_random_name(const __u64 *name)
{
	return name[0] == NAME('r', 'a', 'n', 'd', 'o', 'm', 0) ||
	       name[0] == NAME('u', 'r', 'a', 'n', 'd', 'o', 'm') ||
	       name[0] == NAME('s', 'r', 'a', 'n', 'd', 'o', 'm') ||
	       name[0] == NAME('h', 'w', 'r', 'n', 'g', 0, 0);
}

static inline __u8 wait_of_file(const struct waited_file *file)
{
	switch (file->mode & S_IFMT) {
	case S_IFSOCK:
		return TLSPROF_WAIT_NETWORK;
	case S_IFIFO:
		return is_random_name(file->name) ? TLSPROF_WAIT_RANDOM : TLSPROF_WAIT_PIPE;
	case S_IFCHR:
		return is_random_device(file->device) ? TLSPROF_WAIT_RANDOM : TLSPROF_WAIT_OTHER;
	default:
		return TLSPROF_WAIT_OTHER;
	}
}

/* Calls on any kind of file. */
static inline bool is_file_syscall(long nr)
{
	return nr == NR_READ || nr == NR_WRITE || nr == NR_READV || nr == NR_WRITEV;
}

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
 * it was pre-empted. `in_iowait` wins over the system call. `file` is that of the
 * call, and matters only where asks_file() is true.
 */
static inline __u8 wait_reason(long state, bool in_iowait, long syscall,
			       const struct waited_file *file)
{
	if (state == 0)
		return TLSPROF_WAIT_RUN_QUEUE;
	if (in_iowait)
		return TLSPROF_WAIT_DISK;
	return is_file_syscall(syscall) ? wait_of_file(file) : wait_of_syscall(syscall);
}

static inline bool asks_file(long state, bool in_iowait, long syscall)
{
	return state != 0 && !in_iowait && is_file_syscall(syscall);
}

#endif
