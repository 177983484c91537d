/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP connections: their owners, lifetimes and turns, the side that closes them, and
 * whether they leave a TIME_WAIT bucket. Where the state of each is kept: see
 * include/connections.h. No address is kept, see remote.h.
 *
 * The owner is the process that connects, or the first that reads or writes;
 * state changes mostly run in softirq, where the current task is anybody. Where
 * nobody read or wrote before, the owner is the task that closes, as is_by_task()
 * tells; after a peer's reset, the task that destroys the socket.
 */
#include "include/connections.h"
#include "include/phases.h"
#include "include/remote.h"

static __always_inline void handle_connect(struct sock *sk)
{
	struct connection *connection = with_id(sk, begin_connection(sk));

	if (!connection)
		return;
	connection->state = BPF_TCP_SYN_SENT;
	connection->role = TLSPROF_ROLE_CLIENT;
	connection->remote = remote_endpoint(sk);
	connection->local_ports = count_local_ports(sk);
	claim(connection);
}

/* The socket of a new connection to a server; its TCP handshake has come to its end. It has no
 * id yet: up to 6.12 at least the kernel's number of it is still the listening socket's. Made
 * here, before any other CPU has the socket: of two that make its storage at once, one fails. */
static __always_inline void handle_request(struct sock *sk, int old)
{
	/* Both sides connect to each other, or it is new. */
	struct connection *connection = old == BPF_TCP_SYN_SENT ? find_connection(sk)
								: begin_connection(sk);

	if (connection)
		connection->state = BPF_TCP_SYN_RECV;
}

static __always_inline void handle_open(struct sock *sk)
{
	struct connection *connection = with_id(sk, find_connection(sk) ?: add_connection(sk));
	struct tlsprof_control value = current_control();

	if (!connection)
		return;
	/* It was new while calls were not seen: if they are by now, it is not followed all the same. */
	if (connection->by_address && !connections_by_address)
		value.calls_generation |= 1;
	connection_open(connection, bpf_ktime_get_ns(), &value);
	connection->port = sk->__sk_common.skc_num;
	if (connection->pid)
		send_opened(connection);
}

static __always_inline void send_closed(struct sock *sk, struct connection *connection)
{
	struct tlsprof_connection_event event = {};
	struct tlsprof_control value = current_control();
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__u64 now = bpf_ktime_get_ns();

	if (!tcp)
		return;
	connection_describe(connection, &event);
	event.header.kind = TLSPROF_EVENT_CONNECTION_CLOSED;
	event.header.time = now;
	event.seen_open = connection->opened != 0;
	event.untold = connection->untold && connection->pid;
	event.followed = connection_is_followed(connection, &value);
	event.duration = connection->opened ? now - connection->opened : 0;
	event.bytes_received = payload_received(tcp->bytes_received, sk->__sk_common.skc_flags);
	event.bytes_sent = tcp->bytes_sent - tcp->bytes_retrans;
	event.segment = tcp->mss_cache;
	event.round_trip = round_trip(tcp->rtt_min.s[0].v);
	if (connection->tls == TLSPROF_TLS_ESTABLISHED) {
		event.application_received =
			bytes_after(event.bytes_received, connection->handshake_received);
		event.application_sent = bytes_after(event.bytes_sent, connection->handshake_sent);
	}
	send_event(&event, sizeof(event));
}

/* The owner closes the connection, and with it abandons a handshake in progress. */
static __always_inline void end_handshake(struct connection *connection)
{
	__u64 id = connection->id;
	bool was_open = connection->watch == WATCH_OPEN;
	struct exchange *exchange;

	if (connection->watch == WATCH_NEW || connection->watch == WATCH_OVER)
		return;
	connection->watch = WATCH_OVER;
	if (current_phase_connection() == id)
		end_phase(false);
	exchange = bpf_map_lookup_elem(&exchanges, &id);
	if (exchange)
		close_exchange(id, exchange, bpf_ktime_get_ns());
	else if (was_open && connection->tls == TLSPROF_TLS_HANDSHAKE && !was_given_up(id))
		connection->tls = TLSPROF_TLS_ESTABLISHED; /* found complete by leave_phase() */
}

static __always_inline void end_connection(struct sock *sk, struct connection *connection)
{
	end_handshake(connection);
	send_closed(sk, connection);
	/* The socket may connect again. */
	forget_connection(sk, connection);
}

