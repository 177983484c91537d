/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The state of each TCP connection, by its socket, and its owner.
 */
#ifndef TLSPROF_CONNECTIONS_H
#define TLSPROF_CONNECTIONS_H

#include "connection.h"
#include "maps.h"

/* Socket-local storage: freed with its socket, and bounded by nothing else. What is kept in it is
 * there if is_kept(). */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* Connections that open while calls are not seen, as long as there is room: most are short, and to
 * make and free a storage costs more than all else that is done for them. All connections where
 * there is none, see connections_by_address. The agent sets the size. Preallocated, as `calls` is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct connection);
} addresses SEC(".maps");

static const struct connection new_connection = {};

static __always_inline struct connection *find_by_address(struct sock *sk)
{
	__u64 address = (__u64)sk;
	struct connection *connection = bpf_map_lookup_elem(&addresses, &address);

	return connection && is_kept(connection) ? connection : NULL;
}

/* Where those are whose calls are followed. */
static __always_inline struct connection *find_followed(struct sock *sk)
{
	struct connection *connection;

	if (connections_by_address)
		return find_by_address(sk);
	connection = bpf_sk_storage_get(&connections, sk, NULL, 0);
	return connection && is_kept(connection) ? connection : NULL;
}

static __always_inline struct connection *find_connection(struct sock *sk)
{
	struct connection *connection = find_followed(sk);

	return connection || connections_by_address ? connection : find_by_address(sk);
}

/* `flags` as of bpf_map_update_elem(): BPF_ANY, or BPF_NOEXIST for what may be there. NULL: there
 * is no room. */
static __always_inline struct connection *add_address(struct sock *sk, __u64 flags)
{
	__u64 address = (__u64)sk;
	struct connection *connection;

	if (bpf_map_update_elem(&addresses, &address, &new_connection, flags) && flags == BPF_ANY)
		return NULL;
	connection = bpf_map_lookup_elem(&addresses, &address);
	if (connection)
		connection->by_address = 1;
	return connection;
}

/* Where find_followed() looks. */
static __always_inline struct connection *add_connection(struct sock *sk)
{
	if (connections_by_address)
		return add_address(sk, BPF_NOEXIST);
	return bpf_sk_storage_get(&connections, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/* The socket is new, whatever is known of another at its address. */
static __always_inline struct connection *begin_connection(struct sock *sk)
{
	struct connection *connection = NULL;
	__u64 address = (__u64)sk;

	if (connections_by_address || !calls_are_seen())
		connection = add_address(sk, BPF_ANY);
	else
		bpf_map_delete_elem(&addresses, &address);
	return connection || connections_by_address ? connection : add_connection(sk);
}

/* A socket's storage goes with it: to take it away before that costs more than all else at the
 * end of a connection. An element of a hash is cleared as well: from 5.11 up to 6.6 it cannot be
 * taken away in an interrupt of a program that takes another one away. */
static __always_inline void forget_connection(struct sock *sk, struct connection *connection)
{
	__u64 address = (__u64)sk;
	bool by_address = connection->by_address;

	__builtin_memset(connection, 0, sizeof(*connection));
	if (by_address)
		bpf_map_delete_elem(&addresses, &address);
}

/* Random where the kernel's own number cannot be asked for: a counter would have to be
 * added to and read at once, which 5.10 cannot do. 64 bits do not repeat. */
static __always_inline __u64 new_id(struct sock *sk)
{
	if (connections_by_address)
		return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	return bpf_get_socket_cookie(sk);
}

static __always_inline struct connection *with_id(struct sock *sk, struct connection *connection)
{
	if (!connection)
		count_loss(TLSPROF_LOSS_CONNECTION_NO_MEMORY);
	else if (!connection->id)
		connection->id = new_id(sk);
	return connection;
}

/* Of which nothing is known yet. */
static __noinline struct connection *create_connection(struct sock *sk)
{
	return with_id(sk, add_connection(sk));
}

/* Not inlined: what is on the stack of all functions on the way is 512 bytes at most. */
static __noinline void send_opened(struct connection *connection)
{
	struct tlsprof_connection_event event = {};

	connection_describe(connection, &event);
	event.header.kind = TLSPROF_EVENT_CONNECTION_OPENED;
	event.header.time = connection->opened;
	/* From now on its end, which may come in a softirq, does not tell it too. */
	connection->untold = 0;
	send_event(&event, sizeof(event));
}

static __always_inline bool is_kernel_thread(void)
{
	struct task_struct *task;

	/* 5.11 (kernel commit 3ca1032ab7ab): a call of a helper less. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
		task = (void *)bpf_get_current_task_btf();
		return task->flags & PF_KTHREAD;
	}
	task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/* The current task is the owner. Sockets of the kernel itself have none. */
static __noinline void claim(struct connection *connection)
{
	if (is_kernel_thread())
		return;
	connection->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(connection->comm, sizeof(connection->comm));
	if (connection->opened && !connection->untold)
		send_opened(connection);
}

/* Whether a process has it: else it is the kernel's own. It is if the current task moves data. */
static __always_inline bool is_owned_here(struct connection *connection)
{
	if (!connection->pid)
		claim(connection);
	if (!connection->pid)
		return false;
	if (connection->untold)
		send_opened(connection);
	return true;
}

/* A process takes the connection out of the accept queue. */
static __always_inline void handle_accept(struct sock *sk)
{
	struct connection *connection = find_connection(sk);

	/* Taken out of the queue before its state changed. */
	if (!connection && BPF_CORE_READ(sk, __sk_common.skc_state) == BPF_TCP_SYN_RECV)
		connection = create_connection(sk);
	if (connection && !connection->accepted)
		connection->accepted = bpf_ktime_get_ns();
}

#endif
