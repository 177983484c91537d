/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The TLS handshake of one TCP connection, followed by the headers of its records. Of
 * their bodies only the level of an alert is read: the agent parses the rest. Pure logic,
 * unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_EXCHANGE_H
#define TLSPROF_EXCHANGE_H

#include "clock.h"
#include "prelude.h"
#include "records.h"

/* What was seen of it. Client and server are those of TLS. */
enum seen {
	SEEN_CLIENT_HELLO = 1 << 0,
	SEEN_SERVER = 1 << 1,        /* any handshake record of the server */
	SEEN_CLIENT_ANSWER = 1 << 2, /* a handshake record after the server's, in clear */
	SEEN_CLIENT_CHANGE_CIPHER = 1 << 3,
	SEEN_CLIENT_FINISHED = 1 << 4, /* up to TLS 1.2: a handshake record after that */
	SEEN_SERVER_CHANGE_CIPHER = 1 << 5,
	SEEN_SERVER_FINISHED = 1 << 6,  /* up to TLS 1.2: a handshake record after that */
	SEEN_SERVER_FIRST = 1 << 7,     /* it came before anything more of the client */
	SEEN_SERVER_ENCRYPTED = 1 << 8, /* TLS 1.3: the rest of the server's flight */
	SEEN_CLIENT_ENCRYPTED = 1 << 9, /* TLS 1.3: an answer to it, may go on */
	SEEN_CLIENT_ENDED = 1 << 10,    /* TLS 1.3: its end */
	SEEN_EARLY_DATA = 1 << 11,
};

/* RFC 5246, 7.3: a full handshake ends with the server's Finished, an abbreviated
 * one with the client's. A HelloRetryRequest looks like either at times, but its
 * client does not answer in clear before ChangeCipherSpec, or not change ciphers
 * and send a handshake record then (RFC 8446, D.4). */
#define SEEN_FULL                                                                \
	(SEEN_CLIENT_ANSWER | SEEN_CLIENT_CHANGE_CIPHER | SEEN_CLIENT_FINISHED | \
	 SEEN_SERVER_CHANGE_CIPHER | SEEN_SERVER_FINISHED)
#define SEEN_ABBREVIATED (SEEN_SERVER_FIRST | SEEN_CLIENT_CHANGE_CIPHER | SEEN_CLIENT_FINISHED)

#define ALERT_FATAL 2 /* RFC 8446, 6 */

enum stage {
	STAGE_BEFORE_TLS = 0, /* bytes of another protocol that may switch to TLS */
	STAGE_RECORDS = 1,    /* the first record may come */
	STAGE_HANDSHAKE = 2,
	/* The peer's last bytes have come; the thread that read them ends it. */
	STAGE_ENDING = 3,
};

struct exchange {
	__u64 began;   /* as in struct tlsprof_exchange */
	__u64 touched; /* likewise */
	struct tlsprof_handshake_event event;
	__u64 object; /* the library's connection object that does it, 0 for not known */
	__u64 left;   /* when the last stretch of work on it ended */
	struct records in, out;
	struct prelude prelude; /* in STAGE_BEFORE_TLS */
	__u16 seen;
	__u8 stage;
	__u8 flight;     /* enum tlsprof_flight */
	__u8 sent;       /* own handshake records were sent */
	__u8 unanswered; /* handshake records were read and not answered yet */
	/* Application data came with the peer's last handshake bytes. */
	__u8 request_came;
	__u8 tail; /* enum tail */
	__u8 peer_closed;
	__u8 untimed; /* the clock of a library is enough */
	__u64 ended;  /* when its last stretch ended, as far as that is known */
	__u32 tail_length;
};

/* The agent sees nothing of it but the beginning. */
_Static_assert(__builtin_offsetof(struct exchange, began) ==
		       __builtin_offsetof(struct tlsprof_exchange, began),
	       "began");
