/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The first bytes of connections: copied out in both directions as long as they
 * are TLS in clear, for the agent to parse, and followed record by record to the
 * end of the handshake.
 */
#ifndef TLSPROF_HELLOS_H
#define TLSPROF_HELLOS_H

#include "before_tls.h"
#include "connection.h"

/* The most headers, bodies and pieces of them that one socket call is followed through. */
#define UNITS_A_CALL 32
/* The most bytes in one direction before a handshake must have ended. */
#define HANDSHAKE_BYTES (128 * 1024)

/* When the call ended, about: asked for once. */
static __always_inline __u64 call_time(struct socket_call *call)
{
	if (!call->time)
		call->time = bpf_ktime_get_ns();
	return call->time;
}

/* Sends what was put together. */
static __noinline void send_hello(struct transfer *transfer)
{
	struct tlsprof_hello_event *event = &transfer->event;
	__u64 used = at_most(transfer->used, TLSPROF_HELLO_LEN);

	if (!used)
		return;
	event->length = used;
	send_event(event, __builtin_offsetof(struct tlsprof_hello_event, bytes) + used);
	transfer->used = 0;
}

/* Room for `length` bytes at the end of what is put together; `offset`: where they stand
 * in TLS. */
static __always_inline __u8 *place(struct transfer *transfer, __u32 length, __u32 offset)
{
	if (transfer->used + length > TLSPROF_HELLO_LEN)
		send_hello(transfer);
	if (!transfer->used)
		transfer->event.offset = offset;
	return transfer->event.bytes + at_most(transfer->used, TLSPROF_HELLO_LEN);
}

/* Copies the header of a record that is copied: it was read before, and is sent together
 * with the first bytes of the body, not as an event of its own. */
static __noinline void copy_header(struct transfer *transfer, const struct records *records)
{
	__u8 *to = place(transfer, RECORD_HEADER, records_offset(records) - RECORD_HEADER);

	for (int i = 0; i < RECORD_HEADER; i++)
		to[i] = records->header >> 8 * (RECORD_HEADER - 1 - i);
	transfer->used += RECORD_HEADER;
}

/* Copies the next `take` bytes of a body. */
static __always_inline bool copy_body(struct transfer *transfer, const struct records *records,
				      __u32 take)
{
	__u8 *to;

	if (records->left == records->length)
		copy_header(transfer, records);
	to = place(transfer, take, records_offset(records));
	if (bpf_probe_read_user(to, at_most(take, TLSPROF_HELLO_LEN),
				(void *)transfer->payload.base))
		return false;
	transfer->used += take;
	return true;
}

/* Reads up to the end of a header; it may come in pieces. */
static __always_inline bool take_header(struct transfer *transfer, struct records *records,
					__u32 take)
{
	__u8 bytes[8] = {};

	if (bpf_probe_read_user(bytes, at_most(take, RECORD_HEADER),
				(void *)transfer->payload.base))
		return false;
	for (__u32 i = 0; i < RECORD_HEADER; i++) {
		if (i < take)
			records_header_byte(records, bytes[i]);
	}
	return true;
}

/* The header of a record is there. */
static __always_inline __u8 end_header(struct transfer *transfer, struct exchange *exchange,
				       struct records *records)
{
	bool in_clear = !records->opaque;

	if (!exchange_header(exchange, records, transfer->event.header.time))
		return FOLLOWED_NOT_TLS;
	if (in_clear && records->opaque && exchange_falls_silent(exchange, transfer->direction))
		copy_header(transfer, records);
	return FOLLOWED_ON;
}

/* An alert in clear is the last that was copied, as far as it came at once. One that
 * means nothing is not sent. */
static __always_inline void take_alert(struct transfer *transfer, struct exchange *exchange)
{
	__u32 used = transfer->used, record = RECORD_HEADER + ALERT_BODY;

	if (used < ALERT_BODY || used > TLSPROF_HELLO_LEN)
		return;
	if (!exchange_alert(exchange, transfer->event.bytes[used - ALERT_BODY],
			    transfer->direction))
		transfer->used = used > record ? used - record : 0;
}

