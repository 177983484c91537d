/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What the probes of all TLS libraries share: their programs, the call that a thread is in,
 * and the handshake of a connection object.
 */
#ifndef TLSPROF_PROBES_H
#define TLSPROF_PROBES_H

#include "calls.h"

/*
 * Programs on uprobes may be preempted, and since 6.13 (kernel commit a76ab5731e32)
 * a program that uses 64 bytes of stack or more has one stack per CPU: two threads
 * in it on one CPU overwrite each other's values, pointers included. The kernel
 * gives that stack to no program that has a tail call, be it one that is never made.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

const volatile __u32 never = 0;

static __always_inline void keep_own_stack(struct pt_regs *ctx)
{
	if (never)
		bpf_tail_call(ctx, &no_programs, 0);
}

/* The call that a probe was hit in, if any. */
static __always_inline struct call *hit_call(void)
{
	struct call *call = current_call();

	if (call)
		call->probe_hits++;
	return call;
}

/* Whether a probe was hit whose instruction the kernel does not emulate. Not known where there
 * are no cookies (before 5.15, kernel commit 7adfc6c9b315). */
static __always_inline void count_single_step(struct pt_regs *ctx)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie) &&
	    bpf_get_attach_cookie(ctx) & TLSPROF_SINGLE_STEPPED)
		count_hit(TLSPROF_HIT_SINGLE_STEP);
}

/* Where the return address lies, at the entry of a function and, the same
 * place, when it has returned: x86 takes the address off the stack. */
static __always_inline __u64 return_address_at_entry(struct pt_regs *ctx)
{
	return PT_REGS_SP(ctx);
}

static __always_inline __u64 return_address_at_return(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return PT_REGS_SP(ctx) - sizeof(__u64);
#else
	return PT_REGS_SP(ctx);
#endif
}

/* The thread enters a function that runs the handshake of an object. False if that is inside
 * another such call, or cannot be followed. */
static __always_inline bool enter_call(struct pt_regs *ctx, __u8 role, __u64 now)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct call *outer = bpf_map_lookup_elem(&calls, &tid);
	struct call call = { .object = PT_REGS_PARM1(ctx),
			     .stack = return_address_at_entry(ctx),
			     .pid = pid_tgid >> 32,
			     .probe_hits = 1,
			     .role = role };

	if (outer && is_inside(call.stack, outer->stack)) {
		if (outer->object != call.object)
			count_loss(TLSPROF_LOSS_NESTED_HANDSHAKE);
		return false;
	}
	clock_begin(&call.clock, now);
	if (!library_calls)
		library_calls = true;
	if (bpf_map_update_elem(&calls, &tid, &call, BPF_ANY)) {
		count_loss(TLSPROF_LOSS_THREAD_TABLE_FULL);
		return false;
	}
	mark_call(tid);
	return true;
}

/* The call whose function returns now, if it is not another function's return. */
static __always_inline struct call *returning_call(struct pt_regs *ctx)
{
	struct call *call = hit_call();

	return call && call->stack == return_address_at_return(ctx) ? call : NULL;
}

/* An object of this process. */
static __always_inline struct tlsprof_connection_object object_key(__u64 object)
{
	struct tlsprof_connection_object key = { .object = object,
						 .pid = bpf_get_current_pid_tgid() >> 32 };

	return key;
}

/* The handshake of an object begins. `control`: the groups of step probes that follow it. */
static __always_inline void open_handshake(const struct tlsprof_connection_object *key,
					   enum tlsprof_library library, __u8 role, __u64 began,
					   const struct tlsprof_control *control)
{
	struct tlsprof_handshake fresh = {};

	fresh.began = began;
	fresh.steps_generation = control->steps_generation;
	fresh.key_derivation_generation = control->key_derivation_generation;
	fresh.event.header.pid = key->pid;
	fresh.event.role = role;
	fresh.event.source = TLSPROF_SOURCE_LIBRARY;
	fresh.event.library = library;
	fresh.event.process_start = process_start();
	bpf_get_current_comm(fresh.event.comm, sizeof(fresh.event.comm));
	if (bpf_map_update_elem(&handshakes, key, &fresh, BPF_ANY))
		count_loss(TLSPROF_LOSS_HANDSHAKE_TABLE_FULL);
}

/* The object's handshake ends, if one is under way, without a result. */
static __always_inline void abandon_handshake(struct tlsprof_connection_object *key)
{
	struct tlsprof_handshake *handshake = bpf_map_lookup_elem(&handshakes, key);

	if (handshake)
		close_handshake(key, handshake, TLSPROF_OUTCOME_ABANDONED, bpf_ktime_get_ns());
}

/* uprobe_multi where the kernel has it, single uprobes elsewhere: the same
 * programs, compiled twice. */
#ifdef TLSPROF_UPROBE_MULTI
#define ENTRY SEC("uprobe.multi")
#define RETURN SEC("uretprobe.multi")
#else
#define ENTRY SEC("uprobe")
#define RETURN SEC("uretprobe")
#endif

#define PROGRAM(section, hit, name, body)     \
	section int name(struct pt_regs *ctx) \
	{                                     \
		keep_own_stack(ctx);          \
		count_hit(hit);               \
		RUN(TLSPROF_RUN_PROBE, body); \
		return 0;                     \
	}
#define ON_ENTRY(name, body) PROGRAM(ENTRY, TLSPROF_HIT_ENTRY, name, count_single_step(ctx); body)
#define ON_RETURN(name, body) PROGRAM(RETURN, TLSPROF_HIT_RETURN, name, body)

#endif