_Static_assert(__builtin_offsetof(struct exchange, touched) ==
		       __builtin_offsetof(struct tlsprof_exchange, touched),
	       "touched");
_Static_assert(sizeof(struct exchange) == sizeof(struct tlsprof_exchange),
	       "TLSPROF_EXCHANGE_PRIVATE");

/*
 * What a server did since its client's last handshake bytes came together with a
 * request. It sends session tickets or the response, which the length of a record
 * does not distinguish.
 */
enum tail {
	TAIL_NONE = 0,
	TAIL_SENT = 1, /* one record: a ticket or an answer */
	TAIL_READ = 2, /* and looked in vain for more to read */
	TAIL_OVER = 3,
};

/* Longest record that may be a ticket; with a client certificate in it a ticket is
 * longer than its own 250 bytes. */
#define TICKET_RECORD 4096

static inline bool has_seen(const struct exchange *exchange, __u16 all)
{
	return (exchange->seen & all) == all;
}

/*
 * Lengths of records that hold an encrypted Finished alone: header, hash and
 * content type, and the tag of 16 or 8 bytes (RFC 8446, 4.4.4, 5.2).
 */
static inline bool is_finished_13(__u16 length)
{
	return length == 4 + 32 + 1 + 16 || length == 4 + 48 + 1 + 16 || length == 4 + 32 + 1 + 8;
}

/*
 * The longest record that says the client has no certificate: an empty Certificate and a Finished
 * in one (RFC 8446, 4.4.2). A CertificateVerify is longer alone: 89 bytes with Ed25519.
 */
#define EMPTY_CERTIFICATE_13 (8 + 4 + 48 + 1 + 16)

static inline bool is_alert_13(__u16 length)
{
	return length == 2 + 1 + 16 || length == 2 + 1 + 8;
}

static inline void client_encrypted(struct exchange *exchange, __u16 length)
{
	if (!has_seen(exchange, SEEN_SERVER_ENCRYPTED)) {
		exchange->seen |= SEEN_EARLY_DATA;
		return;
	}
	if (is_finished_13(length))
		exchange->seen |= SEEN_CLIENT_ENDED;
	else if (is_alert_13(length))
		exchange->event.outcome = TLSPROF_OUTCOME_FAILED;
	else if (!has_seen(exchange, SEEN_EARLY_DATA)) {
		exchange->seen |= SEEN_CLIENT_ENCRYPTED;
		if (length > EMPTY_CERTIFICATE_13)
			exchange->event.client_authenticates = 1;
	}
}

static inline void client_record(struct exchange *exchange, const struct records *records)
{
	switch (records->type) {
	case CONTENT_HANDSHAKE:
		if (!has_seen(exchange, SEEN_SERVER))
			exchange->seen |= SEEN_CLIENT_HELLO;
		else if (!has_seen(exchange, SEEN_CLIENT_CHANGE_CIPHER))
			exchange->seen |= SEEN_CLIENT_ANSWER;
		else
			exchange->seen |= SEEN_CLIENT_FINISHED;
		break;
	case CONTENT_CHANGE_CIPHER_SPEC:
		/* Before the server's first word: early data follows. */
		if (has_seen(exchange, SEEN_SERVER))
			exchange->seen |= SEEN_CLIENT_CHANGE_CIPHER;
		break;
	case CONTENT_APPLICATION_DATA:
		client_encrypted(exchange, records->length);
		break;
	}
}

static inline void server_record(struct exchange *exchange, const struct records *records)
{
	switch (records->type) {
	case CONTENT_HANDSHAKE:
		exchange->seen |= SEEN_SERVER;
		if (!has_seen(exchange, SEEN_SERVER_CHANGE_CIPHER))
			break;
		exchange->seen |= SEEN_SERVER_FINISHED;
		if (!(exchange->seen & (SEEN_CLIENT_ANSWER | SEEN_CLIENT_CHANGE_CIPHER)))
			exchange->seen |= SEEN_SERVER_FIRST;
		break;
	case CONTENT_CHANGE_CIPHER_SPEC:
		exchange->seen |= SEEN_SERVER_CHANGE_CIPHER;
		break;
	case CONTENT_APPLICATION_DATA:
		exchange->seen |= SEEN_SERVER_ENCRYPTED;
		break;
	}
}

