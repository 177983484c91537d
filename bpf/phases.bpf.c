/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Handshakes as socket calls show them, and the threads that are at work on one.
 *
 * A thread is in the phase of a handshake from the socket call that moved its
 * bytes until the thread's next socket call, until it sleeps for anything but a
 * short lock, a disk or random numbers, or until it ends.
 * The time on the CPU in between is the handshake's. So no function of a TLS
 * library needs to be known.
 *
 * The call itself and what the library does before it are not after it: a phase
 * begins with the thread's last socket call or wake-up, if that is not long ago.
 */
#include "include/exchange.h"
#include "include/maps.h"

#define THREADS_IN_PHASE 16384
/* A phase begins at most so long before its socket call. Making a connection
 * object and reading takes OpenSSL 20 to 60 us; more may be other work. */
#define LEAD_NS 100000
#define GIVEN_UP 4096
#define EXCHANGES 32768 /* the agent's configuration may change it */

struct phase {
	__u64 connection;
	struct clock clock;
};

/* Hashes, not task storage: 5.10 has none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_IN_PHASE);
	__type(key, __u32); /* thread id */
	__type(value, struct phase);
} phases SEC(".maps");

/* Connections whose TLS handshake is under way, or may begin. Not in the socket:
 * a phase ends where its socket is not at hand. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EXCHANGES);
	__type(key, __u64); /* the connection */
	__type(value, struct exchange);
} exchanges SEC(".maps");

/* Connections whose exchanges the agent took away, because nothing had moved on them for
 * long: the kernel may have left out the program at their end, see the agent's
 * kernel/sweep.rs. If one goes on, its handshake was not completed. The oldest give way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GIVEN_UP);
	__type(key, __u64); /* the connection */
	__type(value, __u8);
} given_up SEC(".maps");

static __always_inline bool was_given_up(__u64 connection)
{
	return bpf_map_lookup_elem(&given_up, &connection);
}

/* The connection whose handshake a thread is at work on, 0 for none. */
static __always_inline __u64 phase_connection(__u32 tid)
{
	struct phase *phase = bpf_map_lookup_elem(&phases, &tid);

	return phase ? phase->connection : 0;
}

/*
 * Ends the handshake of a connection: one event. Two threads may do so at once, as
 * when one leaves the CPU and the other closes the socket: who removes the entry
 * sends.
 */
static __always_inline void close_exchange(__u64 connection, struct exchange *exchange, __u64 now)
{
	struct tlsprof_handshake_event *event;

	if (!exchange->began) {
		bpf_map_delete_elem(&exchanges, &connection);
		return;
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		if (!bpf_map_delete_elem(&exchanges, &connection))
			count_loss(TLSPROF_LOSS_EVENT_RING_FULL);
		return;
	}
	exchange_end(exchange, event, connection, now);
	if (bpf_map_delete_elem(&exchanges, &connection))
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(event, wakeup_flags());
}

/* The thread turns to something else; `idle`: because it waits for the peer. */
static __always_inline void leave_phase(__u32 tid, struct phase *phase, bool idle, __u64 now)
{
	__u64 connection = phase->connection;
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	if (exchange) {
		exchange_add(exchange, &phase->clock, exchange->tail, now);
		if (idle)
			exchange_idle(exchange);
		if (exchange->event.outcome)
			close_exchange(connection, exchange, now);
	}
	bpf_map_delete_elem(&phases, &tid);
}

/* The phase of the current thread, if it is in one. */
static __always_inline struct phase *current_phase(struct timed *timed)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return timed->phase == tid ? bpf_map_lookup_elem(&phases, &tid) : NULL;
}

/* The current thread does something else than the handshake that it was at work
 * on. Returns the connection of that, 0 for none. */
static __always_inline __u64 end_phase(bool idle)
{
	struct timed *timed = timed_here();
	struct phase *phase = timed ? current_phase(timed) : NULL;
	__u64 connection, now;

	if (!phase)
		return 0;
	connection = phase->connection;
	now = bpf_ktime_get_ns();
	timed->phase = 0;
	timed->since = now;
	leave_phase((__u32)bpf_get_current_pid_tgid(), phase, idle, now);
	return connection;
}

static __always_inline void begin_phase(__u64 connection)
{
	struct timed *timed = timed_here();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct phase phase = { .connection = connection };
	__u64 now = bpf_ktime_get_ns();

	if (!timed)
		return;
	timed->keep_up = KEEP_UP;
	clock_begin(&phase.clock, now - timed->since <= LEAD_NS ? timed->since : now);
	if (bpf_map_update_elem(&phases, &tid, &phase, BPF_ANY))
		count_loss(TLSPROF_LOSS_THREAD_TABLE_FULL);
	else
		timed->phase = tid;
}
