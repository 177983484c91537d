/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Connections that are watched: what the socket calls of their owners have to do with a TLS
 * handshake.
 */
#ifndef TLSPROF_WATCH_H
#define TLSPROF_WATCH_H

#include "calls.h"
#include "hellos.h"

static const struct exchange new_exchange = {};

static __always_inline struct exchange *open_exchange(struct connection *connection)
{
	__u64 id = connection->id;
	struct exchange *exchange;

	if (bpf_map_update_elem(&exchanges, &id, &new_exchange, BPF_ANY)) {
		count_loss(TLSPROF_LOSS_EXCHANGE_TABLE_FULL);
		return NULL;
	}
	exchange = bpf_map_lookup_elem(&exchanges, &id);
	if (!exchange)
		return NULL;
	exchange->event.role = connection->role;
	connection->watch = WATCH_OPEN;
	return exchange;
}

/* Whether what the current call moved begins with a record of that type and length. */
static __always_inline bool begins_with_record(const struct socket_call *call, __u8 type,
					       __u16 body)
{
	struct payload payload = {};
	__u8 header[RECORD_HEADER];

	return find_payload(&payload, call) &&
	       !bpf_probe_read_user(header, sizeof(header), (void *)payload.base) &&
	       header[0] == type && (header[3] << 8 | header[4]) == body;
}

/* Whether all that it moved is one record of that type. */
static __always_inline bool is_one_record(const struct socket_call *call, __u8 type)
{
	return call->length > RECORD_HEADER &&
	       begins_with_record(call, type, call->length - RECORD_HEADER);
}

/* What the first byte of a new connection shows, if the client has spoken first: most clients
 * begin with TLS at once, or with what never leads there. */
static __always_inline __u8 first_verdict(const struct connection *connection,
					  const struct socket_call *call)
{
	struct payload payload = {};
	__u8 byte = 0;

	if (call->direction == answers(connection) || !find_payload(&payload, call) ||
	    !next_piece(&payload) || bpf_probe_read_user(&byte, sizeof(byte), (void *)payload.base))
		return PRELUDE_GOES_ON;
	return prelude_first_byte(byte);
}

/* The exchange of a connection on which nothing has moved yet. */
static __always_inline struct exchange *begin_exchange(struct connection *connection,
						       const struct socket_call *call)
{
	/* Else its first bytes were not seen. */
	__u8 verdict = connection->opened ? first_verdict(connection, call) : PRELUDE_OTHER;
	struct exchange *exchange = NULL;

	if (verdict != PRELUDE_OTHER)
		exchange = open_exchange(connection);
	if (!exchange)
		connection->watch = WATCH_OVER;
	else if (verdict == PRELUDE_TLS)
		exchange_tls_begins(exchange);
	return exchange;
}

/* The exchange of a connection that is watched; `known`: what the thread was at work
 * on, if that is the same. */
static __always_inline struct exchange *
find_exchange(struct connection *connection, const struct socket_call *call, struct exchange *known)
{
	__u64 id = connection->id;
	struct exchange *exchange;

	if (connection->watch == WATCH_NEW)
		return begin_exchange(connection, call);
	exchange = known ?: bpf_map_lookup_elem(&exchanges, &id);
	if (!exchange && was_given_up(id)) {
		connection->watch = WATCH_OVER;
		return NULL;
	}
	/* Its thread found it complete when it turned to something else. */
	if (!exchange || exchange->stage == STAGE_ENDING)
		connection_established(connection, CONTENT_APPLICATION_DATA, ALERT_RECORD_13);
	return exchange && exchange->stage != STAGE_ENDING ? exchange : NULL;
}

static __always_inline void drop_exchange(struct connection *connection)
{
	__u64 id = connection->id;

	connection->watch = WATCH_OVER;
	connection->tls = TLSPROF_TLS_NONE;
	bpf_map_delete_elem(&exchanges, &id);
}

/* The handshake has got its outcome by what this call moved; `more`: so many bytes more
 * than that. */
static __noinline void finish(struct connection *connection, struct exchange *exchange,
			      struct socket_call *call, __u32 more)
{
	bool in = call->direction == TLSPROF_DIRECTION_IN;
	__u64 now = call_time(call);

	if (exchange->event.outcome != TLSPROF_OUTCOME_COMPLETED) {
		connection->watch = WATCH_OVER;
		close_exchange(connection->id, exchange, now);
		return;
	}
	connection_established(connection, exchange_alert_type(exchange),
			       exchange_alert_length(exchange, call->direction));
	if (more)
		connection_data(connection, call->direction, more);
	if (!in || exchange->untimed) {
		connection->watch = WATCH_OVER;
		close_exchange(connection->id, exchange, now);
		return;
	}
	exchange->stage = STAGE_ENDING;
	exchange->request_came = more != 0;
	exchange->ended = now;
	begin_phase(connection->id, now, 0);
	mark_tail(exchange->request_came);
}