static inline bool exchange_is_complete(const struct exchange *exchange)
{
	return has_seen(exchange, SEEN_CLIENT_ENDED) || has_seen(exchange, SEEN_FULL) ||
	       has_seen(exchange, SEEN_ABBREVIATED);
}

static inline bool is_from_client(const struct exchange *exchange, __u8 direction)
{
	return (direction == TLSPROF_DIRECTION_IN) == (exchange->event.role == TLSPROF_ROLE_SERVER);
}

static inline struct records *exchange_side(struct exchange *exchange, __u8 direction)
{
	return direction == TLSPROF_DIRECTION_IN ? &exchange->in : &exchange->out;
}

/* The header of a record has come: whether it may be one of a TLS connection. */
static inline bool exchange_header(struct exchange *exchange, struct records *records, __u64 now)
{
	if (!records_header_end(records))
		return false;
	if (exchange->stage != STAGE_RECORDS)
		return true;
	if (records->type != CONTENT_HANDSHAKE)
		return false;
	exchange->stage = STAGE_HANDSHAKE;
	exchange->began = now;
	return true;
}

/*
 * An alert was sent in cleartext. Returns whether it matters: some servers still send
 * one to a peer that has closed the connection.
 */
static inline bool exchange_alert(struct exchange *exchange, __u8 level, __u8 direction)
{
	if (direction == TLSPROF_DIRECTION_OUT && exchange->peer_closed)
		return false;
	if (level == ALERT_FATAL)
		exchange->event.outcome = TLSPROF_OUTCOME_FAILED;
	return true;
}

/* A whole record has come. The outcome is set when it was the last. */
static inline void exchange_record(struct exchange *exchange, __u8 direction)
{
	const struct records *records = exchange_side(exchange, direction);

	if (is_from_client(exchange, direction))
		client_record(exchange, records);
	else
		server_record(exchange, records);
	if (!exchange->event.outcome && exchange_is_complete(exchange))
		exchange->event.outcome = TLSPROF_OUTCOME_COMPLETED;
}

/* Nothing of what this direction sends has to be looked at any more: the server's
 * flight has become opaque, and only the client's end is awaited. */
static inline bool exchange_skips(const struct exchange *exchange, __u8 direction)
{
	return !is_from_client(exchange, direction) && has_seen(exchange, SEEN_SERVER_ENCRYPTED);
}

/* Whether the agent is to read this record. Once the server encrypts without having
 * changed ciphers up to TLS 1.2, it is TLS 1.3, and only alerts mean anything. */
static inline bool exchange_copies(const struct exchange *exchange, const struct records *records)
{
	return !records->opaque && (records->type != CONTENT_CHANGE_CIPHER_SPEC ||
				    !has_seen(exchange, SEEN_SERVER_ENCRYPTED));
}

/* Whether this is the last cleartext header of a direction, and the agent cannot infer that
 * from what it has. */
static inline bool exchange_falls_silent(const struct exchange *exchange, __u8 direction)
{
	const __u16 told = SEEN_SERVER_ENCRYPTED | SEEN_CLIENT_CHANGE_CIPHER;

	return is_from_client(exchange, direction) && !(exchange->seen & told);
}

/* So many such bytes have moved. */
static inline void exchange_skip(struct exchange *exchange, __u32 length)
{
	if (!has_seen(exchange, SEEN_CLIENT_ENCRYPTED))
		return;
	/* An answer, or tickets: so the client's flight was over. Or a refusal of it. */
	exchange->event.outcome = is_alert_13(length - RECORD_HEADER) ? TLSPROF_OUTCOME_FAILED
								      : TLSPROF_OUTCOME_COMPLETED;
}

