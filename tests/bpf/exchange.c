/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When a TLS handshake is over, by the headers of its records alone. */
#include "check.h"
#include "feed.h"

/* The same records must end the handshake at the same one on both sides. */
#define CHECK_ENDS_AT(expected, ...)                                                  \
	do {                                                                          \
		struct exchange server = fresh(TLSPROF_ROLE_SERVER);                  \
		struct exchange client = fresh(TLSPROF_ROLE_CLIENT);                  \
		CHECK_EQUAL(FEED(&server, __VA_ARGS__), expected);                    \
		CHECK_EQUAL(FEED(&client, __VA_ARGS__), expected);                    \
		if (expected) {                                                       \
			CHECK_EQUAL(server.event.outcome, TLSPROF_OUTCOME_COMPLETED); \
			CHECK_EQUAL(client.event.outcome, TLSPROF_OUTCOME_COMPLETED); \
		}                                                                     \
	} while (0)

static void tls12_full_ends_with_the_servers_finished(void)
{
	CHECK_ENDS_AT(9, C(HANDSHAKE, 200), S(HANDSHAKE, 80), S(HANDSHAKE, 900), C(HANDSHAKE, 37),
		      C(CHANGE_CIPHER_SPEC, 1), C(HANDSHAKE, 40), S(HANDSHAKE, 200),
		      S(CHANGE_CIPHER_SPEC, 1), S(HANDSHAKE, 40));
}

static void tls12_abbreviated_ends_with_the_clients_finished(void)
{
	CHECK_ENDS_AT(6, C(HANDSHAKE, 400), S(HANDSHAKE, 80), S(CHANGE_CIPHER_SPEC, 1),
		      S(HANDSHAKE, 40), C(CHANGE_CIPHER_SPEC, 1), C(HANDSHAKE, 40));
}

static void tls13_ends_with_the_clients_finished(void)
{
	CHECK_ENDS_AT(5, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
		      C(CHANGE_CIPHER_SPEC, 1), C(APPLICATION_DATA, 69));
	/* Without the messages that are sent for old middleboxes. */
	CHECK_ENDS_AT(4, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
		      C(APPLICATION_DATA, 53));
}

static void a_hello_retry_request_is_no_end(void)
{
	/* ChangeCipherSpec before the second hello. */
	CHECK_ENDS_AT(8, C(HANDSHAKE, 220), S(HANDSHAKE, 88), S(CHANGE_CIPHER_SPEC, 1),
		      C(CHANGE_CIPHER_SPEC, 1), C(HANDSHAKE, 300), S(HANDSHAKE, 155),
		      S(APPLICATION_DATA, 900), C(APPLICATION_DATA, 69));
	/* And after it. */
	CHECK_ENDS_AT(8, C(HANDSHAKE, 220), S(HANDSHAKE, 88), S(CHANGE_CIPHER_SPEC, 1),
		      C(HANDSHAKE, 300), S(HANDSHAKE, 155), S(APPLICATION_DATA, 900),
		      C(CHANGE_CIPHER_SPEC, 1), C(APPLICATION_DATA, 69));
}

static void early_data_is_not_the_clients_finished(void)
{
	CHECK_ENDS_AT(8, C(HANDSHAKE, 500), C(CHANGE_CIPHER_SPEC, 1), C(APPLICATION_DATA, 53),
		      C(APPLICATION_DATA, 300), S(HANDSHAKE, 128), S(APPLICATION_DATA, 80),
		      C(APPLICATION_DATA, 21), C(APPLICATION_DATA, 69));
}

static void a_client_certificate_comes_before_the_finished(void)
{
	CHECK_ENDS_AT(7, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
		      C(CHANGE_CIPHER_SPEC, 1), C(APPLICATION_DATA, 800), C(APPLICATION_DATA, 286),
		      C(APPLICATION_DATA, 69));
	/* All in one record: over when the server speaks again. */
	CHECK_ENDS_AT(5, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
		      C(APPLICATION_DATA, 1150), S(APPLICATION_DATA, 250));
}

static void or_when_the_server_has_nothing_more_to_read(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&exchange, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900)),
		    0);
	exchange_idle(&exchange);
	CHECK_EQUAL(exchange.event.outcome, 0);
	CHECK_EQUAL(FEED(&exchange, C(APPLICATION_DATA, 1150)), 0);
	exchange_idle(&exchange);
	CHECK_EQUAL(exchange.event.outcome, TLSPROF_OUTCOME_COMPLETED);
}

/* A client certificate may be so long that its flight comes in several pieces. */
static void half_a_record_is_not_all_that_there_is_to_read(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&exchange, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
			 C(APPLICATION_DATA, 800)),
		    0);
	exchange.in.left = 2; /* of the next header */
	exchange_idle(&exchange);
	CHECK_EQUAL(exchange.event.outcome, 0);
	exchange.in.header = 0x170303011eULL;
	CHECK_EQUAL(exchange_header(&exchange, &exchange.in, 7), true);
	exchange.in.left = 100;
	exchange_idle(&exchange);
	CHECK_EQUAL(exchange.event.outcome, 0);
	CHECK_EQUAL(FEED(&exchange, C(APPLICATION_DATA, 286), C(APPLICATION_DATA, 69)), 2);
	CHECK_EQUAL(exchange.event.outcome, TLSPROF_OUTCOME_COMPLETED);
}

/* What a client sends after a hello, or a server in answer to one. What this side sends itself
 * shows that it does not speak TLS: a plain HTTP server, say. */
