/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is a turn of a connection: a request with its answer, and no alert. */
#include <stdlib.h>
#include "check.h"
#include "connection.h"

#define IN TLSPROF_DIRECTION_IN
#define OUT TLSPROF_DIRECTION_OUT

#define ALERT ALERT_RECORD_13

static const struct socket_end orderly = { .flags = SOCK_DONE_BIT };

/* Turns of a connection on which data moved like this; 0 ends the list. */
static int turns_of(__u8 role, const __u8 *directions)
{
	struct connection connection = { .role = role };

	while (*directions)
		connection_data(&connection, *directions++, 100);
	return connection_turns(&connection);
}

/* Data of so many bytes, in or out by the sign, on a TLS 1.3 connection; 0 ends the list. */
static struct connection carry(__u8 role, const int *lengths)
{
	struct connection connection = { .role = role };

	connection_established(&connection, CONTENT_APPLICATION_DATA, ALERT);
	for (; *lengths; lengths++)
		connection_data(&connection, *lengths > 0 ? IN : OUT, abs(*lengths));
	return connection;
}

#define TURNS(role, ...) turns_of(TLSPROF_ROLE_##role, (const __u8[]){ __VA_ARGS__, 0 })
#define CARRY(role, ...) carry(TLSPROF_ROLE_##role, (const int[]){ __VA_ARGS__, 0 })

static void requests_and_answers_are_turns_on_both_sides(void)
{
	CHECK_EQUAL(TURNS(SERVER, IN, OUT), 1);
	CHECK_EQUAL(TURNS(CLIENT, OUT, IN), 1);
	CHECK_EQUAL(TURNS(SERVER, IN, OUT, IN, OUT, IN, OUT), 3);
	CHECK_EQUAL(TURNS(CLIENT, OUT, IN, OUT, IN, OUT, IN), 3);
}

static void the_number_of_calls_does_not_matter(void)
{
	CHECK_EQUAL(TURNS(SERVER, IN, IN, OUT, OUT, OUT, IN, OUT), 2);
	CHECK_EQUAL(TURNS(CLIENT, OUT, OUT, IN, IN, IN, OUT, IN), 2);
}

static void a_request_without_an_answer_is_no_turn(void)
{
	CHECK_EQUAL(TURNS(SERVER, IN), 0);
	CHECK_EQUAL(TURNS(SERVER, IN, OUT, IN), 1);
	CHECK_EQUAL(TURNS(CLIENT, OUT), 0);
	CHECK_EQUAL(TURNS(CLIENT, OUT, IN, OUT), 1);
}

static void a_greeting_is_no_turn(void)
{
	/* SMTP: 220; EHLO, 250; QUIT, 221. */
	CHECK_EQUAL(TURNS(SERVER, OUT, IN, OUT, IN, OUT), 2);
	CHECK_EQUAL(TURNS(CLIENT, IN, OUT, IN, OUT, IN), 2);
}

/* Turns and who said first that it closes. */
#define CHECK_CARRIED(moved, expected_turns, closer)                     \
	do {                                                             \
		struct connection carried = moved;                       \
		CHECK_EQUAL(connection_turns(&carried), expected_turns); \
		CHECK_EQUAL(carried.notified, closer);                   \
	} while (0)

static void an_alert_is_no_turn(void)
{
	CHECK_CARRIED(CARRY(SERVER, 100, -900, ALERT, -ALERT), 1, TLSPROF_CLOSER_REMOTE);
	CHECK_CARRIED(CARRY(SERVER, 100, -900, ALERT), 1, TLSPROF_CLOSER_REMOTE);
	CHECK_CARRIED(CARRY(CLIENT, -100, 900, -ALERT, ALERT), 1, TLSPROF_CLOSER_LOCAL);
	CHECK_CARRIED(CARRY(SERVER, ALERT, -ALERT), 0, TLSPROF_CLOSER_REMOTE);
	/* Session tickets come after an alert that came with the client's Finished. */
	CHECK_CARRIED(CARRY(SERVER, ALERT, -255, -255), 0, TLSPROF_CLOSER_REMOTE);
	/* Java says user_canceled before close_notify. */
	CHECK_CARRIED(CARRY(SERVER, 100, -900, ALERT, -ALERT, -ALERT), 1, TLSPROF_CLOSER_REMOTE);
}