static __noinline void describe_exchange(struct exchange *exchange, __u32 pid)
{
	struct tlsprof_handshake_event *event = &exchange->event;

	event->header.pid = pid;
	event->process_start = process_start();
	bpf_get_current_comm(event->comm, sizeof(event->comm));
}

/* The connection has come to TLS. */
static __always_inline void enter_tls(struct connection *connection, struct exchange *exchange,
				      __u32 pid)
{
	connection->tls = TLSPROF_TLS_HANDSHAKE;
	describe_exchange(exchange, pid);
}

/* The thread that answers now did not read what it answers; that was done at `read`. */
static __always_inline void take_over(struct exchange *exchange, struct socket_call *call,
				      __u64 read)
{
	struct timed *timed = timed_here();

	if (timed)
		exchange_hand_over(exchange, read, begin_of_job(timed, call_time(call), read));
}

/* Whether a handshake that a library's probes time is timed on its socket as well. */
static __always_inline bool is_compared(__u64 now)
{
	struct timed *timed = timed_here();

	return timed && is_first_of_window(&timed->compared, now);
}

/* Handshake bytes have moved; `at_work`: the thread was at work on this handshake
 * until now; `before`: when the last ones had moved. */
static __always_inline void advance(struct connection *connection, struct exchange *exchange,
				    struct socket_call *call, __u32 more, bool at_work,
				    __u64 before)
{
	__u8 direction = call->direction;
	bool first = connection->tls == TLSPROF_TLS_NONE;
	bool taken_over = direction == TLSPROF_DIRECTION_OUT && !at_work &&
			  (exchange->sent || exchange->unanswered);
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	if (first || pid != exchange->event.header.pid)
		note_process_with_phase(pid);
	if (first)
		enter_tls(connection, exchange, pid);
	if (!exchange->object &&
	    join_exchange(exchange, connection->id, first && direction == TLSPROF_DIRECTION_OUT))
		exchange->untimed = !is_compared(call_time(call));
	if (taken_over && exchange->unanswered && !exchange->untimed)
		take_over(exchange, call, before);
	exchange_moved(exchange, direction);
	connection->handshake_received = exchange->in.moved;
	connection->handshake_sent = exchange->out.moved;
	if (exchange->event.outcome)
		finish(connection, exchange, call, more);
	else if (exchange->untimed)
		keep_up_longer();
	else
		begin_phase(connection->id, call_time(call), taken_over ? before : 0);
}

/* The peer has sent something other than TLS, which ends the handshake. */
static __always_inline void break_off(struct connection *connection, struct exchange *exchange,
				      struct socket_call *call)
{
	/* It may have come together with its hello. */
	if (connection->tls == TLSPROF_TLS_NONE)
		enter_tls(connection, exchange, bpf_get_current_pid_tgid() >> 32);
	connection->watch = WATCH_OVER;
	exchange->event.outcome = TLSPROF_OUTCOME_FAILED;
	close_exchange(connection->id, exchange, call_time(call));
}

/* A socket call of the owner moved bytes of a connection that is watched; `worked_on`:
 * its exchange, if the thread was at work on that. Returns whether they were part of a
 * TLS handshake. */
static __always_inline bool watch(struct connection *connection, struct socket_call *call,
				  struct exchange *worked_on)
{
	struct exchange *exchange = find_exchange(connection, call, worked_on);
	struct transfer *transfer;
	__u8 followed = FOLLOWED_LOST;
	__u32 more = 0;
	__u64 before;

	if (!exchange)
		return false;
	before = exchange->touched;
	exchange->peer_closed = connection->peer_closed;
	transfer = begin_transfer(connection, call);
	if (transfer) {
		exchange->touched = transfer->event.header.time;
		followed = follow(transfer, exchange, call);
		more = transfer->length;
		transfer->busy = 0;
	}
	if (followed == FOLLOWED_TO_ITS_END) {
		connection->watch = WATCH_OVER;
		return true;
	}
	if (followed == FOLLOWED_LOST)
		count_loss(TLSPROF_LOSS_HELLO_NOT_FOLLOWED);
	if (followed == FOLLOWED_NOT_TLS && exchange_is_broken(exchange, call->direction)) {
		break_off(connection, exchange, call);
		return false;
	}
	if (followed != FOLLOWED_ON) {
		drop_exchange(connection);
		return false;
	}
	if (!exchange->began)
		return false;
	advance(connection, exchange, call, more, worked_on, before);
	return true;
}

#endif