/* Ends a connection if it was kept after its reset: the current task closes it or its listening
 * socket, or connects it again. */
static __always_inline bool end_outlived(struct sock *sk, struct connection *connection)
{
	if (!connection || connection->state != BPF_TCP_CLOSE)
		return false;
	if (!connection->pid)
		claim(connection);
	end_connection(sk, connection);
	return true;
}

/* The socket is destroyed, or connects again. */
static __always_inline void leave_socket(struct sock *sk)
{
	struct connection *connection = find_connection(sk);

	if (connection && !end_outlived(sk, connection))
		forget_connection(sk, connection);
}

/* A socket that leaves the state `old`. */
static __always_inline struct socket_end end_of(struct sock *sk, int old)
{
	struct socket_end end = {
		.error = sk->sk_err,
		.flags = sk->__sk_common.skc_flags,
		.in_call = sk->sk_lock.owned,
	};
	struct tcp_sock *tcp;

	if (old == BPF_TCP_FIN_WAIT2) {
		tcp = bpf_skc_to_tcp_sock(sk);
		end.linger2 = tcp ? tcp->linger2 : 0;
	}
	return end;
}

static __always_inline void handle_closing(struct sock *sk, int old, int new)
{
	struct socket_end end = end_of(sk, old);
	struct connection *connection = find_connection(sk);

	/* A connection from before the attach is first seen here at the latest. */
	if (!connection && old == BPF_TCP_ESTABLISHED)
		connection = create_connection(sk);
	if (!connection)
		return;
	if (in_states(old, 1U << BPF_TCP_SYN_SENT | 1U << BPF_TCP_SYN_RECV)) {
		forget_connection(sk, connection); /* it never was open */
		return;
	}
	connection->state = new;
	connection_step(connection, old, new, &end);
	if (!connection->pid && is_by_task(new, &end))
		claim(connection);
	/* The process may still read what the peer sent before the end. */
	if (new == BPF_TCP_CLOSE && !outlives_reset(connection, &end))
		end_connection(sk, connection);
	else if (!in_states(new, 1U << BPF_TCP_CLOSE_WAIT | 1U << BPF_TCP_CLOSE))
		end_handshake(connection);
}

/* One of the states in between. */
static __always_inline void handle_passing(struct sock *sk, int new)
{
	struct connection *connection = find_connection(sk);

	if (connection)
		connection->state = new;
}

static __always_inline void handle_state(struct sock *sk, int old, int new)
{
	switch (new) {
	case BPF_TCP_SYN_SENT:
		leave_socket(sk);
		handle_connect(sk);
		break;
	case BPF_TCP_SYN_RECV:
		handle_request(sk, old);
		break;
	case BPF_TCP_ESTABLISHED:
		handle_open(sk);
		break;
	case BPF_TCP_FIN_WAIT2:
	case BPF_TCP_CLOSING:
		handle_passing(sk, new);
		break;
	case BPF_TCP_FIN_WAIT1:
	case BPF_TCP_CLOSE_WAIT:
	case BPF_TCP_LAST_ACK:
	case BPF_TCP_CLOSE:
		handle_closing(sk, old, new);
		break;
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state, struct sock *sk, int old, int new)
{
	if (sk->sk_protocol == IPPROTO_TCP)
		RUN(TLSPROF_RUN_STATE, handle_state(sk, old, new));
	return 0;
}

static __always_inline void handle_state_left_out(struct sock *sk, int old, int new)
{
	if (state_was_handled(find_connection(sk), old, new))
		return;
	count_hit(TLSPROF_HIT_STOOD_IN);
	handle_state(sk, old, new);
}

/*
 * A second copy of the same program. From 6.1 on (kernel commit 05b24ff9b2cf) the kernel skips
 * a program on a CPU that is already running it. Packets of other connections interrupt a close
 * there and change the states of their sockets: one change in a hundred under load. The kernel
 * skips this copy only while this copy runs, and then the first one does not.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state_left_out, struct sock *sk, int old, int new)
{
	if (sk->sk_protocol == IPPROTO_TCP)
		RUN(TLSPROF_RUN_STATE, handle_state_left_out(sk, old, new));
	return 0;
}

/* The last event of a socket; its storage is freed afterwards, and nothing else may keep what is
 * known of a connection whose end was skipped. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_destroyed, struct sock *sk)
{
	RUN(TLSPROF_RUN_STATE, leave_socket(sk));
	return 0;
}
