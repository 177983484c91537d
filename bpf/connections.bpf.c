/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP connections: who has them, how long, how many turns, who closes them, and
 * which of them leave a TIME_WAIT bucket behind. The state of each lies in its
 * socket and is freed with it. No address is kept, see remote.h.
 *
 * The owner is the process that connects, or the first that reads or writes;
 * state changes mostly run in softirq, where the current task is anybody. Only
 * two of them are always made by a task that has the socket: a close that sends
 * FIN (net/ipv4/tcp.c, tcp_close_state()). It is the owner where nobody read or
 * wrote before; after a reset, the task that destroys the socket is.
 */
#include "include/connection.h"
#include "include/maps.h"
#include "include/remote.h"

#define IPPROTO_TCP 6 /* include/uapi/linux/in.h */

/* Socket-local storage: freed with its socket, and bounded by nothing else. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* In its place where there is none, see connections_by_address; the agent sets its
 * size then. Preallocated, as `calls` is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct connection);
} addresses SEC(".maps");

static const struct connection new_connection = {};

static __always_inline struct connection *find_connection(struct sock *sk)
{
	__u64 address = (__u64)sk;

	if (connections_by_address)
		return bpf_map_lookup_elem(&addresses, &address);
	return bpf_sk_storage_get(&connections, sk, NULL, 0);
}

static __always_inline struct connection *find_or_add_connection(struct sock *sk)
{
	__u64 address = (__u64)sk;

	if (!connections_by_address)
		return bpf_sk_storage_get(&connections, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	bpf_map_update_elem(&addresses, &address, &new_connection, BPF_NOEXIST);
	return bpf_map_lookup_elem(&addresses, &address);
}

static __always_inline void forget_connection(struct sock *sk)
{
	__u64 address = (__u64)sk;

	if (connections_by_address)
		bpf_map_delete_elem(&addresses, &address);
	else
		bpf_sk_storage_delete(&connections, sk);
}

/* Random where the kernel's own number cannot be asked for: a counter would have to be
 * added to and read at once, which 5.10 cannot do. 64 bits do not repeat. */
static __always_inline __u64 new_id(struct sock *sk)
{
	if (connections_by_address)
		return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	return bpf_get_socket_cookie(sk);
}

static __noinline struct connection *create_connection(struct sock *sk)
{
	struct connection *connection = find_or_add_connection(sk);

	if (!connection)
		count_loss(TLSPROF_LOSS_CONNECTION_NO_MEMORY);
	else if (!connection->id)
		connection->id = new_id(sk);
	return connection;
}

/* The socket is new, whatever is known of another at its address. */
static __always_inline void begin_connection(struct sock *sk)
{
	if (connections_by_address)
		forget_connection(sk);
}

static __always_inline void send_opened(struct connection *connection)
{
	struct tlsprof_connection_event event = {};

	connection_describe(connection, &event);
	event.header.kind = TLSPROF_EVENT_CONNECTION_OPENED;
	event.header.time = connection->opened;
	send_event(&event, sizeof(event));
}

/* The current task is the owner. Sockets of the kernel itself have none. */
static __noinline void claim(struct connection *connection)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return;
	connection->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(connection->comm, sizeof(connection->comm));
	if (connection->opened)
		send_opened(connection);
}

static __always_inline void handle_connect(struct sock *sk)
{
	struct connection *connection = create_connection(sk);

	if (!connection)
		return;
	connection->state = BPF_TCP_SYN_SENT;
	connection->role = TLSPROF_ROLE_CLIENT;
	connection->remote = remote_endpoint(sk);
	connection->local_ports = count_local_ports(sk);
	claim(connection);
}

/* The socket of a new connection to a server; its TCP handshake has come to its end. It has no
 * id yet: up to 6.12 at least the kernel's number of it is still the listening socket's. */
static __always_inline void handle_request(struct sock *sk, int old)
{
	struct connection *connection;

	/* Else both sides connect to each other. */
	if (old != BPF_TCP_SYN_SENT)
		begin_connection(sk);
	connection = find_or_add_connection(sk);
	if (connection)
		connection->state = BPF_TCP_SYN_RECV;
}