static void an_alert_may_be_read_in_two_calls(void)
{
	const int rest = ALERT - RECORD_HEADER;

	CHECK_CARRIED(CARRY(SERVER, 5, 95, -900, 5, rest, -ALERT), 1, TLSPROF_CLOSER_REMOTE);
	CHECK_CARRIED(CARRY(CLIENT, -100, 5, 900, -ALERT, 5, rest), 1, TLSPROF_CLOSER_LOCAL);
	CHECK_CARRIED(CARRY(SERVER, 5, 95, 5, rest, -900), 1, TLSPROF_CLOSER_REMOTE);
}

static void a_server_that_answers_and_closes_has_closed(void)
{
	CHECK_CARRIED(CARRY(SERVER, 100, -900, -ALERT), 1, TLSPROF_CLOSER_LOCAL);
	CHECK_CARRIED(CARRY(SERVER, 100, -900, -ALERT, ALERT), 1, TLSPROF_CLOSER_LOCAL);
	CHECK_CARRIED(CARRY(CLIENT, -100, 900, ALERT, -ALERT), 1, TLSPROF_CLOSER_REMOTE);
	/* It does not answer this one. */
	CHECK_CARRIED(CARRY(SERVER, 100, -900, 100, -ALERT), 1, TLSPROF_CLOSER_LOCAL);
}

static void data_as_long_as_an_alert_is_data_if_more_follows(void)
{
	CHECK_CARRIED(CARRY(SERVER, ALERT, -ALERT, ALERT, -900), 1, TLSPROF_CLOSER_REMOTE);
	CHECK_CARRIED(CARRY(SERVER, ALERT, -ALERT, 100, -900), 2, 0);
	CHECK_CARRIED(CARRY(SERVER, ALERT, -900, ALERT, 50, -900), 2, 0);
	CHECK_CARRIED(CARRY(SERVER, 100, -ALERT, -900), 1, 0);
}

/* A step of a connection on which this moved, and then its turns and who closed. */
#define CHECK_STEPPED(moved, old, new, expected_turns, closer)           \
	do {                                                             \
		struct connection stepped = moved;                       \
		connection_step(&stepped, old, new, &orderly);           \
		CHECK_EQUAL(connection_turns(&stepped), expected_turns); \
		CHECK_EQUAL(stepped.closed_by, closer);                  \
	} while (0)

/* What ends it. */
#define CHECK_ENDED(moved, state, expected_turns, closer) \
	CHECK_STEPPED(moved, BPF_TCP_ESTABLISHED, state, expected_turns, closer)

#define OURS BPF_TCP_FIN_WAIT1
#define THEIRS BPF_TCP_CLOSE_WAIT

static void an_answer_of_two_bytes_is_one_if_its_sender_does_not_close(void)
{
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT), THEIRS, 1, TLSPROF_CLOSER_REMOTE);
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT, ALERT), THEIRS, 1, TLSPROF_CLOSER_REMOTE);
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT, 100, -ALERT), THEIRS, 2, TLSPROF_CLOSER_REMOTE);
	CHECK_ENDED(CARRY(CLIENT, -100, ALERT), OURS, 1, TLSPROF_CLOSER_LOCAL);
	CHECK_ENDED(CARRY(CLIENT, -100, ALERT, -ALERT), OURS, 1, TLSPROF_CLOSER_LOCAL);
	/* The client says that it closes, and waits for the server. */
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT, ALERT, -ALERT), OURS, 1, TLSPROF_CLOSER_REMOTE);
	CHECK_ENDED(CARRY(SERVER, ALERT, -ALERT, ALERT, -ALERT), OURS, 1, TLSPROF_CLOSER_REMOTE);
	/* The server does. */
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT, -ALERT), OURS, 1, TLSPROF_CLOSER_LOCAL);
	CHECK_ENDED(CARRY(SERVER, 100, -900, -ALERT, ALERT), THEIRS, 1, TLSPROF_CLOSER_LOCAL);
}

