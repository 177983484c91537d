/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * One handshake of one connection object, over all the calls that it takes.
 * Pure logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_HANDSHAKE_H
#define TLSPROF_HANDSHAKE_H

#include "call.h"

/* SSL_R_UNEXPECTED_EOF_WHILE_READING (OpenSSL 3.0, include/openssl/sslerr.h):
 * the peer closed without an alert. 1.1.1 raises no error then. */
#define SSL_R_UNEXPECTED_EOF_WHILE_READING 294

/* ERR_LIB_SSL (include/openssl/err.h): the lib argument of libssl's own errors. */
#define ERR_LIB_SSL 20

enum call_result {
	CALL_RETRY = 0, /* wants more from the peer: not an end */
};

/*
 * Outcome of a handshake from a call's return value: 0 for "not over yet", else enum
 * tlsprof_outcome. SSL_do_handshake(3): 1 is success; everything else is a retry or a
 * failure, which only the error queue distinguishes.
 */
static inline __u8 handshake_result(int returned, __u32 error_reason)
{
	if (returned == 1)
		return TLSPROF_OUTCOME_COMPLETED;
	if (!error_reason)
		return CALL_RETRY;
	if (error_reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return TLSPROF_OUTCOME_ABANDONED;
	return TLSPROF_OUTCOME_FAILED;
}

/* Whether a handshake was opened in the call that began then, 0 for none. A call opens one at
 * most. */
static inline bool handshake_is_of(const struct tlsprof_handshake *handshake, __u64 call_began)
{
	return call_began && handshake->began == call_began;
}

static inline __u8 saturating_add(__u8 a, __u8 b)
{
	return a + b > 255 ? 255 : a + b;
}

/* Adds a call that has just ended, or been cut short, to its handshake. */
static inline void handshake_add_call(struct tlsprof_handshake *handshake, const struct call *call,
				      __u64 now)
{
	struct tlsprof_handshake_event *event = &handshake->event;

	clock_add_to(&call->clock, event, now);
	event->probe_hits += call->probe_hits;
	event->cpu += clock_cpu(&call->clock, now);
	if (call->connection)
		event->connection = call->connection;
	for (int i = 0; i < TLSPROF_STEP_COUNT; i++) {
		event->step[i] += call->step[i];
		event->step_calls[i] = saturating_add(event->step_calls[i], call->step_calls[i]);
	}
	if (call->signature_bytes)
		event->signature_bytes = call->signature_bytes;
	if (call->encapsulated_bytes)
		event->encapsulated_bytes = call->encapsulated_bytes;
	if (call->error_reason)
		event->error_reason = call->error_reason;
	if (call->groups_named) {
		event->groups_named = saturating_add(event->groups_named, call->groups_named);
		__builtin_memcpy(event->group, call->group, sizeof(event->group));
	}
}

/* Whether a group of probes was attached from the beginning to the end. */
static inline __u8 observed_throughout(__u32 at_beginning, __u32 at_end)
{
	return (at_beginning & 1) && at_beginning == at_end;
}

static inline void handshake_end(struct tlsprof_handshake *handshake, __u8 outcome, __u64 now,
				 const struct tlsprof_control *control)
{
	struct tlsprof_handshake_event *event = &handshake->event;

	event->header.kind = TLSPROF_EVENT_HANDSHAKE;
	event->header.time = now;
	event->duration = now - handshake->began;
	event->outcome = outcome;
	event->steps_observed =
		observed_throughout(handshake->steps_generation, control->steps_generation);
	event->key_derivation_observed = observed_throughout(handshake->key_derivation_generation,
							     control->key_derivation_generation);
}

#endif
