/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The logic of connections: what the ways through TCP's states mean. */
#include "check.h"
#include "connection.h"

static const struct socket_end orderly = { .flags = SOCK_DONE_BIT };
static const struct socket_end by_reset = { .error = 104 /* ECONNRESET */ };

/* Lives a connection through these states; 0 ends the list. */
static struct connection live(const int *states, const struct socket_end *end)
{
	struct connection connection = {};

	for (; states[1]; states++)
		connection_step(&connection, states[0], states[1], end);
	return connection;
}

#define LIVE(end, ...) live((const int[]){ BPF_TCP_ESTABLISHED, __VA_ARGS__, 0 }, end)

/* While the hooks on socket calls are out, connections are counted, and nothing else. */
static void a_connection_is_followed_while_calls_are_seen(void)
{
	struct tlsprof_control seen = { .calls_generation = 2 }, out = { .calls_generation = 3 };
	struct tlsprof_control again = { .calls_generation = 4 };
	struct connection followed = {}, other = {};

	connection_open(&followed, 1000, &seen);
	connection_open(&other, 1000, &out);
	CHECK_EQUAL(followed.watch, WATCH_NEW);
	CHECK_EQUAL(other.watch, WATCH_OVER);
	CHECK_EQUAL(other.role, TLSPROF_ROLE_SERVER);
	CHECK_EQUAL(connection_is_followed(&followed, &seen), true);
	CHECK_EQUAL(connection_is_followed(&followed, &out), false);
	/* It moved data meanwhile that nobody saw. */
	CHECK_EQUAL(connection_is_followed(&followed, &again), false);
	CHECK_EQUAL(connection_is_followed(&other, &out), false);
}

/* One that opens unseen and without an owner is told with its end; a client has one at once. */
static void an_opening_may_be_told_late(void)
{
	struct tlsprof_control seen = { .calls_generation = 2 }, out = { .calls_generation = 3 };
	struct connection followed = {}, server = {}, client = { .pid = 7 };

	connection_open(&followed, 1000, &seen);
	connection_open(&server, 1000, &out);
	connection_open(&client, 1000, &out);
	CHECK_EQUAL(followed.untold, 0);
	CHECK_EQUAL(server.untold, 1);
	CHECK_EQUAL(client.untold, 0);
}

/* Changes of a socket's state as tcp_state() and its stand-in have them: after the first
 * ran, the other has nothing to do. */
static void a_state_is_handled_once(void)
{
	struct connection connection = { .state = BPF_TCP_SYN_RECV };

	CHECK_EQUAL(state_was_handled(&connection, BPF_TCP_LISTEN, BPF_TCP_SYN_RECV), true);
	CHECK_EQUAL(state_was_handled(&connection, BPF_TCP_SYN_RECV, BPF_TCP_ESTABLISHED), false);
	connection.state = BPF_TCP_LAST_ACK;
	CHECK_EQUAL(state_was_handled(&connection, BPF_TCP_LAST_ACK, BPF_TCP_CLOSE), false);
}

/* It has no id before it is open, and a state from then on. */
static void storage_that_was_cleared_keeps_nothing(void)
{
	struct connection requested = { .state = BPF_TCP_SYN_RECV }, from_before = { .id = 1 };
	struct connection cleared = {};

	CHECK_EQUAL(is_kept(&requested), true);
	CHECK_EQUAL(is_kept(&from_before), true);
	CHECK_EQUAL(is_kept(&cleared), false);
}

/* A complete handshake may still have a thread at work on it, which its end must not miss. */
static void nothing_is_watched_once_the_handshake_is_complete(void)
{
	struct connection connection = { .watch = WATCH_OPEN };

	CHECK_EQUAL(is_watched(WATCH_NEW), true);
	CHECK_EQUAL(is_watched(WATCH_OPEN), true);
	connection_established(&connection, CONTENT_APPLICATION_DATA, ALERT_RECORD_13);
	CHECK_EQUAL(connection.watch, WATCH_ENDING);
	CHECK_EQUAL(is_watched(connection.watch), false);
	CHECK_EQUAL(is_watched(WATCH_OVER), false);
}

static void what_begins_a_connection_was_not_handled_if_nothing_is_kept(void)
{
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_LISTEN, BPF_TCP_SYN_RECV), false);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_CLOSE, BPF_TCP_SYN_SENT), false);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_SYN_SENT, BPF_TCP_ESTABLISHED), false);
}

static void of_a_connection_from_before_the_first_change_is_handled(void)
{
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_ESTABLISHED, BPF_TCP_FIN_WAIT1), false);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_ESTABLISHED, BPF_TCP_CLOSE_WAIT), false);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_CLOSE_WAIT, BPF_TCP_LAST_ACK), true);
}

static void after_a_close_nothing_is_kept(void)
{
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_FIN_WAIT2, BPF_TCP_CLOSE), true);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_ESTABLISHED, BPF_TCP_CLOSE), true);
	CHECK_EQUAL(state_was_handled(NULL, BPF_TCP_CLOSE, BPF_TCP_LISTEN), true);
}

