/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What a socket call means: the end of the work that its thread was at, a turn of a
 * connection, or part of a TLS handshake.
 */
#ifndef TLSPROF_SOCKET_CALL_H
#define TLSPROF_SOCKET_CALL_H

#include "connections.h"
#include "watch.h"

/* A server answers, or still makes tickets, see exchange_tail(). */
static __always_inline struct exchange *follow_tail(struct exchange *exchange, struct timed *timed,
						    const struct socket_call *call)
{
	struct clock *clock = &timed->at_work.clock;
	__u64 now = clock_now(clock, call->time);
	__u8 before = exchange->tail;
	bool one_record = before == TAIL_NONE && is_one_record(call, CONTENT_APPLICATION_DATA);
	bool goes_on = exchange_tail(exchange, call->direction, call->length, one_record);

	timed->at_work.in_tail = exchange->request_came;
	if (!exchange->request_came)
		claim_sample(exchange->ended);
	/* What was done until now belongs to the state before. */
	exchange_add(exchange, clock, before, now);
	__builtin_memset(clock, 0, sizeof(*clock));
	clock_begin(clock, now);
	return goes_on ? exchange : leave_phase(timed, exchange, call->length <= 0, now);
}

/*
 * A socket call ends what its thread was at work on, but for one that found
 * nothing more to read on the connection whose peer waits for an answer: some
 * servers read all there is before they begin. Returns the exchange of that work if
 * it is the one of the call's connection and goes on.
 */
static __always_inline struct exchange *
leave_work(const struct socket_call *call, struct timed *timed, const struct connection *connection)
{
	__u64 id = timed->at_work.connection;
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &id);
	bool nothing = call->length <= 0;

	if (!exchange || !connection || connection->id != id) {
		leave_phase(timed, exchange, nothing, call->time);
		return NULL;
	}
	if (exchange->request_came)
		return follow_tail(exchange, timed, call);
	if (nothing && exchange_owes_answer(exchange))
		return exchange;
	if (call->direction == TLSPROF_DIRECTION_OUT && exchange->stage == STAGE_ENDING &&
	    exchange_may_refuse(exchange, call->length) &&
	    is_one_record(call, CONTENT_APPLICATION_DATA))
		exchange->event.outcome = TLSPROF_OUTCOME_FAILED;
	return leave_phase(timed, exchange, nothing, call->time);
}

/* Whether the length is that of an alert or, up to TLS 1.2, of its header alone. */
static __always_inline bool may_begin_alert(const struct connection *connection, __u32 length)
{
	return length == connection->alert_length ||
	       (length == RECORD_HEADER && connection->alert_type == CONTENT_ALERT);
}

/* How many bytes the call moved; more where they may be an alert, or its header, by their
 * number alone. */
static __noinline __u32 data_length(const struct connection *connection,
				    const struct socket_call *call)
{
	__u16 body = connection->alert_length - RECORD_HEADER;

	return call->length + !begins_with_record(call, connection->alert_type, body);
}

static __always_inline bool is_open(struct sock *sk)
{
	const unsigned int not_open = 1U << BPF_TCP_CLOSE | 1U << BPF_TCP_SYN_SENT |
				      1U << BPF_TCP_SYN_RECV;
	__u8 state = connections_by_address ? BPF_CORE_READ(sk, __sk_common.skc_state)
					    : sk->__sk_common.skc_state;

	return !in_states(state & 15, not_open);
}

/* The connection of a call that moved data; NULL if it is not to be counted. */
static __always_inline struct connection *moved_on(const struct socket_call *call,
						   struct connection *connection)
{
	if ((!connection || !connection->id) && is_open(call->sock))
		connection = create_connection(call->sock);
	if (!connection || !connection->id)
		return NULL;
	if (!is_owned_here(connection))
		connection->watch = WATCH_OVER; /* there are no buffers of a process */
	return connection;
}

/* Returns whether the connection is in `addresses`: it opened while calls were not seen. Its first
 * call that is seen reports the opening, and turns are counted. No alerts are looked for: that it
 * carries TLS is not known. */
static __noinline bool handle_unfollowed(const struct socket_call *call, const struct timed *timed)
{
	struct connection *connection = find_by_address(call->sock);

	if (!connection)
		return false;
	if (!connection->id)
		return true;
	is_owned_here(connection);
	if (timed->call)
		join_call(connection->id);
	connection_data(connection, call->direction, call->length);
	return true;
}

/* Data of a connection that is not watched is a part of a turn. */
static __always_inline void count_data(struct connection *connection,
				       const struct socket_call *call)
{
	__u32 length = call->length;

	if (may_begin_alert(connection, length))
		length = data_length(connection, call);
	connection_data(connection, call->direction, length);
}

/*
 * A call on a connection that is new, whose handshake is under way, or that is in `addresses`; or
 * of a thread that is at work on a handshake. Apart from handle_call(), so that the code of all
 * other calls is in a few lines of the CPU's cache: where programs run far apart in time, that is
 * most of their cost.
 */
static __noinline void handle_rare_call(struct socket_call *call, struct timed *timed,
					struct connection *connection, bool at_work)
{
	struct exchange *worked_on = NULL;

	if (at_work) {
		call->time = bpf_ktime_get_ns();
		worked_on = leave_work(call, timed, connection);
	}
	if (!call->tcp || call->length < 0)
		return;
	if (!call->length) {
		if (connection && call->direction == TLSPROF_DIRECTION_IN)
			connection_at_end(connection);
		return;
	}
	if (!connection && !connections_by_address && handle_unfollowed(call, timed))
		return;
	connection = moved_on(call, connection);
	if (!connection)
		return;
	if (timed->call)
		join_call(connection->id);
	if (is_watched(connection->watch) && watch(connection, call, worked_on))
		return;
	count_data(connection, call);
}

/* Whether data moved on a connection whose handshake is over, or that has none, by a thread that
 * is not inside a call of a library. */
static __always_inline bool is_settled(const struct connection *connection,
				       const struct socket_call *call, const struct timed *timed)
{
	return connection && call->length && connection->pid && !connection->untold &&
	       !is_watched(connection->watch) && !timed->call;
}

/* The current thread comes from a socket call, of whatever family. Runs at every one
 * of the host: leaves at once what is no TCP data. */
static __always_inline void handle_call(struct socket_call *call)
{
	struct timed *timed = timed_here();
	struct connection *connection;
	bool at_work;

	if (!timed)
		return;
	at_work = timed->phase && current_phase(timed);
	if (!at_work) {
		if (call->length <= 0 || call->direction == TLSPROF_DIRECTION_OUT) {
			timed->before = timed->since;
			keep_up(timed);
		}
		if (!call->tcp || call->length < 0)
			return;
	}
	connection = call->tcp ? find_followed(call->sock) : NULL;
	if (!at_work && is_settled(connection, call, timed))
		count_data(connection, call);
	else
		handle_rare_call(call, timed, connection, at_work);
}

/* A look at data that stays where it is. */
static __always_inline void handle_look(void)
{
	struct timed *timed = timed_here();

	if (timed && !timed->phase)
		keep_up(timed);
}

#endif
