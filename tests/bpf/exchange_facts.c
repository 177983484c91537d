/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What an exchange knows beside its end: CPU time, tickets, handover, alerts. */
#include "check.h"
#include "exchange_time.h"
#include "feed.h"

static void stretches_belong_to_the_flight_that_they_work_on(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);
	struct clock clock = {};

	clock_begin(&clock, 100);
	FEED(&exchange, C(HANDSHAKE, 200));
	CHECK_EQUAL(exchange.unanswered, 1);
	exchange_add(&exchange, &clock, TAIL_NONE, 400);
	FEED(&exchange, S(HANDSHAKE, 900));
	CHECK_EQUAL(exchange.unanswered, 0);
	exchange_add(&exchange, &clock, TAIL_NONE, 110);
	FEED(&exchange, C(HANDSHAKE, 37));
	exchange_add(&exchange, &clock, TAIL_NONE, 150);
	exchange.request_came = 1;
	exchange_add(&exchange, &clock, TAIL_NONE, 1100);
	CHECK_EQUAL(exchange.event.flight[TLSPROF_FLIGHT_FIRST], 310);
	CHECK_EQUAL(exchange.event.flight[TLSPROF_FLIGHT_LAST], 50);
	CHECK_EQUAL(exchange.event.cpu, 360);
	CHECK_EQUAL(exchange.event.in_call, 360);
	CHECK_EQUAL(exchange.event.finish_and_answer, 1000);
}

/* An exchange whose client sent its request along, and the first stretch after. */
static struct exchange with_request(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);

	exchange.request_came = 1;
	exchange.event.finish_and_answer = 50;
	return exchange;
}

#define OUT TLSPROF_DIRECTION_OUT
#define IN TLSPROF_DIRECTION_IN

static void tickets_are_told_from_an_answer(void)
{
	struct exchange two = with_request(), one = with_request(), none = with_request();
	struct exchange answered = with_request();
	struct tlsprof_handshake_event event;

	CHECK_EQUAL(exchange_tail(&two, OUT, 271, true), true);
	CHECK_EQUAL(exchange_tail(&two, OUT, 271, true), false);
	exchange_end(&two, &event, 1, 9);
	CHECK_EQUAL(event.cpu, 50);

	CHECK_EQUAL(exchange_tail(&one, OUT, 271, true), true);
	CHECK_EQUAL(exchange_tail(&one, IN, -11, false), true);
	CHECK_EQUAL(exchange_tail(&one, OUT, 167, true), false);
	exchange_end(&one, &event, 1, 9);
	CHECK_EQUAL(event.cpu, 50);

	CHECK_EQUAL(exchange_tail(&none, OUT, 9000, false), false);
	exchange_end(&none, &event, 1, 9);
	CHECK_EQUAL(event.cpu, 0);
	CHECK_EQUAL(event.finish_and_answer, 50);

	/* Then it sleeps, until the next request. */
	CHECK_EQUAL(exchange_tail(&answered, OUT, 167, true), true);
	CHECK_EQUAL(exchange_tail(&answered, IN, -11, false), true);
	exchange_end(&answered, &event, 1, 9);
	CHECK_EQUAL(event.cpu, 0);
}

static void a_refused_client_certificate_is_a_failure(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER), used = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&exchange, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
			 C(APPLICATION_DATA, 800), C(APPLICATION_DATA, 69)),
		    5);
	CHECK_EQUAL(exchange_may_refuse(&exchange, RECORD_HEADER + 19), true);
	CHECK_EQUAL(exchange_may_refuse(&exchange, RECORD_HEADER + 250), false);
	CHECK_EQUAL(exchange.event.client_authenticates, 1);
	CHECK_EQUAL(FEED(&used, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
			 C(APPLICATION_DATA, 69)),
		    4);
	CHECK_EQUAL(exchange_may_refuse(&used, RECORD_HEADER + 19), false);
	CHECK_EQUAL(used.event.client_authenticates, 0);
}

static void an_empty_certificate_is_no_authentication(void)
{
	struct exchange alone = fresh(TLSPROF_ROLE_SERVER), one = fresh(TLSPROF_ROLE_SERVER);
	struct exchange signs = fresh(TLSPROF_ROLE_SERVER);

	/* Certificate and Finished in a record each; in one, with SHA-384. */
	CHECK_EQUAL(FEED(&alone, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
			 C(APPLICATION_DATA, 25), C(APPLICATION_DATA, 69)),
		    5);
	CHECK_EQUAL(alone.event.client_authenticates, 0);
	CHECK_EQUAL(alone.event.outcome, TLSPROF_OUTCOME_COMPLETED);
	FEED(&one, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
	     C(APPLICATION_DATA, 77));
	CHECK_EQUAL(one.event.client_authenticates, 0);
	/* The shortest CertificateVerify, after a Certificate as short: a raw key (RFC 7250). */
	FEED(&signs, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900),
	     C(APPLICATION_DATA, 74), C(APPLICATION_DATA, 89));
	CHECK_EQUAL(signs.event.client_authenticates, 1);
}

static void between_two_threads_nobody_saw_the_work(void)
{
	struct exchange exchange = { .left = 5000 };

	/* The thread that read stopped work on it at 5000. */
	exchange_hand_over(&exchange, 1000, 9000);
	CHECK_EQUAL(exchange.event.handed_over, 1);
	CHECK_EQUAL(exchange.event.unseen_us, 4);
	/* It is still at work: all since the read was between. */
	exchange_hand_over(&exchange, 20000, 26000);
	CHECK_EQUAL(exchange.event.unseen_us, 10);
	/* The other one took over at once. */
	exchange_hand_over(&exchange, 30000, 30000);
	CHECK_EQUAL(exchange.event.unseen_us, 10);
	exchange_hand_over(&exchange, 0, ~0ULL);
	CHECK_EQUAL(exchange.event.unseen_us, ~0U);
}