static void who_says_first_that_it_closes_has_closed(void)
{
	struct connection theirs = { .notified = TLSPROF_CLOSER_REMOTE };
	struct connection ours = { .notified = TLSPROF_CLOSER_LOCAL };

	connection_step(&theirs, BPF_TCP_ESTABLISHED, BPF_TCP_FIN_WAIT1, &orderly);
	connection_step(&theirs, BPF_TCP_FIN_WAIT2, BPF_TCP_CLOSE, &orderly);
	connection_step(&ours, BPF_TCP_ESTABLISHED, BPF_TCP_CLOSE_WAIT, &orderly);
	CHECK_EQUAL(theirs.closed_by, TLSPROF_CLOSER_REMOTE);
	CHECK_EQUAL(theirs.time_wait, 1);
	CHECK_EQUAL(ours.closed_by, TLSPROF_CLOSER_LOCAL);
}

static void a_reset_is_not_the_end_of_what_can_still_be_read(void)
{
	const struct socket_end dead = { .error = 104, .flags = SOCK_DEAD_BIT };
	struct connection connection = { .role = TLSPROF_ROLE_SERVER, .pid = 1 };

	CHECK_EQUAL(outlives_reset(&connection, &by_reset), false);
	connection.watch = WATCH_OPEN;
	CHECK_EQUAL(outlives_reset(&connection, &by_reset), true);
	CHECK_EQUAL(outlives_reset(&connection, &dead), false);
	CHECK_EQUAL(outlives_reset(&connection, &orderly), false);
	/* It waits to be accepted. */
	connection = (struct connection){ .role = TLSPROF_ROLE_SERVER };
	CHECK_EQUAL(outlives_reset(&connection, &by_reset), true);
}

static void the_side_that_closes_first_has_time_wait(void)
{
	struct connection ours =
		LIVE(&orderly, BPF_TCP_FIN_WAIT1, BPF_TCP_FIN_WAIT2, BPF_TCP_CLOSE);
	struct connection theirs =
		LIVE(&orderly, BPF_TCP_CLOSE_WAIT, BPF_TCP_LAST_ACK, BPF_TCP_CLOSE);

	CHECK_EQUAL(ours.closed_by, TLSPROF_CLOSER_LOCAL);
	CHECK_EQUAL(ours.time_wait, 1);
	CHECK_EQUAL(ours.reset, 0);
	CHECK_EQUAL(theirs.closed_by, TLSPROF_CLOSER_REMOTE);
	CHECK_EQUAL(theirs.time_wait, 0);
	CHECK_EQUAL(theirs.reset, 0);
}

static void both_sides_that_close_at_once_have_time_wait(void)
{
	struct connection connection =
		LIVE(&orderly, BPF_TCP_FIN_WAIT1, BPF_TCP_CLOSING, BPF_TCP_CLOSE);

	CHECK_EQUAL(connection.closed_by, TLSPROF_CLOSER_LOCAL);
	CHECK_EQUAL(connection.time_wait, 1);
}

static void a_reset_leaves_no_time_wait(void)
{
	struct connection open = LIVE(&by_reset, BPF_TCP_CLOSE);
	struct connection waiting =
		LIVE(&by_reset, BPF_TCP_FIN_WAIT1, BPF_TCP_FIN_WAIT2, BPF_TCP_CLOSE);

	CHECK_EQUAL(open.closed_by, TLSPROF_CLOSER_REMOTE);
	CHECK_EQUAL(open.reset, 1);
	CHECK_EQUAL(open.time_wait, 0);
	CHECK_EQUAL(waiting.closed_by, TLSPROF_CLOSER_LOCAL);
	CHECK_EQUAL(waiting.reset, 1);
	CHECK_EQUAL(waiting.time_wait, 0);
}

static void a_close_with_unread_data_is_a_reset_from_this_side(void)
{
	const struct socket_end silent = {};
	struct connection open = LIVE(&silent, BPF_TCP_CLOSE);
	struct connection after_fin = LIVE(&silent, BPF_TCP_CLOSE_WAIT, BPF_TCP_CLOSE);
	struct connection after_shutdown =
		LIVE(&silent, BPF_TCP_FIN_WAIT1, BPF_TCP_FIN_WAIT2, BPF_TCP_CLOSE);

	CHECK_EQUAL(open.closed_by, TLSPROF_CLOSER_LOCAL);
	CHECK_EQUAL(open.reset, 1);
	CHECK_EQUAL(after_fin.closed_by, TLSPROF_CLOSER_REMOTE);
	CHECK_EQUAL(after_fin.reset, 1);
	CHECK_EQUAL(after_shutdown.reset, 1);
	CHECK_EQUAL(after_shutdown.time_wait, 0);
}