static void an_alert_instead_of_an_answer_is_none_if_its_sender_closes(void)
{
	CHECK_ENDED(CARRY(SERVER, 100, -ALERT), OURS, 0, TLSPROF_CLOSER_LOCAL);
	CHECK_ENDED(CARRY(CLIENT, -100, ALERT), THEIRS, 0, TLSPROF_CLOSER_REMOTE);
	CHECK_ENDED(CARRY(SERVER, ALERT, -ALERT), THEIRS, 0, TLSPROF_CLOSER_REMOTE);
}

/* The peer closes while a call has the socket; this is what the call moved. */
static struct connection close_during(struct connection connection, int length)
{
	const struct socket_end busy = { .flags = SOCK_DONE_BIT, .in_call = true };

	connection_step(&connection, BPF_TCP_ESTABLISHED, THEIRS, &busy);
	if (length)
		connection_data(&connection, length > 0 ? IN : OUT, abs(length));
	else
		connection_at_end(&connection);
	return connection;
}

/* The owner closes, too. */
#define CHECK_CLOSED(moved, expected_turns, closer) \
	CHECK_STEPPED(moved, THEIRS, BPF_TCP_LAST_ACK, expected_turns, closer)

static void a_call_during_which_the_peer_closes_counts_first(void)
{
	const struct connection two = CARRY(SERVER, ALERT, -ALERT, 100);

	CHECK_CLOSED(close_during(two, -ALERT), 2, TLSPROF_CLOSER_REMOTE);
	CHECK_CLOSED(close_during(CARRY(SERVER, 100), -ALERT), 1, TLSPROF_CLOSER_REMOTE);
	CHECK_CLOSED(close_during(CARRY(SERVER, 100), -900), 1, TLSPROF_CLOSER_REMOTE);
	/* The server says that it closes, and its client does at once. */
	CHECK_CLOSED(close_during(CARRY(SERVER, 100, -900), -ALERT), 1, TLSPROF_CLOSER_LOCAL);
	CHECK_CLOSED(close_during(CARRY(SERVER, 100, -900), ALERT), 1, TLSPROF_CLOSER_REMOTE);
}

static void what_follows_that_call_came_later(void)
{
	struct connection answered = close_during(CARRY(SERVER, 100), -900);
	struct connection ended = close_during(CARRY(SERVER, 100, -900), 0);
	struct connection silent = CARRY(SERVER, 100, -900);

	connection_data(&answered, OUT, ALERT);
	CHECK_CLOSED(answered, 1, TLSPROF_CLOSER_REMOTE);
	connection_data(&ended, OUT, ALERT);
	CHECK_CLOSED(ended, 1, TLSPROF_CLOSER_REMOTE);
	silent.closing = 1;
	CHECK_CLOSED(silent, 1, TLSPROF_CLOSER_REMOTE);
}

static void without_tls_there_are_no_alerts(void)
{
	struct connection connection = { .role = TLSPROF_ROLE_SERVER };

	connection_data(&connection, IN, ALERT);
	connection_data(&connection, OUT, ALERT);
	CHECK_EQUAL(connection_turns(&connection), 1);
	CHECK_EQUAL(connection.notified, 0);
}

int main(void)
{
	RUN(requests_and_answers_are_turns_on_both_sides);
	RUN(the_number_of_calls_does_not_matter);
	RUN(a_request_without_an_answer_is_no_turn);
	RUN(a_greeting_is_no_turn);
	RUN(an_alert_is_no_turn);
	RUN(an_alert_may_be_read_in_two_calls);
	RUN(a_server_that_answers_and_closes_has_closed);
	RUN(data_as_long_as_an_alert_is_data_if_more_follows);
	RUN(an_answer_of_two_bytes_is_one_if_its_sender_does_not_close);
	RUN(an_alert_instead_of_an_answer_is_none_if_its_sender_closes);
	RUN(a_call_during_which_the_peer_closes_counts_first);
	RUN(what_follows_that_call_came_later);
	RUN(without_tls_there_are_no_alerts);
	return summary();
}