static void only_what_the_peer_sends_breaks_a_handshake(void)
{
	struct exchange exchange = { .event.role = TLSPROF_ROLE_SERVER, .stage = STAGE_RECORDS };

	CHECK_EQUAL(exchange_is_broken(&exchange, TLSPROF_DIRECTION_IN), false);
	exchange.in.header = 0x1603010200ULL;
	CHECK_EQUAL(exchange_header(&exchange, &exchange.in, 7), true);
	CHECK_EQUAL(exchange_is_broken(&exchange, TLSPROF_DIRECTION_IN), true);
	CHECK_EQUAL(exchange_is_broken(&exchange, TLSPROF_DIRECTION_OUT), false);
	exchange.event.role = TLSPROF_ROLE_CLIENT;
	CHECK_EQUAL(exchange_is_broken(&exchange, TLSPROF_DIRECTION_IN), true);
}

static void alerts_are_failures(void)
{
	struct exchange in_clear = fresh(TLSPROF_ROLE_SERVER);
	struct exchange encrypted = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&in_clear, C(HANDSHAKE, 220)), 0);
	exchange_alert(&in_clear, 1, TLSPROF_DIRECTION_IN); /* a warning */
	CHECK_EQUAL(in_clear.event.outcome, 0);
	CHECK_EQUAL(exchange_alert(&in_clear, ALERT_FATAL, TLSPROF_DIRECTION_IN), true);
	CHECK_EQUAL(in_clear.event.outcome, TLSPROF_OUTCOME_FAILED);
	CHECK_EQUAL(FEED(&encrypted, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
			 C(APPLICATION_DATA, 19)),
		    4);
	CHECK_EQUAL(encrypted.event.outcome, TLSPROF_OUTCOME_FAILED);
}

static void an_alert_to_a_peer_that_has_gone_means_nothing(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&exchange, C(HANDSHAKE, 220)), 0);
	exchange.peer_closed = 1;
	CHECK_EQUAL(exchange_alert(&exchange, ALERT_FATAL, TLSPROF_DIRECTION_OUT), false);
	CHECK_EQUAL(exchange.event.outcome, 0);
	/* But what it said before it went does. */
	CHECK_EQUAL(exchange_alert(&exchange, ALERT_FATAL, TLSPROF_DIRECTION_IN), true);
	CHECK_EQUAL(exchange.event.outcome, TLSPROF_OUTCOME_FAILED);
}

static void a_false_start_is_no_end(void)
{
	CHECK_ENDS_AT(9, C(HANDSHAKE, 200), S(HANDSHAKE, 80), S(HANDSHAKE, 900), C(HANDSHAKE, 37),
		      C(CHANGE_CIPHER_SPEC, 1), C(HANDSHAKE, 40), C(APPLICATION_DATA, 69),
		      S(CHANGE_CIPHER_SPEC, 1), S(HANDSHAKE, 40));
}

static void half_a_handshake_has_no_outcome(void)
{
	CHECK_ENDS_AT(0, C(HANDSHAKE, 200));
	CHECK_ENDS_AT(0, C(HANDSHAKE, 200), S(HANDSHAKE, 80), S(HANDSHAKE, 900));
	CHECK_ENDS_AT(0, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900));
}

/* Headers, one byte at a time. */
static bool header_of(const __u8 *bytes, struct records *records)
{
	records_begin(records);
	for (int i = 0; i < RECORD_HEADER; i++)
		records_header_byte(records, bytes[i]);
	return records_header_end(records);
}

static void only_tls_records_are_records(void)
{
	struct records records = {};

	CHECK_EQUAL(header_of((const __u8 *)"\x16\x03\x01\x02\x00", &records), true);
	CHECK_EQUAL(records.type, CONTENT_HANDSHAKE);
	CHECK_EQUAL(records.left, 512);
	CHECK_EQUAL(records.opaque, 0);
	CHECK_EQUAL(header_of((const __u8 *)"\x17\x03\x03\x40\x11", &records), true);
	CHECK_EQUAL(records.opaque, 1);
	CHECK_EQUAL(header_of((const __u8 *)"\x16\x03\x01\xff\xff", &records), false);
	CHECK_EQUAL(header_of((const __u8 *)"\x16\x04\x01\x00\x20", &records), false);
	CHECK_EQUAL(header_of((const __u8 *)"GET /", &records), false);
}

static void the_first_record_is_a_handshake(void)
{
	struct exchange exchange = { .event.role = TLSPROF_ROLE_SERVER, .stage = STAGE_RECORDS };

	exchange.in.header = 0x1703030020ULL;
	CHECK_EQUAL(exchange_header(&exchange, &exchange.in, 7), false);
	exchange.in.header = 0x1603010200ULL;
	CHECK_EQUAL(exchange_header(&exchange, &exchange.in, 7), true);
	CHECK_EQUAL(exchange.began, 7);
	CHECK_EQUAL(exchange.stage, STAGE_HANDSHAKE);
}

int main(void)
{
	RUN(tls12_full_ends_with_the_servers_finished);
	RUN(tls12_abbreviated_ends_with_the_clients_finished);
	RUN(tls13_ends_with_the_clients_finished);
	RUN(a_hello_retry_request_is_no_end);
	RUN(early_data_is_not_the_clients_finished);
	RUN(a_client_certificate_comes_before_the_finished);
	RUN(or_when_the_server_has_nothing_more_to_read);
	RUN(half_a_record_is_not_all_that_there_is_to_read);
	RUN(only_what_the_peer_sends_breaks_a_handshake);
	RUN(alerts_are_failures);
	RUN(an_alert_to_a_peer_that_has_gone_means_nothing);
	RUN(a_false_start_is_no_end);
	RUN(half_a_handshake_has_no_outcome);
	RUN(only_tls_records_are_records);
	RUN(the_first_record_is_a_handshake);
	return summary();
}
