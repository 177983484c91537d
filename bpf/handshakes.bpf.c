/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Handshakes of OpenSSL: uprobes on its handshake state machine and on the
 * libcrypto functions that make up the steps.
 *
 * A call of the state machine is bracketed on its thread (`calls`). SSL_clear
 * inside it marks the first call of a new handshake (statem.c, state_machine():
 * it clears the object when a handshake starts, and only then), which opens an
 * entry in `handshakes`. Each call adds to that entry when it returns; success,
 * an error, or the end of the object closes it and sends one event. Calls after
 * the handshake (tickets, key updates) find no entry and count for nothing.
 */
#include "include/calls.h"

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

static __always_inline void handle_enter(struct pt_regs *ctx, __u8 role)
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
		return;
	}
	clock_begin(&call.clock, bpf_ktime_get_ns());
	if (!library_calls)
		library_calls = true;
	if (bpf_map_update_elem(&calls, &tid, &call, BPF_ANY)) {
		count_loss(TLSPROF_LOSS_THREAD_TABLE_FULL);
		return;
	}
	mark_call(tid);
}

static __always_inline void handle_exit(struct pt_regs *ctx)
{
	struct call *call = hit_call();

	if (!call || call->stack != return_address_at_return(ctx))
		return;
	end_call(call, handshake_result((int)PT_REGS_RC(ctx), call->error_reason),
		 bpf_ktime_get_ns());
}

static __always_inline void handle_clear(struct pt_regs *ctx)
{
	__u64 object = PT_REGS_PARM1(ctx);
	struct tlsprof_connection_object key = { .object = object,
						 .pid = bpf_get_current_pid_tgid() >> 32 };
	struct tlsprof_handshake *handshake = bpf_map_lookup_elem(&handshakes, &key);
	struct tlsprof_control value = current_control();
	struct call *call = hit_call();
	struct tlsprof_handshake fresh = {};

	/* Cleared for use again while its handshake was under way. */
	if (handshake)
		close_handshake(&key, handshake, TLSPROF_OUTCOME_ABANDONED, bpf_ktime_get_ns());
	if (!call || call->object != object)
		return;
	fresh.began = call->clock.began;
	fresh.steps_generation = value.steps_generation;
	fresh.key_derivation_generation = value.key_derivation_generation;
	fresh.event.header.pid = call->pid;
	fresh.event.role = call->role;
	fresh.event.source = TLSPROF_SOURCE_LIBRARY;
	fresh.event.process_start = process_start();
	bpf_get_current_comm(fresh.event.comm, sizeof(fresh.event.comm));
	if (bpf_map_update_elem(&handshakes, &key, &fresh, BPF_ANY))
		count_loss(TLSPROF_LOSS_HANDSHAKE_TABLE_FULL);
}

static __always_inline void handle_free(struct pt_regs *ctx)
{
	struct tlsprof_connection_object key = { .object = PT_REGS_PARM1(ctx),
						 .pid = bpf_get_current_pid_tgid() >> 32 };
	struct tlsprof_handshake *handshake;

	if (!key.object)
		return;
	handshake = bpf_map_lookup_elem(&handshakes, &key);
	if (handshake)
		close_handshake(&key, handshake, TLSPROF_OUTCOME_ABANDONED, bpf_ktime_get_ns());
}

static __always_inline void handle_step_enter(struct pt_regs *ctx, __u64 cookie)
{
	struct call *call = hit_call();
	__u8 step;

	if (!call)
		return;
	step = call_step_of(call, cookie, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx));
	if (!call_step_begin(call, bpf_ktime_get_ns(), step, return_address_at_entry(ctx)))
		return;
	call->step_cookie = cookie;
	/* EVP_DigestSign(ctx, sig, size_t *siglen, ...)
	 * EVP_PKEY_encapsulate(ctx, wrapped, size_t *wrappedlen, ...) */
	if (cookie == TLSPROF_STEP_SIGNING || cookie == TLSPROF_STEP_ENCAPSULATE)
		call->size_address = PT_REGS_PARM3(ctx);
	/* EVP_PKEY_decapsulate(ctx, secret, secretlen, wrapped, size_t wrappedlen) */
	if (cookie == TLSPROF_STEP_DECAPSULATE)
		call->encapsulated_bytes = PT_REGS_PARM5(ctx);
}

