/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The few kernel types that the programs read, relocated by CO-RE: only names
 * matter here, offsets come from the running kernel's BTF.
 */
#ifndef TLSPROF_KERNEL_H
#define TLSPROF_KERNEL_H

/* What saved registers show of 32-bit code: __USER32_CS in cs (arch/x86/include/asm/segment.h),
 * PSR_MODE32_BIT in pstate (arch/arm64/include/uapi/asm/ptrace.h). */
#define CS_OF_32_BIT 0x23
#define STATE_OF_32_BIT 0x10

#ifdef TLSPROF_NATIVE
/* Logic compiled natively, for unit tests. */
#include <linux/types.h>
#include <stdbool.h>
#else

/* bpf_tracing.h: take the kernel's names of pt_regs fields, not libc's. */
#define __VMLINUX_H__
#include <linux/bpf.h>

#ifndef bool
typedef _Bool bool;
#define true 1
#define false 0
#endif

/* Builds name the machine; editors do not. */
#if !defined(__TARGET_ARCH_x86) && !defined(__TARGET_ARCH_arm64)
#define __TARGET_ARCH_x86
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};
#else
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	__u64 regs[31], sp, pc, pstate, orig_x0;
	__s32 syscallno;
};
#endif

struct sched_entity {
	__u64 sum_exec_runtime;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	int nr_threads;
	__u64 utime;
	__u64 stime;
	unsigned long long sum_sched_runtime;
};

struct mm_struct {
	unsigned long start_code;
	unsigned long end_code;
};

/* A function whose return is probed: the address on its stack is that of the probe. */
struct return_instance {
	unsigned long stack; /* where the return address is */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct task_struct {
	unsigned int __state; /* `state` up to 5.13, see task_state() */
	unsigned int flags;
	struct sched_entity se;
	__u64 utime;
	__u64 stime;
	unsigned long nvcsw;  /* how often it left the CPU of its own accord */
	unsigned long nivcsw; /* and how often it had to */
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	char comm[16];
	struct signal_struct *signal;
	struct files_struct *files;
	struct mm_struct *mm;
	struct uprobe_task *utask;
};

/* Up to 5.13 (renamed by kernel commit 2f064a59a11f). */
struct task_struct___before_5_14 {
	long state;
};

struct linux_binprm {
	const char *filename;
};

struct ns_common {
	unsigned int inum;
};

/* Since 6.7 (kernel commit 41db7626b732): high << 16 | low. */
struct local_ports {
	__u32 range;
};

struct local_ports___before_6_7 {
	int range[2];
};

struct netns_ipv4 {
	struct local_ports ip_local_ports;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u64 u6_addr64[2];
	} in6_u;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fdtable {
	struct file **fd;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct inode {
	unsigned long i_ino;
	unsigned short i_mode;
	__u32 i_rdev;
};

struct socket {
	struct sock *sk;
};

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_dport;
	__u16 skc_family;
	struct in6_addr skc_v6_daddr;
	possible_net_t skc_net;
	unsigned short skc_num; /* local port, host byte order; 0 once closed */
	volatile unsigned char skc_state;
	unsigned long skc_flags;
};

typedef struct {
	int owned; /* by a process that is inside a call */
} socket_lock_t;

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	__u16 sk_type;
	__u16 sk_protocol; /* a bit-field up to 5.5 (kernel commit bf9765145b85) */
	int sk_err;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	__u64 bytes_sent; /* retransmissions included */
	__u64 bytes_retrans;
	__u64 bytes_received;
	int linger2;
	__u32 mss_cache;
	struct minmax rtt_min; /* microseconds, ~0 until there is one */
};

#pragma clang attribute pop

struct seq_file;

/* What the kernel hands to an iterator over open files (kernel/bpf/task_iter.c): fixed places, not relocated. */
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u64 fd;
	struct file *file;
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80
/* include/uapi/linux/in.h */
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262
/* include/net/tcp_states.h */
#define TCP_LISTEN 10

static __always_inline long task_state(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	/* Read at every switch. The verifier knows the task's type, so no helper is needed. */
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return old->state;
}

/*
 * Bounds a length visibly for the verifier: up to 6.1 at least, it loses a comparison if the
 * compiler keeps two copies of the compared value.
 */
static __always_inline __u64 at_most(__u64 value, const __u64 most)
{
	asm volatile("if %[value] <= %[most] goto +1\n"
		     "%[value] = %[most]"
		     : [value] "+r"(value)
		     : [most] "i"(most));
	return value;
}

/* The system call that a task is in, by its saved registers. The verifier knows what these
 * pointers point to: they are read without a helper. */
#if defined(__TARGET_ARCH_x86)
static __always_inline long syscall_number(struct pt_regs *regs)
{
	return regs->orig_ax;
}

static __always_inline bool is_compat(struct pt_regs *regs)
{
	return (__u16)regs->cs == CS_OF_32_BIT;
}

static __always_inline __u64 instruction_of(struct pt_regs *regs)
{
	return regs->ip;
}

static __always_inline __u64 frame_pointer_of(struct pt_regs *regs)
{
	return regs->bp;
}

static __always_inline __u64 link_of(struct pt_regs *regs)
{
	return 0;
}

#define SYSCALL_PARM1(regs) ((regs)->di)
#define SYSCALL_PARM2(regs) ((regs)->si)
#define SYSCALL_PARM3(regs) ((regs)->dx)
#define SYSCALL_PARM4(regs) ((regs)->r10)
#else
static __always_inline long syscall_number(struct pt_regs *regs)
{
	return regs->syscallno;
}

static __always_inline bool is_compat(struct pt_regs *regs)
{
	return regs->pstate & STATE_OF_32_BIT;
}

static __always_inline __u64 instruction_of(struct pt_regs *regs)
{
	return regs->pc;
}

static __always_inline __u64 frame_pointer_of(struct pt_regs *regs)
{
	return regs->regs[29];
}

static __always_inline __u64 link_of(struct pt_regs *regs)
{
	return regs->regs[30];
}

#define SYSCALL_PARM1(regs) ((regs)->orig_x0)
#define SYSCALL_PARM2(regs) ((regs)->regs[1])
#define SYSCALL_PARM3(regs) ((regs)->regs[2])
#define SYSCALL_PARM4(regs) ((regs)->regs[3])
#endif

#endif /* TLSPROF_NATIVE */
#endif
