/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What the registers of an interrupted CPU show, and which samples are identical. Pure
 * logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_SAMPLE_H
#define TLSPROF_SAMPLE_H

#include "kernel.h"
#include "contract.h"

/*
 * The context of a program on a perf event: struct bpf_perf_event_data
 * (include/uapi/linux/bpf_perf_event.h). Its registers are part of the stable ABI:
 * not relocated, unlike those of kernel.h.
 */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
struct interrupted {
	__u64 general[16]; /* r15 ... di, orig_ax */
	__u64 instruction;
	__u64 cs;
};

#define USER_PRIVILEGE 3  /* bits of cs, arch/x86/include/asm/segment.h */
#define CS_OF_32_BIT 0x23 /* __USER32_CS */

static inline bool in_user_mode(const struct interrupted *at)
{
	return (at->cs & USER_PRIVILEGE) == USER_PRIVILEGE;
}

static inline bool in_32_bit_code(const struct interrupted *at)
{
	return (__u16)at->cs == CS_OF_32_BIT;
}
#else
struct interrupted {
	__u64 general[31];
	__u64 stack;
	__u64 instruction;
	__u64 pstate;
};

/* arch/arm64/include/uapi/asm/ptrace.h */
#define EXCEPTION_LEVEL 0xf
#define STATE_OF_32_BIT 0x10

static inline bool in_user_mode(const struct interrupted *at)
{
	return !(at->pstate & EXCEPTION_LEVEL);
}

static inline bool in_32_bit_code(const struct interrupted *at)
{
	return at->pstate & STATE_OF_32_BIT;
}
#endif

#define SMALLEST_PAGE 4096

/* Bytes from the beginning of an address's page to it, at most a side of a sample. */
static inline __u32 code_before(__u64 address)
{
	__u32 before = address & (SMALLEST_PAGE - 1);

	return before < TLSPROF_CODE_SIDE ? before : TLSPROF_CODE_SIDE;
}

/* Bytes from an address to the end of its page, likewise. */
static inline __u32 code_after(__u64 address)
{
	__u32 after = SMALLEST_PAGE - (address & (SMALLEST_PAGE - 1));

	return after < TLSPROF_CODE_SIDE ? after : TLSPROF_CODE_SIDE;
}

/*
 * Tells kernel stacks apart. With 64 bits two of some thousand stacks have the same
 * hash once in 10^12 times. Multiplier: the golden ratio, as in the kernel's hash_64.
 */
static inline __u64 stack_hash(const __u64 *stack, __u32 depth)
{
	__u64 hash = depth;

	for (__u32 i = 0; i < TLSPROF_STACK_DEPTH && i < depth; i++) {
		hash = (hash ^ stack[i]) * 0x9E3779B97F4A7C15ull;
		hash ^= hash >> 32;
	}
	return hash;
}

/* What the thread `tid` was working on, given what is being timed on its CPU. */
static inline __u32 handshake_state(__u32 tid, __u32 timed_call, __u32 timed_phase)
{
	__u32 state = 0;

	if (!tid)
		return 0;
	if (timed_call == tid)
		state |= TLSPROF_SAMPLE_IN_CALL;
	if (timed_phase == tid)
		state |= TLSPROF_SAMPLE_IN_PHASE;
	return state;
}

#endif