static __always_inline void handle_step_exit(struct pt_regs *ctx)
{
	struct call *call = hit_call();
	__u64 size = 0;

	if (!call || !call_step_end(call, bpf_ktime_get_ns(), return_address_at_return(ctx)))
		return;
	if (!call->size_address || (int)PT_REGS_RC(ctx) != 1)
		return;
	if (!bpf_probe_read_user(&size, sizeof(size), (void *)call->size_address))
		call_step_result(call, size);
	call->size_address = 0;
}

static __always_inline void handle_error(__u32 library, __u32 reason)
{
	struct call *call;

	if (library != ERR_LIB_SSL)
		return;
	call = hit_call();
	/* The first is the cause, later ones only wrap it. */
	if (call && !call->error_reason)
		call->error_reason = reason;
}

static __always_inline void handle_group(struct pt_regs *ctx)
{
	struct call *call = hit_call();

	if (!call)
		return;
	call->groups_named = saturating_increment(call->groups_named);
	bpf_probe_read_user_str(call->group, sizeof(call->group), (void *)PT_REGS_PARM2(ctx));
}

static __always_inline void handle_peer(struct pt_regs *ctx)
{
	struct call *call = hit_call();

	if (call)
		call->exchange_context = PT_REGS_PARM1(ctx);
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
		body;                         \
		return 0;                     \
	}
#define ON_ENTRY(name, body) PROGRAM(ENTRY, TLSPROF_HIT_ENTRY, name, body)
#define ON_RETURN(name, body) PROGRAM(RETURN, TLSPROF_HIT_RETURN, name, body)

ON_ENTRY(handshake_enter, handle_enter(ctx, bpf_get_attach_cookie(ctx)))
ON_RETURN(handshake_exit, handle_exit(ctx))
ON_ENTRY(connection_clear, handle_clear(ctx))
ON_ENTRY(connection_free, handle_free(ctx))
ON_ENTRY(step_enter, handle_step_enter(ctx, bpf_get_attach_cookie(ctx)))
ON_RETURN(step_exit, handle_step_exit(ctx))
/* 3.x: ERR_vset_error(int lib, int reason, const char *fmt, va_list args) */
ON_ENTRY(error_raised, handle_error(PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx)))
/* 1.1.1: ERR_put_error(int lib, int func, int reason, const char *file, int line) */
ON_ENTRY(error_raised_v1, handle_error(PT_REGS_PARM1(ctx), PT_REGS_PARM3(ctx)))
/* EVP_PKEY_CTX_set_group_name(ctx, const char *name) */
ON_ENTRY(group_named, handle_group(ctx))
/* 1.1.1: EVP_PKEY_derive_set_peer(ctx, peer) */
ON_ENTRY(peer_set, handle_peer(ctx))

/* Before 5.15 there are no attach cookies (kernel commit 7adfc6c9b315): a program for
 * each, with the cookie at the end of its name. uprobe_multi came later. */
#ifndef TLSPROF_UPROBE_MULTI
#define WITH_COOKIE(name, handle, cookie) ON_ENTRY(name##_##cookie, handle(ctx, cookie))

WITH_COOKIE(handshake_enter, handle_enter, 1)
WITH_COOKIE(handshake_enter, handle_enter, 2)
WITH_COOKIE(step_enter, handle_step_enter, 0)
WITH_COOKIE(step_enter, handle_step_enter, 1)
WITH_COOKIE(step_enter, handle_step_enter, 2)
WITH_COOKIE(step_enter, handle_step_enter, 3)
WITH_COOKIE(step_enter, handle_step_enter, 4)
WITH_COOKIE(step_enter, handle_step_enter, 16)
WITH_COOKIE(step_enter, handle_step_enter, 17)
WITH_COOKIE(step_enter, handle_step_enter, 18)
#endif
