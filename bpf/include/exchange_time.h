/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Which CPU time belongs to the TLS handshake of a connection, and its end. Pure logic,
 * unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_EXCHANGE_TIME_H
#define TLSPROF_EXCHANGE_TIME_H

#include "exchange.h"

/*
 * The next socket call of the thread in this state moved `length` bytes on the
 * same connection; `one_record`: all of them one record, asked for the first one. Returns whether what
 * comes after it matters too.
 *
 * What was sent is a ticket, and so still handshake, if the same length is sent
 * again at once (OpenSSL sends two after a full handshake), or if the server looks
 * for something to read and then sends, without having read more than the request
 * that it had before. An answer in two records of one length is taken for tickets.
 */
static inline bool exchange_tail(struct exchange *exchange, __u8 direction, int length,
				 bool one_record)
{
	bool sent = direction == TLSPROF_DIRECTION_OUT && length > 0;
	__u8 before = exchange->tail;

	exchange->tail = TAIL_OVER;
	if (before == TAIL_NONE) {
		if (!sent || !one_record || length > TICKET_RECORD)
			return false;
		exchange->tail = TAIL_SENT;
		exchange->tail_length = length;
		return true;
	}
	if (before == TAIL_SENT && direction == TLSPROF_DIRECTION_IN && length <= 0) {
		exchange->tail = TAIL_READ;
		return true;
	}
	if (sent && (before == TAIL_READ || length == (int)exchange->tail_length))
		exchange->request_came = 0;
	return false;
}

/* Adds a stretch of work on it that has just ended; `tail` is as it was then. */
static inline void exchange_add(struct exchange *exchange, const struct clock *clock, __u8 tail,
				__u64 now)
{
	struct tlsprof_handshake_event *event = &exchange->event;
	__u64 cpu = clock_cpu(clock, now);

	exchange->left = clock_now(clock, now);
	/* Between a first ticket and the answer the request may be worked on. */
	if (tail == TAIL_READ || (tail == TAIL_SENT && exchange->request_came))
		return;
	if (exchange->request_came) {
		event->finish_and_answer += cpu;
		return;
	}
	clock_add_to(clock, event, now);
	event->cpu += cpu;
	event->flight[exchange->flight & 1] += cpu;
	if (exchange->ended)
		exchange->ended = now;
}

/*
 * A thread begins its part at `from`: it answers what another one read at `read`. What
 * was between the two threads' work nobody saw.
 */
static inline void exchange_hand_over(struct exchange *exchange, __u64 read, __u64 from)
{
	struct tlsprof_handshake_event *event = &exchange->event;
	__u64 left = exchange->left > read ? exchange->left : read;
	__u64 unseen = from > left ? (from - left) / 1000 : 0;

	event->handed_over = 1;
	unseen += event->unseen_us;
	event->unseen_us = unseen < ~0U ? unseen : ~0U;
}

/* The event of a handshake that is over. */
static inline void exchange_end(const struct exchange *exchange,
				struct tlsprof_handshake_event *event, __u64 connection, __u64 now)
{
	*event = exchange->event;
	event->header.kind = TLSPROF_EVENT_HANDSHAKE;
	event->header.time = now;
	event->connection = connection;
	event->duration = (exchange->ended ? exchange->ended : now) - exchange->began;
	event->source = TLSPROF_SOURCE_SOCKET;
	event->named = exchange->object != 0;
	/* What was timed before that was known is not the whole. */
	if (exchange->untimed)
		event->calls = 0;
	/* The tail was a ticket. */
	if (!exchange->request_came) {
		event->cpu += event->finish_and_answer;
		event->in_call += event->finish_and_answer;
		event->flight[exchange->flight & 1] += event->finish_and_answer;
		event->finish_and_answer = 0;
	}
	if (!event->outcome)
		event->outcome = TLSPROF_OUTCOME_ABANDONED;
}

#endif