static void the_kernel_waits_on_for_a_socket_that_is_closed(void)
{
	const struct socket_end orphan = { .flags = SOCK_DEAD_BIT };
	const struct socket_end impatient = { .flags = SOCK_DEAD_BIT, .linger2 = -1 };

	CHECK_EQUAL(makes_time_wait(BPF_TCP_FIN_WAIT2, &orphan), true);
	CHECK_EQUAL(makes_time_wait(BPF_TCP_FIN_WAIT2, &impatient), false);
	CHECK_EQUAL(makes_time_wait(BPF_TCP_LAST_ACK, &orderly), false);
}

static void a_peer_that_no_longer_answers_is_a_timeout(void)
{
	const struct socket_end timeout = { .error = TLSPROF_ETIMEDOUT };
	struct connection open = LIVE(&timeout, BPF_TCP_CLOSE);
	struct connection closing = LIVE(&timeout, BPF_TCP_FIN_WAIT1, BPF_TCP_CLOSE);

	CHECK_EQUAL(open.closed_by, TLSPROF_CLOSER_TIMEOUT);
	CHECK_EQUAL(open.reset, 0);
	CHECK_EQUAL(closing.closed_by, TLSPROF_CLOSER_LOCAL);
	CHECK_EQUAL(closing.time_wait, 0);
}

static void who_closes_by_fin_or_reset_has_the_socket(void)
{
	const struct socket_end softirq = {};
	const struct socket_end call = { .in_call = true };
	const struct socket_end peer_reset = { .in_call = true, .error = by_reset.error };

	CHECK_EQUAL(is_by_task(BPF_TCP_FIN_WAIT1, &call), true);
	CHECK_EQUAL(is_by_task(BPF_TCP_LAST_ACK, &call), true);
	CHECK_EQUAL(is_by_task(BPF_TCP_CLOSE, &call), true);
	CHECK_EQUAL(is_by_task(BPF_TCP_CLOSE, &softirq), false);
	CHECK_EQUAL(is_by_task(BPF_TCP_CLOSE, &peer_reset), false);
	CHECK_EQUAL(is_by_task(BPF_TCP_CLOSE_WAIT, &call), false);
}

static void a_fin_is_not_payload(void)
{
	CHECK_EQUAL(payload_received(101, SOCK_DONE_BIT), 100);
	CHECK_EQUAL(payload_received(101, SOCK_DEAD_BIT), 101);
	CHECK_EQUAL(payload_received(0, SOCK_DONE_BIT), 0);
}

static void a_round_trip_that_tcp_has_not_measured_is_none(void)
{
	CHECK_EQUAL(round_trip(40), 40000);
	CHECK_EQUAL(round_trip(~0U), 0);
	CHECK_EQUAL(round_trip(5000000), 5000000000ULL);
}

static void application_data_is_never_less_than_nothing(void)
{
	CHECK_EQUAL(bytes_after(1000, 600), 400);
	CHECK_EQUAL(bytes_after(600, 600), 0);
	CHECK_EQUAL(bytes_after(599, 600), 0);
}

static void the_wait_in_the_accept_queue_is_told_if_both_ends_were_seen(void)
{
	struct connection connection = { .opened = 1000, .accepted = 1700 };

	CHECK_EQUAL(accept_wait(&connection), 700);
	connection.accepted = 0;
	CHECK_EQUAL(accept_wait(&connection), 0);
	/* Taken out of the queue before its state had changed. */
	connection.accepted = 900;
	CHECK_EQUAL(accept_wait(&connection), 1);
	/* Open before the watch began. */
	connection.opened = 0;
	CHECK_EQUAL(accept_wait(&connection), 0);
}

int main(void)
{
	RUN(the_wait_in_the_accept_queue_is_told_if_both_ends_were_seen);
	RUN(a_connection_is_followed_while_calls_are_seen);
	RUN(an_opening_may_be_told_late);
	RUN(a_state_is_handled_once);
	RUN(storage_that_was_cleared_keeps_nothing);
	RUN(nothing_is_watched_once_the_handshake_is_complete);
	RUN(what_begins_a_connection_was_not_handled_if_nothing_is_kept);
	RUN(of_a_connection_from_before_the_first_change_is_handled);
	RUN(after_a_close_nothing_is_kept);
	RUN(the_side_that_closes_first_has_time_wait);
	RUN(both_sides_that_close_at_once_have_time_wait);
	RUN(a_reset_leaves_no_time_wait);
	RUN(a_close_with_unread_data_is_a_reset_from_this_side);
	RUN(the_kernel_waits_on_for_a_socket_that_is_closed);
	RUN(a_peer_that_no_longer_answers_is_a_timeout);
	RUN(who_closes_by_fin_or_reset_has_the_socket);
	RUN(a_fin_is_not_payload);
	RUN(a_round_trip_that_tcp_has_not_measured_is_none);
	RUN(application_data_is_never_less_than_nothing);
	RUN(who_says_first_that_it_closes_has_closed);
	RUN(a_reset_is_not_the_end_of_what_can_still_be_read);
	return summary();
}
