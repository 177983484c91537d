/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * One TCP connection from ESTABLISHED to its end: its turns and how it ended.
 * Pure logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_CONNECTION_H
#define TLSPROF_CONNECTION_H

#include "kernel.h"
#include "contract.h"
#include "records.h"
#include "socket_end.h"

/* Whether the bytes of a connection are looked at. */
enum watch {
	WATCH_NEW = 0,  /* nothing has moved */
	WATCH_OPEN = 1, /* its TLS handshake is under way, or may begin: see `exchanges` */
	/* Its TLS handshake is complete; the thread that read its end may still be at work on it. */
	WATCH_ENDING = 2,
	WATCH_OVER = 3,
};

static inline bool is_watched(__u8 watch)
{
	return watch < WATCH_ENDING;
}

struct connection {
	__u64 id;       /* 0: there is none, or it is not open yet, see handle_request() */
	__u64 opened;   /* 0: it was open before the watch began, or is not open yet */
	__u64 accepted; /* 0: it was not accepted, or that was not seen, see accept.bpf.c */
	__u32 pid;      /* the owner, 0 until it is known */
	__u32 turns;
	char comm[TLSPROF_COMM_LEN];
	__u16 port;
	__u8 role; /* enum tlsprof_role, 0 for a connection from before */
	__u8 last; /* enum tlsprof_direction of the data that moved last */
	__u8 closed_by;
	__u8 reset;
	__u8 time_wait;
	__u8 watch;       /* enum watch */
	__u8 tls;         /* enum tlsprof_tls */
	__u8 peer_closed; /* and the owner has read that */
	__u8 state;       /* BPF_TCP_*, the last that tcp_state() or its stand-in handled */
	/* Alerts after the handshake, see follow_alerts(). */
	__u8 alert_length;  /* of a record with one, header included; 0: no TLS, or not known */
	__u8 alert_type;    /* enum content_type: TLS 1.3 hides that it is an alert */
	__u8 piece;         /* bytes of the last call, or of a header and its body; up to 255 */
	__u8 only_alerts;   /* nothing else has moved in this direction, but maybe `piece` */
	__u8 in_doubt;      /* the request of the last turn may have been an alert */
	__u8 answered;      /* its answer has an alert's length, and is none */
	__u8 notified;      /* enum tlsprof_closer: whose close_notify came first, 0 for none */
	__u8 may_be_answer; /* that may have been an answer of two bytes */
	__u8 closing;       /* by the peer, during a call, see connection_step() */
	/* Bytes up to the end of the TLS handshake. */
	__u32 handshake_received;
	__u32 handshake_sent;
	__u32 local_ports;      /* ephemeral ports to choose from, of a client */
	__u64 remote;           /* its remote endpoint, see remote.h */
	__u32 calls_generation; /* of tlsprof_control, when it was opened */
	/* 1: no event has told its opening, as it had no owner and calls were not seen. The first
	 * call that is seen tells it, or its end: most connections send an event less. */
	__u8 untold;
	__u8 by_address; /* it is in `addresses`, not in its socket's storage */
};

/* Whether there is one: where it is kept is cleared at its end, and not always taken away. */
static inline bool is_kept(const struct connection *connection)
{
	return connection->id || connection->state;
}

/*
 * Whether a state change was already handled, judged by the stored connection (NULL: none). No
 * state occurs twice before CLOSE, which removes the connection. A connection from before the
 * attach is stored from its first change on; if that is CLOSE, it is dropped, because it may
 * have been handled.
 */
static inline bool state_was_handled(const struct connection *connection, int old, int new)
{
	if (connection)
		return connection->state == new;
	switch (new) {
	case BPF_TCP_SYN_SENT:
	case BPF_TCP_SYN_RECV:
	case BPF_TCP_ESTABLISHED:
		return false;
	default:
		return old != BPF_TCP_ESTABLISHED || new == BPF_TCP_CLOSE;
	}
}

/* Which direction answers. */
static inline __u8 answers(const struct connection *connection)
{
	return connection->role == TLSPROF_ROLE_CLIENT ? TLSPROF_DIRECTION_IN
						       : TLSPROF_DIRECTION_OUT;
}

/* Who sends in this direction. */
static inline __u8 sender(__u8 direction)
{
	return direction == TLSPROF_DIRECTION_IN ? TLSPROF_CLOSER_REMOTE : TLSPROF_CLOSER_LOCAL;
}

