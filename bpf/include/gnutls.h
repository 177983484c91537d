/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What GnuTLS's numbers mean (gnutls/gnutls.h of 3.7.9). Pure logic, unit-tested natively in
 * tests/bpf.
 */
#ifndef TLSPROF_GNUTLS_H
#define TLSPROF_GNUTLS_H

#include "handshake.h"

/* Flag of gnutls_init(); without it the session is a client's. */
#define GNUTLS_SERVER 1

/* Errors that are not fatal (gnutls_error_is_fatal): the program calls again. */
enum gnutls_retry {
	GNUTLS_E_LARGE_PACKET = -7,
	GNUTLS_E_WARNING_ALERT_RECEIVED = -16,
	GNUTLS_E_AGAIN = -28,
	GNUTLS_E_REHANDSHAKE = -37,
	GNUTLS_E_INTERRUPTED = -52,
	GNUTLS_E_HEARTBEAT_PONG_RECEIVED = -292,
	GNUTLS_E_HEARTBEAT_PING_RECEIVED = -293,
	GNUTLS_E_REAUTH_REQUEST = -424,
};

/* The peer has closed or reset the connection, or no longer answers. A peer that closes in the
 * middle of a record is UNEXPECTED_PACKET_LENGTH, the same as one that sends a wrong length. */
enum gnutls_gone {
	GNUTLS_E_PUSH_ERROR = -53,
	GNUTLS_E_PULL_ERROR = -54,
	GNUTLS_E_PREMATURE_TERMINATION = -110,
	GNUTLS_E_TIMEDOUT = -319,
};

static inline __u8 gnutls_role(__u32 flags)
{
	return flags & GNUTLS_SERVER ? TLSPROF_ROLE_SERVER : TLSPROF_ROLE_CLIENT;
}

/* What the return of gnutls_handshake() says: CALL_RETRY, else enum tlsprof_outcome. */
static inline __u8 gnutls_result(int returned)
{
	if (returned >= 0)
		return TLSPROF_OUTCOME_COMPLETED;
	switch (returned) {
	case GNUTLS_E_LARGE_PACKET:
	case GNUTLS_E_WARNING_ALERT_RECEIVED:
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_REHANDSHAKE:
	case GNUTLS_E_INTERRUPTED:
	case GNUTLS_E_HEARTBEAT_PONG_RECEIVED:
	case GNUTLS_E_HEARTBEAT_PING_RECEIVED:
	case GNUTLS_E_REAUTH_REQUEST:
		return CALL_RETRY;
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
	case GNUTLS_E_PREMATURE_TERMINATION:
	case GNUTLS_E_TIMEDOUT:
		return TLSPROF_OUTCOME_ABANDONED;
	default:
		return TLSPROF_OUTCOME_FAILED;
	}
}

#endif