static void work_on_the_request_is_not_handshake(void)
{
	struct exchange exchange = with_request();
	struct tlsprof_handshake_event event;
	struct clock clock = {};

	exchange.began = 1;
	exchange.ended = 100;
	clock_begin(&clock, 1000);
	CHECK_EQUAL(exchange_tail(&exchange, OUT, 271, true), true);
	CHECK_EQUAL(exchange_tail(&exchange, IN, -11, false), true);
	CHECK_EQUAL(exchange_tail(&exchange, OUT, 167, true), false);
	exchange_add(&exchange, &clock, TAIL_READ, 51000);
	exchange_end(&exchange, &event, 1, 51000);
	CHECK_EQUAL(event.cpu, 50);
	CHECK_EQUAL(event.duration, 99);
}

static void an_answer_in_two_writes_is_no_ticket(void)
{
	struct exchange exchange = with_request();
	struct tlsprof_handshake_event event;

	CHECK_EQUAL(exchange_tail(&exchange, OUT, 271, true), true);
	CHECK_EQUAL(exchange_tail(&exchange, OUT, 4000, true), false);
	exchange_end(&exchange, &event, 1, 9);
	CHECK_EQUAL(event.cpu, 0);
	CHECK_EQUAL(event.finish_and_answer, 50);
}

static void in_tls13_only_alerts_are_copied_after_the_hellos(void)
{
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);
	struct records change = { .type = CONTENT_CHANGE_CIPHER_SPEC },
		       alert = { .type = CONTENT_ALERT };

	/* Up to TLS 1.2 it tells a resumption. */
	CHECK_EQUAL(FEED(&exchange, C(HANDSHAKE, 220), S(HANDSHAKE, 122)), 0);
	CHECK_EQUAL(exchange_copies(&exchange, &change), true);
	CHECK_EQUAL(FEED(&exchange, S(APPLICATION_DATA, 900)), 0);
	CHECK_EQUAL(exchange_copies(&exchange, &change), false);
	CHECK_EQUAL(exchange_copies(&exchange, &alert), true);
	alert.opaque = 1;
	CHECK_EQUAL(exchange_copies(&exchange, &alert), false);
}

static void the_agent_learns_that_a_client_falls_silent(void)
{
	struct exchange early = fresh(TLSPROF_ROLE_SERVER), later = fresh(TLSPROF_ROLE_SERVER);
	struct exchange changed = fresh(TLSPROF_ROLE_SERVER);

	CHECK_EQUAL(FEED(&early, C(HANDSHAKE, 500), C(CHANGE_CIPHER_SPEC, 1)), 0);
	CHECK_EQUAL(exchange_falls_silent(&early, IN), true);
	CHECK_EQUAL(exchange_falls_silent(&early, OUT), false);
	CHECK_EQUAL(FEED(&later, C(HANDSHAKE, 220), S(HANDSHAKE, 122), S(APPLICATION_DATA, 900)),
		    0);
	CHECK_EQUAL(exchange_falls_silent(&later, IN), false);
	CHECK_EQUAL(FEED(&changed, C(HANDSHAKE, 200), S(HANDSHAKE, 80), C(HANDSHAKE, 37),
			 C(CHANGE_CIPHER_SPEC, 1)),
		    0);
	CHECK_EQUAL(exchange_falls_silent(&changed, IN), false);
}

/* By what OpenSSL sends: lengths of records with a Finished and with an alert. */
static void an_alert_is_as_long_as_the_finished_tells(void)
{
	/* GCM, ChaCha20-Poly1305, RC4; CBC with SHA-1, SHA-256, SHA-384; 3DES. */
	static const __u8 lengths[][2] = { { 40, 26 }, { 32, 18 }, { 36, 22 }, { 64, 48 },
					   { 80, 64 }, { 96, 80 }, { 48, 32 } };
	struct exchange exchange = fresh(TLSPROF_ROLE_SERVER);

	for (int i = 0; i < 7; i++) {
		exchange.in.length = lengths[i][0];
		CHECK_EQUAL(exchange_alert_length(&exchange, IN), RECORD_HEADER + lengths[i][1]);
	}
	CHECK_EQUAL(exchange_alert_type(&exchange), CONTENT_ALERT);
	exchange.seen = SEEN_SERVER_ENCRYPTED;
	exchange.in.length = 53;
	CHECK_EQUAL(exchange_alert_length(&exchange, IN), ALERT_RECORD_13);
	exchange.in.length = 45;
	CHECK_EQUAL(exchange_alert_length(&exchange, IN), ALERT_RECORD_13 - 8);
	CHECK_EQUAL(exchange_alert_type(&exchange), CONTENT_APPLICATION_DATA);
}

int main(void)
{
	RUN(an_alert_is_as_long_as_the_finished_tells);
	RUN(stretches_belong_to_the_flight_that_they_work_on);
	RUN(tickets_are_told_from_an_answer);
	RUN(an_answer_in_two_writes_is_no_ticket);
	RUN(a_refused_client_certificate_is_a_failure);
	RUN(an_empty_certificate_is_no_authentication);
	RUN(between_two_threads_nobody_saw_the_work);
	RUN(work_on_the_request_is_not_handshake);
	RUN(in_tls13_only_alerts_are_copied_after_the_hellos);
	RUN(the_agent_learns_that_a_client_falls_silent);
	return summary();
}
