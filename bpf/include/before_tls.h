/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Bytes before TLS, such as STARTTLS commands: parsed here and never copied out. A
 * connection that is neither TLS nor leads to it is not followed any further.
 */
#ifndef TLSPROF_BEFORE_TLS_H
#define TLSPROF_BEFORE_TLS_H

#include "phases.h"
#include "transfers.h"

/* Reads of a client's bytes per call, at most. */
#define LOOKS_A_CALL (CLIENT_PRELUDE / LOOK)

/* Reads the next bytes of the call; returns their number, or 0 if they cannot be read. */
static __always_inline __u32 look(struct transfer *transfer)
{
	__u64 take = transfer->length;

	if (!next_piece(&transfer->payload))
		return 0;
	if (take > transfer->payload.left)
		take = transfer->payload.left;
	take = at_most(take, LOOK);
	if (bpf_probe_read_user(transfer->look, take, (void *)transfer->payload.base))
		return 0;
	return take;
}

/* Separate functions, so that the verifier checks them only once: see follow_unit() in
 * hellos.h. */
__noinline int take_client_byte(__u64 connection, __u32 byte)
{
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	return exchange ? prelude_client_byte(&exchange->prelude, byte) : PRELUDE_OTHER;
}

__noinline int look_at_client(__u64 connection)
{
	struct transfer *transfer = current_transfer();
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);
	__u32 take, i = 0;
	__u8 verdict = PRELUDE_GOES_ON;

	if (!transfer || !exchange)
		return FOLLOWED_TO_ITS_END;
	take = look(transfer);
	if (!take)
		return FOLLOWED_LOST;
	for (; i < LOOK && i < take; i++) {
		verdict = take_client_byte(connection, transfer->look[i]);
		if (verdict != PRELUDE_GOES_ON)
			break;
	}
	pass(transfer, exchange_side(exchange, transfer->direction), i);
	if (verdict == PRELUDE_TLS)
		exchange_tls_begins(exchange);
	return verdict == PRELUDE_OTHER ? FOLLOWED_NOT_TLS : FOLLOWED_ON;
}

static __always_inline __u8 follow_client(struct transfer *transfer, struct exchange *exchange)
{
	struct records *records = exchange_side(exchange, transfer->direction);
	__u8 followed = FOLLOWED_ON;

	for (int i = 0; i < LOOKS_A_CALL && transfer->length; i++) {
		followed = look_at_client(transfer->event.connection);
		if (followed != FOLLOWED_ON || exchange->stage != STAGE_BEFORE_TLS)
			return followed;
	}
	return transfer->length || records->moved > CLIENT_PRELUDE ? FOLLOWED_NOT_TLS : followed;
}

/* Another such function. */
__noinline int look_at_greeting(__u64 connection)
{
	struct transfer *transfer = current_transfer();
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);
	__u32 take;

	if (!transfer || !exchange)
		return FOLLOWED_TO_ITS_END;
	take = look(transfer);
	if (!take)
		return FOLLOWED_LOST;
	for (__u32 i = 0; i < GREETING && i < take; i++) {
		if (prelude_server_byte(&exchange->prelude, transfer->look[i]))
			return FOLLOWED_NOT_TLS;
	}
	return FOLLOWED_ON;
}

/* Of a server only its greeting matters. */
static __always_inline __u8 follow_server(struct transfer *transfer, struct exchange *exchange)
{
	struct records *records = exchange_side(exchange, transfer->direction);

	if (!exchange->prelude.upgrade && exchange->prelude.greeted < GREETING) {
		__u8 followed = look_at_greeting(transfer->event.connection);

		if (followed != FOLLOWED_ON)
			return followed;
	}
	records->moved += transfer->length;
	transfer->length = 0;
	return records->moved > SERVER_PRELUDE ? FOLLOWED_NOT_TLS : FOLLOWED_ON;
}

/* Skips what comes before TLS, up to its beginning if that is in this call. */
static __always_inline __u8 follow_prelude(struct transfer *transfer, struct exchange *exchange)
{
	return is_from_client(exchange, transfer->direction) ? follow_client(transfer, exchange)
							     : follow_server(transfer, exchange);
}

#endif
