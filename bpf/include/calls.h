/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Connection objects of TLS libraries: the calls on them, their handshakes, and the
 * connections that they work on. A socket call inside a library call identifies the
 * connection; without one, see object.h.
 */
#ifndef TLSPROF_CALLS_H
#define TLSPROF_CALLS_H

#include "object.h"
#include "phases.h"

#define CONCURRENT_CALLS 16384
#define HANDSHAKES_IN_PROGRESS 32768 /* the agent's configuration may change it */
#define THREADS_WITH_HELLO 4096

/* Hashes, not task storage: 5.10 has none. Preallocated: programs that run in
 * tracing context must not allocate on old kernels (kernel commit 94dacdbd5d2d). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONCURRENT_CALLS);
	__type(key, __u32); /* thread id */
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HANDSHAKES_IN_PROGRESS);
	__type(key, struct tlsprof_connection_object);
	__type(value, struct tlsprof_handshake);
} handshakes SEC(".maps");

/* The object that last made a hello on a thread, until the hello is sent. The oldest entry
 * is evicted when the map is full: some hellos are never sent, and the agent then pairs by
 * time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, THREADS_WITH_HELLO);
	__type(key, __u32); /* thread id */
	__type(value, __u64);
} hellos_made SEC(".maps");

/* Whether any call of a library was ever entered: without probes no thread is looked up. */
bool library_calls = false;

static __always_inline struct call *current_call(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return library_calls ? bpf_map_lookup_elem(&calls, &tid) : NULL;
}

/* The call of the library that a socket call is inside, if any, learns which connection
 * it is about. */
static __always_inline void join_call(__u64 connection)
{
	struct call *call = current_call();

	if (call && !call->connection)
		call->connection = connection;
}

/* Corrects a connection whose handshake turns out to belong to another object. */
static __always_inline void release_exchange(__u64 connection, __u64 object)
{
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	if (exchange && exchange->object == object)
		exchange->object = 0;
}

/* The same as join_call() for a call that made no socket call and is over; `handshake`:
 * the one it belongs to, if any. The last call decides. */
static __always_inline void join_over_memory(struct call *call,
					     const struct tlsprof_handshake *handshake)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 connection, before, object = call->object;
	struct exchange *exchange;

	if (handshake && makes_hello(handshake)) {
		bpf_map_update_elem(&hellos_made, &tid, &object, BPF_ANY);
		return;
	}
	connection = current_phase_connection();
	exchange = connection ? bpf_map_lookup_elem(&exchanges, &connection) : NULL;
	if (!exchange || !exchange_take(exchange, object, call->role))
		return;
	before = handshake ? handshake->event.connection : 0;
	if (before && before != connection)
		release_exchange(before, object);
	call->connection = connection;
}

/* Handshake bytes of a connection have moved: its handshake belongs to the call that moved
 * them, or to the object that made this hello. Returns whether that call's probes time it. */
static __always_inline bool join_exchange(struct exchange *exchange, __u64 connection,
					  bool is_own_hello)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct call *call = current_call();
	struct tlsprof_connection_object key = { .pid = pid_tgid >> 32 };
	struct tlsprof_handshake *handshake;
	__u64 *object;

	if (call) {
		/* join_call(), which goes by `timed`, may have missed it: a thread may be preempted
		 * between the entry of its call and the mark. */
		if (!exchange_take(exchange, call->object, call->role))
			return false;
		call->connection = connection;
		key.object = call->object;
		return bpf_map_lookup_elem(&handshakes, &key);
	}
	object = is_own_hello && library_calls ? bpf_map_lookup_elem(&hellos_made, &tid) : NULL;
	if (!object)
		return false;
	key.object = *object;
	handshake = bpf_map_lookup_elem(&handshakes, &key);
	if (handshake)
		exchange_hello(exchange, connection, handshake, key.object);
	bpf_map_delete_elem(&hellos_made, &tid);
	return false;
}

static __always_inline void close_handshake(struct tlsprof_connection_object *key,
					    struct tlsprof_handshake *handshake, __u8 outcome,
					    __u64 now)
{
	struct tlsprof_control value = current_control();

	handshake_end(handshake, outcome, now, &value);
	send_event(&handshake->event, sizeof(handshake->event));
	bpf_map_delete_elem(&handshakes, key);
}

/* The call on this thread is over: adds it to its handshake. False if it is part of none. */
static __always_inline bool end_call(struct call *call, __u8 result, __u64 now)
{
	struct tlsprof_connection_object key = { .object = call->object, .pid = call->pid };
	struct tlsprof_handshake *handshake = bpf_map_lookup_elem(&handshakes, &key);
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (!call->connection)
		join_over_memory(call, handshake);
	if (handshake) {
		handshake_add_call(handshake, call, now);
		if (result != CALL_RETRY)
			close_handshake(&key, handshake, result, now);
	} else if (result != CALL_RETRY && (call->step_calls[TLSPROF_STEP_KEY_EXCHANGE] ||
					    call->step_calls[TLSPROF_STEP_SIGNING] ||
					    call->step_calls[TLSPROF_STEP_RSA_DECRYPTION])) {
		count_loss(TLSPROF_LOSS_BEGAN_BEFORE_ATTACH);
	}
	bpf_map_delete_elem(&calls, &tid);
	mark_call(0);
	return handshake;
}

#endif
