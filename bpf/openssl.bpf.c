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
#include "include/probes.h"

static __always_inline void handle_enter(struct pt_regs *ctx, __u8 role)
{
	enter_call(ctx, role, bpf_ktime_get_ns());
}

static __always_inline void handle_exit(struct pt_regs *ctx)
{
	struct call *call = returning_call(ctx);

	if (call)
		end_call(call, handshake_result((int)PT_REGS_RC(ctx), call->error_reason),
			 bpf_ktime_get_ns());
}

static __always_inline void handle_clear(struct pt_regs *ctx)
{
	struct tlsprof_connection_object key = object_key(PT_REGS_PARM1(ctx));
	struct tlsprof_handshake *handshake = bpf_map_lookup_elem(&handshakes, &key);
	struct tlsprof_control control = current_control();
	struct call *call = hit_call();
	__u64 began = call && call->object == key.object ? call->clock.began : 0;
	__u8 role = call ? call->role : 0;

	/* The same hit again, see call_step_of(). */
	if (handshake && handshake_is_of(handshake, began))
		return;
	/* Cleared for use again while its handshake was under way. */
	abandon_handshake(&key);
	if (began)
		open_handshake(&key, TLSPROF_LIBRARY_OPENSSL, role, began, &control);
}

static __always_inline void handle_free(struct pt_regs *ctx)
{
	struct tlsprof_connection_object key = object_key(PT_REGS_PARM1(ctx));

	if (key.object)
		abandon_handshake(&key);
}

static __always_inline void handle_step_enter(struct pt_regs *ctx, __u64 cookie)
{
	__u32 trap = cookie & TLSPROF_SINGLE_STEPPED ? current_control().single_step_ns : 0;
	__u64 stack = return_address_at_entry(ctx);
	struct call *call = hit_call();
	__u8 step;

	if (!call)
		return;
	cookie &= ~TLSPROF_SINGLE_STEPPED;
	step = call_step_of(call, cookie, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), stack);
	if (!call_step_begin(call, bpf_ktime_get_ns(), step, stack, trap))
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
	char name[TLSPROF_GROUP_LEN] = {};

	if (!call)
		return;
	bpf_probe_read_user_str(name, sizeof(name), (void *)PT_REGS_PARM2(ctx));
	call_name_group(call, name);
}

static __always_inline void handle_peer(struct pt_regs *ctx)
{
	struct call *call = hit_call();

	if (call)
		call->exchange_context = PT_REGS_PARM1(ctx);
}

ON_ENTRY(handshake_enter, handle_enter(ctx, bpf_get_attach_cookie(ctx) & ~TLSPROF_SINGLE_STEPPED))
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
