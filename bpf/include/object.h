/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Which connection a library's connection object works on, where its data passes
 * through memory: no socket call is made inside its calls then, but before and after
 * them on the same thread. Pure logic, unit-tested natively in tests/bpf.
 *
 * A server's handshake begins with what it reads, a client's with what it sends. So a
 * call works on the connection whose handshake bytes its thread has moved last, and one
 * object alone has the handshake of a connection: a server may make an object for a new
 * connection while its thread is still at work on another. A client's first call has
 * read nothing: its connection is the next one on which its thread sends a ClientHello.
 */
#ifndef TLSPROF_OBJECT_H
#define TLSPROF_OBJECT_H

#include "exchange.h"
#include "handshake.h"

/* Whether a call makes a hello, and answers nothing. Asked before it is added. */
static inline bool makes_hello(const struct tlsprof_handshake *handshake)
{
	return handshake->event.role == TLSPROF_ROLE_CLIENT && !handshake->event.calls;
}

/* Whether the handshake of a connection is that of an object: it is if it is of no
 * other yet. */
static inline bool exchange_take(struct exchange *exchange, __u64 object, __u8 role)
{
	if (exchange->event.role != role)
		return false;
	if (!exchange->object)
		exchange->object = object;
	return exchange->object == object;
}

/* A client sends a ClientHello outside of library calls: the connection belongs to the
 * object that made a ClientHello last. */
static inline void exchange_hello(struct exchange *exchange, __u64 connection,
				  struct tlsprof_handshake *handshake, __u64 object)
{
	if (!handshake->event.connection && exchange_take(exchange, object, handshake->event.role))
		handshake->event.connection = connection;
}

#endif
