/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What the registers of an interrupted CPU show, and which samples are identical. Pure
 * logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_SAMPLE_H
#define TLSPROF_SAMPLE_H

#include "kernel.h"
#include "contract.h"

/* Where a thread was in user mode, and what shows who called it. */
struct left_user_mode {
	__u64 instruction;
	__u64 stack_pointer;
	__u64 frame_pointer;
	__u64 link;
};

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
	__u64 flags;
	__u64 stack;
};

#define GENERAL_RBP 4

#define USER_PRIVILEGE 3 /* bits of cs, arch/x86/include/asm/segment.h */

static inline bool in_user_mode(const struct interrupted *at)
{
	return (at->cs & USER_PRIVILEGE) == USER_PRIVILEGE;
}

static inline bool in_32_bit_code(const struct interrupted *at)
{
	return (__u16)at->cs == CS_OF_32_BIT;
}

static inline __u64 unsigned_address(__u64 address)
{
	return address;
}

static inline struct left_user_mode registers_of(const struct interrupted *at)
{
	return (struct left_user_mode){ .instruction = at->instruction,
					.stack_pointer = at->stack,
					.frame_pointer = at->general[GENERAL_RBP] };
}
#else
/*
 * A return address without the signature that pointer authentication puts in bits 48 to 54 of
 * addresses in user space (Documentation/arch/arm64/pointer-authentication.rst); other bits
 * stay. Where addresses have 52 bits, programs get such only if they ask for them.
 */
#define SIGNATURE (0x7full << 48)

static inline __u64 unsigned_address(__u64 address)
{
	return address & ~SIGNATURE;
}

struct interrupted {
	__u64 general[31];
	__u64 stack;
	__u64 instruction;
	__u64 pstate;
};

#define EXCEPTION_LEVEL 0xf /* arch/arm64/include/uapi/asm/ptrace.h */

static inline bool in_user_mode(const struct interrupted *at)
{
	return !(at->pstate & EXCEPTION_LEVEL);
}

static inline bool in_32_bit_code(const struct interrupted *at)
{
	return at->pstate & STATE_OF_32_BIT;
}

static inline struct left_user_mode registers_of(const struct interrupted *at)
{
	return (struct left_user_mode){ .instruction = at->instruction,
					.stack_pointer = at->stack,
					.frame_pointer = at->general[29],
					.link = unsigned_address(at->general[30]) };
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

/* A hash of one word more. Multiplier: the golden ratio, as in the kernel's hash_64. */
static inline __u64 mixed(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
	return hash ^ hash >> 32;
}

/*
 * Tells kernel stacks apart. With 64 bits two of some thousand stacks have the same
 * hash once in 10^12 times.
 */
static inline __u64 stack_hash(const __u64 *stack, __u32 depth)
{
	__u64 hash = depth;

	for (__u32 i = 0; i < TLSPROF_STACK_DEPTH && i < depth; i++)
		hash = mixed(hash, stack[i]);
	return hash;
}

/* What words of a stack are compared with. */
struct surroundings {
	__u64 instruction;
	__u64 stack_pointer;
	__u64 program_start; /* code of the main program */
	__u64 program_end;
};

/* Libraries lie beside each other, above 4 GiB. */
#define NEARBY (64ull << 20)
#define LIBRARIES (1ull << 32)

/*
 * 1 if a word is in [start, start + size), else 0. Without a branch, as what follows: the
 * verifier follows both ways of each, for each word, and gives up at 8192 of them
 * (BPF_COMPLEXITY_LIMIT_JMP_SEQ, kernel/bpf/verifier.c).
 */
static inline __u64 within(__u64 word, __u64 start, __u64 size)
{
	__u64 offset = word - start;

	return ~(offset | (size - 1 - offset)) >> 63;
}

/*
 * Whether a word of a stack may be a return address or a saved frame pointer. All others
 * stay in the kernel: a stack holds keys and plaintext. One random word in 2^37 passes, and
 * one in 2^30 where addresses are signed.
 */
static inline __u64 may_show_caller(__u64 word, const struct surroundings *around)
{
	__u64 program = around->program_end - around->program_start;
	__u64 stack = TLSPROF_STACK_WORDS * sizeof(word);
	__u64 library = ~(word - LIBRARIES) >> 63;

	return within(word, around->program_start, program) |
	       within(word, around->stack_pointer, stack) |
	       (library & within(word, around->instruction - NEARBY, 2 * NEARBY));
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
