/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* System call numbers, stable ABI: x86-64 and the generic table (arm64). */
#ifndef TLSPROF_SYSCALLS_H
#define TLSPROF_SYSCALLS_H

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
/* Calls that the generic table no longer has. */
#define NR_HAS_OLD_CALLS

enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_POLL = 7,
	NR_READV = 19,
	NR_WRITEV = 20,
	NR_SELECT = 23,
	NR_SENDFILE = 40,
	NR_ACCEPT = 43,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_SENDMSG = 46,
	NR_RECVMSG = 47,
	NR_FUTEX = 202,
	NR_EPOLL_WAIT = 232,
	NR_PSELECT6 = 270,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281,
	NR_ACCEPT4 = 288,
	NR_RECVMMSG = 299,
	NR_SENDMMSG = 307,
	NR_GETRANDOM = 318,
};
#else
enum {
	NR_EPOLL_PWAIT = 22,
	NR_READ = 63,
	NR_WRITE = 64,
	NR_READV = 65,
	NR_WRITEV = 66,
	NR_SENDFILE = 71,
	NR_PSELECT6 = 72,
	NR_PPOLL = 73,
	NR_FUTEX = 98,
	NR_ACCEPT = 202,
	NR_SENDTO = 206,
	NR_RECVFROM = 207,
	NR_SENDMSG = 211,
	NR_RECVMSG = 212,
	NR_ACCEPT4 = 242,
	NR_RECVMMSG = 243,
	NR_SENDMMSG = 269,
	NR_GETRANDOM = 278,
};
#endif

#endif
