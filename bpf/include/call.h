/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * One call of a library's handshake state machine on one thread, and the steps
 * in it. Pure logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_CALL_H
#define TLSPROF_CALL_H

#include "clock.h"

struct call {
	__u32 pid; /* as in struct tlsprof_call */
	__u32 probe_hits;
	struct clock clock;
	__u64 object;     /* the library's connection object */
	__u64 connection; /* the TCP connection that it works on, 0 for not known, see object.h */
	__u64 stack;      /* where its return address lies, see is_inside() */
	__u64 step[TLSPROF_STEP_COUNT];
	__u64 step_stack;       /* the same of the step's function, 0 outside steps */
	__u64 step_began;       /* on-CPU clock at its entry */
	__u64 exchange_context; /* 1.1.1: derivation context that has a peer key */
	__u64 size_address;     /* user address of the length of the step's result */
	__u32 signature_bytes;
	__u32 encapsulated_bytes;
	__u32 error_reason;
	__u8 step_calls[TLSPROF_STEP_COUNT];
	__u8 role;
	__u8 step_current;
	__u8 step_cookie; /* what the step began with */
	__u8 groups_named;
	char group[TLSPROF_GROUP_LEN];
};

_Static_assert(__builtin_offsetof(struct call, pid) == __builtin_offsetof(struct tlsprof_call, pid),
	       "pid");
_Static_assert(sizeof(struct call) == sizeof(struct tlsprof_call), "TLSPROF_CALL_PRIVATE");

static inline __u8 saturating_increment(__u8 value)
{
	return value == 255 ? 255 : value + 1;
}

/*
 * The place of a return address tells functions apart, where counting entries
 * and returns would go wrong for good after one that was not seen: a longjmp, or
 * a probe that was attached or released in between.
 *
 * A function that is entered while another runs is inside it if its return
 * address lies deeper (the stack grows down); else the other has ended unseen.
 */
static inline bool is_inside(__u64 inner, __u64 outer)
{
	return outer && inner < outer;
}

/*
 * The library calls its own public functions too (a chain verification verifies
 * signatures): the outermost call names the step, what it calls belongs to it.
 * The probe at the entry takes `trap` from now on, which is no part of the step.
 * Returns whether a step began.
 */
static inline bool call_step_begin(struct call *call, __u64 now, __u8 step, __u64 stack, __u32 trap)
{
	if (is_inside(stack, call->step_stack)) {
		call->step_began += trap;
		return false;
	}
	call->step_stack = stack;
	call->step_current = step;
	call->step_began = clock_cpu(&call->clock, now) + trap;
	return true;
}

/* Returns whether the outermost call of a step ended. */
static inline bool call_step_end(struct call *call, __u64 now, __u64 stack)
{
	__u64 ended = clock_cpu(&call->clock, now);
	__u8 step = call->step_current;

	if (!call->step_stack || call->step_stack != stack)
		return false;
	call->step_stack = 0;
	if (step >= TLSPROF_STEP_COUNT)
		return false;
	/* A trap may be shorter than the calibrated ones. */
	if (ended > call->step_began)
		call->step[step] += ended - call->step_began;
	call->step_calls[step] = saturating_increment(call->step_calls[step]);
	return true;
}

/*
 * One hit may run a program several times. Containers that share a layer of overlayfs map one
 * file, which the kernel shows as a file of each container's own (6.8 and later), so that each
 * gets probes. Most programs find their work done the second time; this function,
 * call_name_group() and handshake_is_of() see to it in the others.
 *
 * The step that a probe's cookie names, see TLSPROF_STEP_BY_PEER. `context` and
 * `output` are the first two arguments of EVP_PKEY_derive: a call without output
 * asks for the size, the one with it is the last on this context, whose address
 * may then be used again.
 */
static inline __u8 call_step_of(struct call *call, __u64 cookie, __u64 context, __u64 output,
				__u64 stack)
{
	if (cookie == TLSPROF_STEP_ENCAPSULATE || cookie == TLSPROF_STEP_DECAPSULATE)
		return TLSPROF_STEP_KEY_EXCHANGE;
	if (cookie != TLSPROF_STEP_BY_PEER)
		return cookie;
	if (call->step_stack == stack && call->step_cookie == cookie)
		return call->step_current;
	if (!context || context != call->exchange_context)
		return TLSPROF_STEP_KEY_DERIVATION;
	if (output)
		call->exchange_context = 0;
	return TLSPROF_STEP_KEY_EXCHANGE;
}

/* The library names a group for the key exchange. The same one again is no other. */
static inline void call_name_group(struct call *call, const char *name)
{
	__u8 different = !call->groups_named;

	for (int i = 0; i < TLSPROF_GROUP_LEN; i++)
		different |= call->group[i] ^ name[i];
	if (!different)
		return;
	call->groups_named = saturating_increment(call->groups_named);
	__builtin_memcpy(call->group, name, sizeof(call->group));
}

/* Keeps the length of what a step has made, as the function wrote it. */
static inline void call_step_result(struct call *call, __u64 size)
{
	if (call->step_cookie == TLSPROF_STEP_SIGNING)
		call->signature_bytes = size;
	else if (call->step_cookie == TLSPROF_STEP_ENCAPSULATE)
		call->encapsulated_bytes = size;
}

#endif