/*
 * Who has closed, where `ended` is the first who ends the TCP connection. An answer as long as
 * an alert was one if who sent it did not end the connection: a close_notify comes before
 * the FIN (RFC 8446, 6.1).
 */
static inline __u8 first_closer(struct connection *connection, __u8 ended)
{
	if (ended == TLSPROF_CLOSER_TIMEOUT)
		return ended;
	if (ended != sender(answers(connection))) {
		connection->answered = connection->last == answers(connection);
		if (connection->may_be_answer)
			return ended;
	}
	return connection->notified ?: ended;
}

/* What the call has moved during which the peer closed came before that; it is known now. */
static inline void connection_settle(struct connection *connection)
{
	if (!connection->closing)
		return;
	connection->closing = 0;
	connection->closed_by = first_closer(connection, TLSPROF_CLOSER_REMOTE);
}

/*
 * A state on the way from ESTABLISHED to CLOSE. The first step shows who closed, unless a
 * close_notify came before it: its sender sends nothing more, and may wait for the peer's
 * FIN. A peer that is quick closes while its answer's call is still in the kernel: its FIN
 * waits in the socket's backlog and is handled before the call returns (release_sock()), and
 * so before its data is counted.
 */
static inline void connection_step(struct connection *connection, int old, int new,
				   const struct socket_end *end)
{
	__u8 closer = TLSPROF_CLOSER_LOCAL;

	if (new == BPF_TCP_CLOSE) {
		closer = closer_of_error(end->error);
		connection->time_wait = makes_time_wait(old, end);
		connection->reset = end->error != TLSPROF_ETIMEDOUT && !connection->time_wait &&
				    !(old == BPF_TCP_LAST_ACK && !end->error);
	} else if (new == BPF_TCP_CLOSE_WAIT) {
		closer = TLSPROF_CLOSER_REMOTE;
	}
	connection_settle(connection);
	if (connection->closed_by)
		return;
	if (new == BPF_TCP_CLOSE_WAIT && end->in_call)
		connection->closing = 1;
	else
		connection->closed_by = first_closer(connection, closer);
}

/*
 * The peer has reset a connection that a process still has, or that waits to be
 * accepted: what came before can still be read (tcp_recvmsg() looks at the receive queue
 * before the error). So the connection goes on until a process closes it, if that may
 * still show how its handshake ended or who has it.
 */
static inline bool outlives_reset(const struct connection *connection, const struct socket_end *end)
{
	bool unowned = !connection->pid && connection->role == TLSPROF_ROLE_SERVER;

	if (!end->error || (end->flags & SOCK_DEAD_BIT))
		return false;
	return connection->watch == WATCH_OPEN || unowned;
}

static inline bool ends_with_alert(const struct connection *connection)
{
	return connection->alert_length && connection->piece == connection->alert_length;
}

static inline bool is_only_alerts(const struct connection *connection)
{
	return connection->only_alerts && ends_with_alert(connection);
}

/* All of an answer so far has an alert's length, and its request had not. */
static inline bool is_answer_alone(const struct connection *connection, __u8 direction)
{
	return connection->turns && direction == answers(connection) && !connection->in_doubt &&
	       is_only_alerts(connection);
}

/*
 * An alert is recognised by the length of its record, which the handshake has shown, see
 * exchange_alert_length(). A library reads or writes it by one call, or reads its header
 * first. What follows shows whether it was something else of that length: an alert after the
 * handshake is the last in its direction, but for another one.
 */
static inline void follow_alerts(struct connection *connection, __u8 direction, __u32 length)
{
	if (connection->piece == RECORD_HEADER &&
	    length + RECORD_HEADER == connection->alert_length) {
		connection->piece = connection->alert_length;
	} else {
		if (connection->piece && !ends_with_alert(connection))
			connection->only_alerts = 0;
		connection->piece = length < 255 ? length : 255;
	}
	if (!ends_with_alert(connection)) {
		if (connection->notified == sender(direction))
			connection->notified = 0;
	} else if (!connection->notified) {
		connection->notified = sender(direction);
		connection->may_be_answer = is_answer_alone(connection, direction);
	} else if (is_answer_alone(connection, direction)) {
		connection->answered = 1; /* the first of two: nobody says twice that it closes */
	}
}