/* One header or body, or as much of it as there is in one piece. */
static __noinline __u8 take_unit(struct transfer *transfer, struct exchange *exchange)
{
	struct records *records = exchange_side(exchange, transfer->direction);
	__u64 take = records->left;

	if (!next_piece(&transfer->payload))
		return FOLLOWED_LOST;
	if (take > transfer->payload.left)
		take = transfer->payload.left;
	if (take > transfer->length)
		take = transfer->length;
	if (!records->in_body) {
		if (!take_header(transfer, records, take))
			return FOLLOWED_LOST;
	} else if (exchange_copies(exchange, records)) {
		if (take > TLSPROF_HELLO_LEN)
			take = TLSPROF_HELLO_LEN;
		if (!copy_body(transfer, records, take))
			return FOLLOWED_LOST;
	}
	pass(transfer, records, take);
	records->left -= take;
	if (records->left)
		return FOLLOWED_ON;
	if (!records->in_body)
		return end_header(transfer, exchange, records);
	if (take == ALERT_BODY && records->type == CONTENT_ALERT && records->length == ALERT_BODY)
		take_alert(transfer, exchange);
	exchange_record(exchange, transfer->direction);
	records_begin(records);
	return FOLLOWED_ON;
}

/*
 * The same as a separate function, which the verifier checks once instead of in each iteration
 * of a loop. Such functions take only numbers, and look up the rest.
 */
__noinline int follow_unit(__u64 connection)
{
	struct transfer *transfer = current_transfer();
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	return transfer && exchange ? take_unit(transfer, exchange) : FOLLOWED_TO_ITS_END;
}

/* All units after the first. The verifier checks this loop only once too, instead of for
 * each path to it, which was three quarters of the load time. */
__noinline int follow_units(__u64 connection)
{
	struct transfer *transfer = current_transfer();
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);
	__u8 followed = FOLLOWED_ON;

	if (!transfer || !exchange)
		return FOLLOWED_TO_ITS_END;
	for (int i = 0; i < UNITS_A_CALL && followed == FOLLOWED_ON && transfer->length; i++) {
		if (exchange->event.outcome)
			break;
		if (exchange_skips(exchange, transfer->direction)) {
			pass(transfer, exchange_side(exchange, transfer->direction),
			     transfer->length);
			break;
		}
		followed = follow_unit(connection);
	}
	return followed;
}

/* Follows the call's records to the end of the handshake at most. */
static __always_inline __u8 follow_records(struct transfer *transfer, struct exchange *exchange)
{
	struct records *records = exchange_side(exchange, transfer->direction);
	__u8 followed;

	if (exchange_skips(exchange, transfer->direction)) {
		exchange_skip(exchange, transfer->length);
		records->moved += transfer->length;
		transfer->length = 0;
		return FOLLOWED_ON;
	}
	/* A library that reads header and body apart moves one unit a call. */
	followed = follow_unit(transfer->event.connection);
	if (followed == FOLLOWED_ON && transfer->length)
		followed = follow_units(transfer->event.connection);
	send_hello(transfer);
	if (followed == FOLLOWED_ON && transfer->length && !exchange->event.outcome)
		return FOLLOWED_LOST;
	return records->moved > HANDSHAKE_BYTES ? FOLLOWED_LOST : followed;
}

/* Takes hold of this CPU's transfer for what a socket call has moved. */
static __always_inline struct transfer *begin_transfer(const struct connection *connection,
						       struct socket_call *call)
{
	struct transfer *transfer = current_transfer();
	struct tlsprof_hello_event *event;

	/* Busy: another thread's call was interrupted in the middle of its use. */
	if (!transfer || transfer->busy)
		return NULL;
	transfer->busy = 1;
	transfer->length = call->length;
	transfer->used = 0;
	transfer->direction = call->direction;
	__builtin_memset(&transfer->payload, 0, sizeof(transfer->payload));
	event = &transfer->event;
	event->header.kind = TLSPROF_EVENT_HELLO;
	event->header.pid = bpf_get_current_pid_tgid() >> 32;
	event->header.time = call_time(call);
	event->connection = connection->id;
	event->direction = call->direction;
	event->role = connection->role;
	return transfer;
}

static __always_inline __u8 follow(struct transfer *transfer, struct exchange *exchange,
				   const struct socket_call *call)
{
	if (!find_payload(&transfer->payload, call))
		return FOLLOWED_LOST;
	if (exchange->stage == STAGE_BEFORE_TLS) {
		__u8 followed = follow_prelude(transfer, exchange);

		if (followed != FOLLOWED_ON || exchange->stage == STAGE_BEFORE_TLS)
			return followed;
	}
	transfer->event.upgrade = exchange->prelude.upgrade;
	transfer->event.proxied = exchange->prelude.proxied;
	return follow_records(transfer, exchange);
}

#endif
