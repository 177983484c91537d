/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Records of a TLS connection, fed to an exchange. */
#pragma once

#include "exchange.h"

#define CLIENT 1
#define SERVER 2

/* A record of a side of TLS. */
struct sent {
	__u8 by;
	__u8 type;
	__u16 length;
};

#define C(type, length)                        \
	{                                      \
		CLIENT, CONTENT_##type, length \
	}
#define S(type, length)                        \
	{                                      \
		SERVER, CONTENT_##type, length \
	}

/* Feeds records until there is an outcome; returns how many it took, 0 for none. */
static int feed(struct exchange *exchange, const struct sent *records, int count)
{
	for (int i = 0; i < count; i++) {
		bool in = (records[i].by == CLIENT) ==
			  (exchange->event.role == TLSPROF_ROLE_SERVER);
		__u8 direction = in ? TLSPROF_DIRECTION_IN : TLSPROF_DIRECTION_OUT;
		struct records *side = exchange_side(exchange, direction);

		if (exchange_skips(exchange, direction)) {
			exchange_skip(exchange, RECORD_HEADER + records[i].length);
		} else {
			side->type = records[i].type;
			side->length = records[i].length;
			exchange_record(exchange, direction);
			records_begin(side);
		}
		exchange_moved(exchange, direction);
		if (exchange->event.outcome)
			return i + 1;
	}
	return 0;
}

#define FEED(exchange, ...)                                  \
	feed(exchange, (const struct sent[]){ __VA_ARGS__ }, \
	     sizeof((const struct sent[]){ __VA_ARGS__ }) / sizeof(struct sent))

static struct exchange fresh(__u8 role)
{
	struct exchange exchange = { .event.role = role, .stage = STAGE_HANDSHAKE };

	return exchange;
}
