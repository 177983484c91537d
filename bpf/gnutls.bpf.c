/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Handshakes of GnuTLS: uprobes on gnutls_init, gnutls_handshake and gnutls_deinit.
 *
 * gnutls_init says which role a session has. The first gnutls_handshake of a session opens an
 * entry in `handshakes`; each call adds to it, and a result that is not "call again" closes it,
 * as does gnutls_deinit. Later calls (a renegotiation) find no entry and count for nothing. Steps
 * are not probed.
 */
#include "include/gnutls.h"
#include "include/probes.h"

#define SESSIONS_WITHOUT_HANDSHAKE 32768
#define THREADS_IN_INIT 4096

/* gnutls_init() on a thread. */
struct init {
	__u64 session; /* user address that gets the session */
	__u64 stack;   /* where its return address lies, see is_inside() */
	__u32 role;
	__u32 reserved;
};

/* LRU: an exit or a longjmp in between leaves an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, THREADS_IN_INIT);
	__type(key, __u32); /* thread id */
	__type(value, struct init);
} inits SEC(".maps");

/* Roles of sessions whose handshake has not begun. LRU: a process may end without freeing
 * its sessions. An evicted session counts as begun before the attach when it completes. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SESSIONS_WITHOUT_HANDSHAKE);
	__type(key, struct tlsprof_connection_object);
	__type(value, __u32); /* enum tlsprof_role */
} sessions SEC(".maps");

static __always_inline void handle_init_enter(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct init init = { .session = PT_REGS_PARM1(ctx),
			     .stack = return_address_at_entry(ctx),
			     .role = gnutls_role(PT_REGS_PARM2(ctx)) };

	if (bpf_map_update_elem(&inits, &tid, &init, BPF_ANY))
		count_loss(TLSPROF_LOSS_THREAD_TABLE_FULL);
}

static __always_inline void handle_init_exit(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct init *init = bpf_map_lookup_elem(&inits, &tid);
	struct tlsprof_connection_object key;
	__u64 session = 0;
	__u32 role;

	if (!init || init->stack != return_address_at_return(ctx))
		return;
	role = init->role;
	if (!(int)PT_REGS_RC(ctx))
		bpf_probe_read_user(&session, sizeof(session), (void *)init->session);
	bpf_map_delete_elem(&inits, &tid);
	if (!session)
		return;
	key = object_key(session);
	if (bpf_map_update_elem(&sessions, &key, &role, BPF_ANY))
		count_loss(TLSPROF_LOSS_HANDSHAKE_TABLE_FULL);
}

static __always_inline void handle_gnutls_enter(struct pt_regs *ctx)
{
	struct tlsprof_connection_object key = object_key(PT_REGS_PARM1(ctx));
	struct tlsprof_handshake *handshake = bpf_map_lookup_elem(&handshakes, &key);
	__u32 *fresh = bpf_map_lookup_elem(&sessions, &key);
	/* Odd only while step probes are attached: without any, steps are not observed. */
	struct tlsprof_control no_steps = {};
	__u64 now = bpf_ktime_get_ns();
	/* Of a session from before the attach it is not known. */
	__u8 role = fresh ? *fresh : handshake ? handshake->event.role : 0;

	if (!enter_call(ctx, role, now) || !fresh)
		return;
	bpf_map_delete_elem(&sessions, &key);
	/* The end of an earlier session at this address was not seen. */
	abandon_handshake(&key);
	open_handshake(&key, TLSPROF_LIBRARY_GNUTLS, role, now, &no_steps);
}

static __always_inline void handle_gnutls_exit(struct pt_regs *ctx)
{
	struct call *call = returning_call(ctx);
	int returned = (int)PT_REGS_RC(ctx);
	__u8 result = gnutls_result(returned);

	if (!call)
		return;
	if (result == TLSPROF_OUTCOME_FAILED)
		call->error_reason = -returned;
	if (!end_call(call, result, bpf_ktime_get_ns()) && result == TLSPROF_OUTCOME_COMPLETED)
		count_loss(TLSPROF_LOSS_BEGAN_BEFORE_ATTACH);
}

static __always_inline void handle_deinit(struct pt_regs *ctx)
{
	struct tlsprof_connection_object key = object_key(PT_REGS_PARM1(ctx));

	bpf_map_delete_elem(&sessions, &key);
	abandon_handshake(&key);
}

ON_ENTRY(gnutls_init_enter, handle_init_enter(ctx))
ON_RETURN(gnutls_init_exit, handle_init_exit(ctx))
ON_ENTRY(gnutls_handshake_enter, handle_gnutls_enter(ctx))
ON_RETURN(gnutls_handshake_exit, handle_gnutls_exit(ctx))
ON_ENTRY(gnutls_deinit_enter, handle_deinit(ctx))