static __always_inline void handle_open(struct sock *sk)
{
	struct connection *connection = create_connection(sk);

	if (!connection)
		return;
	connection->state = BPF_TCP_ESTABLISHED;
	connection->opened = bpf_ktime_get_ns();
	connection->port = sk->__sk_common.skc_num;
	if (!connection->role)
		connection->role = TLSPROF_ROLE_SERVER;
	if (connection->pid)
		send_opened(connection);
}

static __always_inline void send_closed(struct sock *sk, struct connection *connection)
{
	struct tlsprof_connection_event event = {};
	struct tcp_sock *tcp = (void *)sk;
	__u64 now = bpf_ktime_get_ns();

	connection_describe(connection, &event);
	event.header.kind = TLSPROF_EVENT_CONNECTION_CLOSED;
	event.header.time = now;
	event.seen_open = connection->opened != 0;
	event.duration = connection->opened ? now - connection->opened : 0;
	event.bytes_received =
		payload_received(BPF_CORE_READ(tcp, bytes_received), sk->__sk_common.skc_flags);
	event.bytes_sent = BPF_CORE_READ(tcp, bytes_sent) - BPF_CORE_READ(tcp, bytes_retrans);
	event.segment = BPF_CORE_READ(tcp, mss_cache);
	event.round_trip = round_trip(BPF_CORE_READ(tcp, rtt_min.s[0].v));
	if (connection->tls == TLSPROF_TLS_ESTABLISHED) {
		event.application_received =
			bytes_after(event.bytes_received, connection->handshake_received);
		event.application_sent = bytes_after(event.bytes_sent, connection->handshake_sent);
	}
	send_event(&event, sizeof(event));
}

/* The owner gives the connection up: so it does its handshake, if that goes on. */
static __always_inline void end_handshake(struct connection *connection)
{
	__u64 id = connection->id;
	bool was_open = connection->watch == WATCH_OPEN;
	struct exchange *exchange;

	if (connection->watch == WATCH_NEW)
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
	forget_connection(sk);
}

/* Of one that outlived its reset: the current task closes it, or the socket that it was to
 * be accepted from, or connects it again. */
static __always_inline void end_outlived(struct sock *sk)
{
	struct connection *connection = find_connection(sk);

	if (!connection || connection->state != BPF_TCP_CLOSE)
		return;
	if (!connection->pid)
		claim(connection);
	end_connection(sk, connection);
}

static __always_inline void handle_closing(struct sock *sk, int old, int new)
{
	struct socket_end end = { .error = sk->sk_err,
				  .linger2 = BPF_CORE_READ((struct tcp_sock *)sk, linger2),
				  .flags = sk->__sk_common.skc_flags };
	struct connection *connection = find_connection(sk);

	/* One that was open before the watch began shows up here at the latest. */
	if (!connection && old == BPF_TCP_ESTABLISHED)
		connection = create_connection(sk);
	if (!connection)
		return;
	if (in_states(old, 1U << BPF_TCP_SYN_SENT | 1U << BPF_TCP_SYN_RECV)) {
		forget_connection(sk); /* it never was open */
		return;
	}
	connection->state = new;
	connection_step(connection, old, new, &end);
	if (!connection->pid && in_states(new, 1U << BPF_TCP_FIN_WAIT1 | 1U << BPF_TCP_LAST_ACK))
		claim(connection);
	/* What the peer sent before its end is still to be read. */
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
		end_outlived(sk);
		begin_connection(sk);
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

/* A server answers, or still makes tickets, see exchange_tail(). */
static __always_inline struct exchange *follow_tail(struct exchange *exchange, struct timed *timed,
						    const struct socket_call *call)
{
	struct clock *clock = &timed->at_work.clock;
	__u64 now = clock_now(clock, call->time);
	__u8 before = exchange->tail;
	bool one_record = before == TAIL_NONE && is_one_record(call, CONTENT_APPLICATION_DATA);
	bool goes_on = exchange_tail(exchange, call->direction, call->length, one_record);

	/* What was done until now belongs to the state before. */
	exchange_add(exchange, clock, before, now);
	__builtin_memset(clock, 0, sizeof(*clock));
	clock_begin(clock, now);
	return goes_on ? exchange : leave_phase(timed, exchange, call->length <= 0, now);
}

/*
 * A socket call ends what its thread was at work on, but for one that found
 * nothing more to read on the connection whose peer waits for an answer: some
 * servers read all there is before they begin. Returns the exchange of that work if
 * it is the one of the call's connection and goes on.
 */
static __always_inline struct exchange *
leave_work(const struct socket_call *call, struct timed *timed, const struct connection *connection)
{
	__u64 id = timed->at_work.connection;
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &id);
	bool nothing = call->length <= 0;

	if (!exchange || !connection || connection->id != id) {
		leave_phase(timed, exchange, nothing, call->time);
		return NULL;
	}
	if (exchange->request_came)
		return follow_tail(exchange, timed, call);
	if (nothing && exchange->unanswered && exchange->stage == STAGE_HANDSHAKE)
		return exchange;
	if (call->direction == TLSPROF_DIRECTION_OUT && exchange->stage == STAGE_ENDING &&
	    exchange_may_refuse(exchange, call->length) &&
	    is_one_record(call, CONTENT_APPLICATION_DATA))
		exchange->event.outcome = TLSPROF_OUTCOME_FAILED;
	return leave_phase(timed, exchange, nothing, call->time);
}