/* Data begins to move in the other direction. Who has sent close_notify sends nothing more,
 * so that an earlier one was data. */
static inline void turn_over(struct connection *connection, __u8 direction)
{
	bool only_alerts = is_only_alerts(connection);
	bool is_answer = connection->last && direction == answers(connection);

	if (connection->notified == sender(direction)) {
		connection->notified = only_alerts ? sender(connection->last) : 0;
		connection->may_be_answer = 0;
	}
	connection->turns += is_answer;
	connection->in_doubt = is_answer && only_alerts;
	connection->answered = 0;
	connection->last = direction;
	connection->only_alerts = 1;
	connection->piece = 0;
}

/*
 * A turn is a request and its response. It is counted when the response begins: a server's
 * first write after a read, a client's first read after a write. So N sequential requests are N
 * turns on both sides, whichever side speaks first (SMTP) and however many calls a message
 * needs. Alerts are not turns: see connection_turns().
 */
static inline void connection_data(struct connection *connection, __u8 direction, __u32 length)
{
	if (connection->last != direction)
		turn_over(connection, direction);
	if (connection->alert_length)
		follow_alerts(connection, direction, length);
	connection_settle(connection);
}

/* The owner has read that the peer has closed. */
static inline void connection_at_end(struct connection *connection)
{
	connection->peer_closed = 1;
	connection_settle(connection);
}

/* The last turn is none if its request or its answer was an alert: had it been anything
 * else of that length, more would have come, or the peer would have ended the connection. */
static inline __u32 connection_turns(const struct connection *connection)
{
	bool is_alert = is_only_alerts(connection) && !connection->answered;

	if (connection->tls == TLSPROF_TLS_HANDSHAKE)
		return 0;
	if (!connection->turns || connection->last != answers(connection))
		return connection->turns;
	return connection->turns - (connection->in_doubt || is_alert);
}

/* The TLS handshake has completed; its messages were no turns. */
static inline void connection_established(struct connection *connection, __u8 alert_type,
					  __u8 alert_length)
{
	connection->tls = TLSPROF_TLS_ESTABLISHED;
	connection->watch = WATCH_ENDING;
	connection->turns = 0;
	connection->last = TLSPROF_DIRECTION_NONE;
	connection->alert_type = alert_type;
	connection->alert_length = alert_length;
}

/*
 * How long it waited in the accept queue, at least 1; 0 if that was not seen. A thread
 * that looks for connections all the time may get one before the state is ESTABLISHED.
 */
static inline __u64 accept_wait(const struct connection *connection)
{
	if (!connection->opened || !connection->accepted)
		return 0;
	return connection->accepted > connection->opened ? connection->accepted - connection->opened
							 : 1;
}

/* The connection is open. While socket calls are not seen, its data is not inspected. */
static inline void connection_open(struct connection *connection, __u64 now,
				   const struct tlsprof_control *control)
{
	connection->state = BPF_TCP_ESTABLISHED;
	connection->calls_generation = control->calls_generation;
	if (control->calls_generation & 1) {
		connection->watch = WATCH_OVER;
		connection->untold = !connection->pid;
	}
	/* Last: a thread that already reads may ask what is known. */
	connection->opened = now;
	if (!connection->role)
		connection->role = TLSPROF_ROLE_SERVER;
}

/* Whether its socket calls were seen from its opening until now. */
static inline bool connection_is_followed(const struct connection *connection,
					  const struct tlsprof_control *control)
{
	__u32 generation = connection->calls_generation;

	return !(generation & 1) && generation == control->calls_generation;
}

/* What is known of it at any time. */
static inline void connection_describe(const struct connection *connection,
				       struct tlsprof_connection_event *event)
{
	event->header.pid = connection->pid;
	event->connection = connection->id;
	event->followed = !(connection->calls_generation & 1);
	event->turns = connection_turns(connection);
	event->tls = connection->tls;
	event->accept_wait = accept_wait(connection);
	event->remote = connection->remote;
	event->local_ports = connection->local_ports;
	event->port = connection->port;
	event->role = connection->role;
	event->closed_by = connection->closed_by;
	event->reset = connection->reset;
	event->time_wait = connection->time_wait;
	__builtin_memcpy(event->comm, connection->comm, sizeof(event->comm));
}

#endif
