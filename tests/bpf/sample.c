/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unit tests of bpf/include/sample.h, compiled natively. */
#include "check.h"
#include "sample.h"

#if defined(__x86_64__)
static void the_code_segment_tells_user_mode(void)
{
	/* __USER_CS, __USER32_CS, __KERNEL_CS; what FRED puts above 16 bits is no part of it. */
	struct interrupted user = { .cs = 0x33 }, compat = { .cs = 0x23 }, kernel = { .cs = 0x10 };
	struct interrupted fred = { .cs = 0x23 | 1ull << 32 };

	CHECK_EQUAL(in_user_mode(&user), true);
	CHECK_EQUAL(in_user_mode(&compat), true);
	CHECK_EQUAL(in_user_mode(&kernel), false);
	CHECK_EQUAL(in_32_bit_code(&user), false);
	CHECK_EQUAL(in_32_bit_code(&compat), true);
	CHECK_EQUAL(in_32_bit_code(&fred), true);
}
#endif

static void code_beside_a_page_boundary_stops_there(void)
{
	CHECK_EQUAL(code_before(0x5000), 0);
	CHECK_EQUAL(code_before(0x5001), 1);
	CHECK_EQUAL(code_before(0x507f), 127);
	CHECK_EQUAL(code_before(0x5800), 128);
	CHECK_EQUAL(code_after(0x5000), 128);
	CHECK_EQUAL(code_after(0x5f80), 128);
	CHECK_EQUAL(code_after(0x5f81), 127);
	CHECK_EQUAL(code_after(0x5fff), 1);
}

static void code_within_a_page_is_in_it(void)
{
	for (__u64 at = 0x5000; at < 0x6000; at++) {
		__u64 begin = at - code_before(at), end = at + code_after(at);

		if (begin < 0x5000 || end > 0x6000 || end - begin > 2 * TLSPROF_CODE_SIDE)
			CHECK_EQUAL(at, 0);
	}
	CHECK_EQUAL(2 * TLSPROF_CODE_SIDE <= sizeof(((struct tlsprof_sample *)0)->data), true);
}

static void stacks_that_differ_anywhere_have_other_hashes(void)
{
	__u64 stack[TLSPROF_STACK_DEPTH], swapped[TLSPROF_STACK_DEPTH];
	__u64 hash;

	for (__u32 i = 0; i < TLSPROF_STACK_DEPTH; i++)
		stack[i] = 0xffffffff81000000 + 64 * i;
	hash = stack_hash(stack, TLSPROF_STACK_DEPTH);
	CHECK_EQUAL(stack_hash(stack, TLSPROF_STACK_DEPTH), hash);
	for (__u32 i = 0; i < TLSPROF_STACK_DEPTH; i++) {
		stack[i] += 1;
		CHECK_EQUAL(stack_hash(stack, TLSPROF_STACK_DEPTH) == hash, false);
		stack[i] -= 1;
		CHECK_EQUAL(stack_hash(stack, i) == hash, false);
	}
	__builtin_memcpy(swapped, stack, sizeof(stack));
	swapped[3] = stack[4];
	swapped[4] = stack[3];
	CHECK_EQUAL(stack_hash(swapped, TLSPROF_STACK_DEPTH) == hash, false);
}

static void words_that_show_callers_pass(void)
{
	struct surroundings around = { .instruction = 0x7f0012345678,
				       .stack_pointer = 0x7ffc00001000,
				       .program_start = 0x400000,
				       .program_end = 0x500000 };
	__u64 near = around.instruction, stack = around.stack_pointer;
	__u64 end = stack + TLSPROF_STACK_WORDS * 8;
	__u64 pass[] = {
		0x400000, 0x4fffff, near, near - NEARBY, near + NEARBY - 1, stack, end - 1
	};
	__u64 stay[] = { 0,   0x3fffff, 0x500000,   near - NEARBY - 1, near + NEARBY,     stack - 1,
			 end, ~0ull,    1ull << 63, near | 1ull << 52, stack | 1ull << 63 };

	for (unsigned int i = 0; i < sizeof(pass) / sizeof(*pass); i++)
		CHECK_EQUAL(may_show_caller(pass[i], &around), 1);
	for (unsigned int i = 0; i < sizeof(stay) / sizeof(*stay); i++)
		CHECK_EQUAL(may_show_caller(stay[i], &around), 0);
	/* Small numbers are no addresses, where code is low, either. */
	around.instruction = 0x401000;
	CHECK_EQUAL(may_show_caller(0x1234, &around), 0);
	CHECK_EQUAL(may_show_caller(0x401234, &around), 1);
	/* A process that has no memory any more. */
	around.program_start = around.program_end = 0;
	CHECK_EQUAL(may_show_caller(0, &around), 0);
}

static void what_is_timed_is_the_threads_own(void)
{
	CHECK_EQUAL(handshake_state(7, 7, 0), TLSPROF_SAMPLE_IN_CALL);
	CHECK_EQUAL(handshake_state(7, 0, 7), TLSPROF_SAMPLE_IN_PHASE);
	CHECK_EQUAL(handshake_state(7, 7, 7), TLSPROF_SAMPLE_IN_CALL | TLSPROF_SAMPLE_IN_PHASE);
	CHECK_EQUAL(handshake_state(7, 8, 9), 0);
	/* The idle task has the id that stands for "nothing". */
	CHECK_EQUAL(handshake_state(0, 0, 0), 0);
}

int main(void)
{
#if defined(__x86_64__)
	RUN(the_code_segment_tells_user_mode);
#endif
	RUN(code_beside_a_page_boundary_stops_there);
	RUN(code_within_a_page_is_in_it);
	RUN(stacks_that_differ_anywhere_have_other_hashes);
	RUN(words_that_show_callers_pass);
	RUN(what_is_timed_is_the_threads_own);
	return summary();
}