/* How many bytes the call moved; more where they are as many as an alert has, but are
 * none. */
static __noinline __u32 data_length(const struct connection *connection,
				    const struct socket_call *call)
{
	return call->length + !is_one_record(call, connection->alert_type);
}

static __always_inline bool is_open(struct sock *sk)
{
	const unsigned int not_open = 1U << BPF_TCP_CLOSE | 1U << BPF_TCP_SYN_SENT |
				      1U << BPF_TCP_SYN_RECV;
	__u8 state = connections_by_address ? BPF_CORE_READ(sk, __sk_common.skc_state)
					    : sk->__sk_common.skc_state;

	return !in_states(state & 15, not_open);
}

/* The current thread comes from a socket call, of whatever family. Runs at every one
 * of the host: leaves at once what is no TCP data. */
static __always_inline void handle_call(struct socket_call *call)
{
	struct timed *timed = timed_here();
	bool is_data = call->tcp && call->length >= 0;
	struct connection *connection;
	struct exchange *worked_on = NULL;
	__u32 length = call->length;
	bool at_work;

	if (!timed)
		return;
	at_work = timed->phase && current_phase(timed);
	if (!at_work && (call->length <= 0 || call->direction == TLSPROF_DIRECTION_OUT))
		keep_up(timed);
	if (!at_work && !is_data)
		return;
	connection = call->tcp ? find_connection(call->sock) : NULL;
	if (at_work) {
		call->time = bpf_ktime_get_ns();
		worked_on = leave_work(call, timed, connection);
	}
	if (!is_data)
		return;
	if (!call->length) {
		if (connection && call->direction == TLSPROF_DIRECTION_IN)
			connection->peer_closed = 1;
		return;
	}
	if ((!connection || !connection->id) && is_open(call->sock))
		connection = create_connection(call->sock);
	if (!connection || !connection->id)
		return;
	if (!connection->pid)
		claim(connection);
	if (!connection->pid)
		connection->watch =
			WATCH_OVER; /* the kernel's own: it has no buffers of a process */
	if (timed->call)
		join_call(connection->id);
	if (connection->watch != WATCH_OVER && watch(connection, call, worked_on))
		return;
	if (length == connection->alert_length)
		length = data_length(connection, call);
	connection_data(connection, call->direction, length);
}

/* A look at data that stays where it is. */
static __always_inline void handle_look(void)
{
	struct timed *timed = timed_here();

	if (timed && !timed->phase)
		keep_up(timed);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state, struct sock *sk, int old, int new)
{
	if (sk->sk_protocol == IPPROTO_TCP)
		handle_state(sk, old, new);
	return 0;
}

/*
 * The same once more. From 6.1 on (kernel commit 05b24ff9b2cf) the kernel leaves a program
 * out on a CPU that is inside of it. A close is interrupted there by packets of others,
 * which change the states of their sockets: that is one change of a hundred where many
 * come. This program is another one, and left out only where a change comes while it runs
 * itself: then the first is not inside.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state_left_out, struct sock *sk, int old, int new)
{
	if (sk->sk_protocol != IPPROTO_TCP || state_was_handled(find_connection(sk), old, new))
		return 0;
	count_hit(TLSPROF_HIT_STOOD_IN);
	handle_state(sk, old, new);
	return 0;
}

/* The last that is heard of a socket; its storage is freed after that. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_destroyed, struct sock *sk)
{
	end_outlived(sk);
	return 0;
}