/*
 * The server's first word after the client's flight: an alert, if the client sent
 * more than its Finished, is taken for a refusal of its certificate. It may be the
 * end of a connection that nobody used. Whether so many bytes are one, if they are
 * one record: that is more expensive to find out.
 */
static inline bool exchange_may_refuse(const struct exchange *exchange, int length)
{
	return has_seen(exchange, SEEN_CLIENT_ENCRYPTED) && is_alert_13(length - RECORD_HEADER);
}

/* Whether the peer waits for an answer in the handshake. */
static inline bool exchange_owes_answer(const struct exchange *exchange)
{
	return exchange->unanswered && exchange->stage == STAGE_HANDSHAKE;
}

/* The content type that records with alerts have from now on. */
static inline __u8 exchange_alert_type(const struct exchange *exchange)
{
	return has_seen(exchange, SEEN_SERVER_ENCRYPTED) ? CONTENT_APPLICATION_DATA : CONTENT_ALERT;
}

/*
 * How long records with an alert are from now on, headers included. Told by the last
 * record of the handshake, a Finished in `direction`. Up to TLS 1.2 that holds 16 bytes
 * (RFC 5246, 7.4.9) where an alert holds 2: 14 less with stream and AEAD ciphers, a
 * block of 16 bytes less with CBC, whose records are 48 bytes and more.
 */
static inline __u8 exchange_alert_length(struct exchange *exchange, __u8 direction)
{
	__u16 length = exchange_side(exchange, direction)->length;

	if (has_seen(exchange, SEEN_SERVER_ENCRYPTED))
		return RECORD_HEADER + ALERT_BODY + 1 + (length == 4 + 32 + 1 + 8 ? 8 : 16);
	if (length < 16 || length > 128)
		return 0;
	return RECORD_HEADER + (length < 48 ? length - 14 : length - 16);
}

/* Handshake bytes have moved: which part of it what follows belongs to. */
static inline void exchange_moved(struct exchange *exchange, __u8 direction)
{
	if (direction == TLSPROF_DIRECTION_OUT) {
		exchange->sent = 1;
		exchange->unanswered = 0;
		return;
	}
	exchange->unanswered = has_seen(exchange, SEEN_CLIENT_HELLO);
	if (exchange->sent)
		exchange->flight = TLSPROF_FLIGHT_LAST;
}

#define ENCRYPTED (SEEN_SERVER_ENCRYPTED | SEEN_CLIENT_CHANGE_CIPHER | SEEN_SERVER_CHANGE_CIPHER)

/* The peer answers a hello, or goes on after its own, with something other than TLS. Later it is more
 * likely that a run of a program was skipped, and the end of a record missed. */
static inline bool exchange_is_broken(const struct exchange *exchange, __u8 direction)
{
	return exchange->began && direction == TLSPROF_DIRECTION_IN &&
	       !(exchange->seen & ENCRYPTED);
}

/*
 * A client's encrypted flight that may have gone on is over: nothing more of it
 * is to be read, and the server waits. Not in the middle of a record.
 */
static inline void exchange_idle(struct exchange *exchange)
{
	if (exchange->stage == STAGE_HANDSHAKE && exchange->event.role == TLSPROF_ROLE_SERVER &&
	    has_seen(exchange, SEEN_CLIENT_ENCRYPTED) && records_are_whole(&exchange->in))
		exchange->event.outcome = TLSPROF_OUTCOME_COMPLETED;
}

/* TLS begins here, in both directions. */
static inline void exchange_tls_begins(struct exchange *exchange)
{
	exchange->in.before = exchange->in.moved;
	exchange->out.before = exchange->out.moved;
	records_begin(&exchange->in);
	records_begin(&exchange->out);
	exchange->stage = STAGE_RECORDS;
}

#endif
