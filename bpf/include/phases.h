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
 * begins with the thread's last socket call or wake-up, at most LEAD_NS before. Of a new
 * process it begins with the call: the start of the process is no handshake's. A thread
 * that answers what another one has read was given that job: the whole time since its
 * wake-up or its last job counts, but none from before the read.
 */
#ifndef TLSPROF_PHASES_H
#define TLSPROF_PHASES_H

#include "exchange_time.h"
#include "maps.h"
#include "sampled.h"

#define THREADS_IN_PHASE 16384
#define GIVEN_UP 4096
#define EXCHANGES 32768 /* the agent's configuration may change it */

/* Of threads that are off the CPU. A hash, not task storage: 5.10 has none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_IN_PHASE);
	__type(key, __u32); /* thread id */
	__type(value, struct phase);
} parked_phases SEC(".maps");

/* Threads that left the CPU while something of them was timed, counted by their ids: where
 * it is 0, an arriving thread is not looked up. One count for all would have every thread of
 * the host looked up as long as one is in a handshake that blocks. */
#define PARKED_COUNTS 4096 /* a power of two */
__u32 threads_parked[PARKED_COUNTS] = {};

static __always_inline __u32 *parked_like(__u32 tid)
{
	return &threads_parked[tid & (PARKED_COUNTS - 1)];
}

/* A thread ends that may have come back to a CPU unseen: see sched_switch(). */
static __always_inline void forget_parked(__u32 tid)
{
	if (*parked_like(tid) && !bpf_map_delete_elem(&parked_phases, &tid))
		__sync_fetch_and_add(parked_like(tid), -1);
}

/* Connections whose TLS handshake is under way, or may begin. Not in the socket:
 * a phase ends where its socket is not at hand. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EXCHANGES);
	__type(key, __u64); /* the connection */
	__type(value, struct exchange);
} exchanges SEC(".maps");

/* Connections whose exchanges the agent removed because nothing had moved on them for a long
 * time: the kernel may have skipped the program at their end, see the agent's
 * kernel/sweep.rs. If such a connection continues, its handshake was not complete. The
 * oldest entries are evicted. */
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

/* What the current thread is at work on, if that is a handshake. */
static __always_inline struct phase *current_phase(struct timed *timed)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return timed->phase == tid ? &timed->at_work : NULL;
}

/* The connection whose handshake the current thread is at work on, 0 for none. */
static __always_inline __u64 current_phase_connection(void)
{
	struct timed *timed = timed_here();
	struct phase *phase = timed && timed->phase ? current_phase(timed) : NULL;

	return phase ? phase->connection : 0;
}

/*
 * Ends the handshake of a connection: one event. Two threads may do so at once, as
 * when one leaves the CPU and the other closes the socket: who removes the entry
 * sends.
 */
static __noinline void close_exchange(__u64 connection, struct exchange *exchange, __u64 now)
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

/* A stretch of work is over; `exchange`: of its connection, NULL if it has ended;
 * `idle`: because the thread waits for the peer. Returns the exchange if it goes on. */
static __always_inline struct exchange *add_phase(struct phase *phase, struct exchange *exchange,
						  bool idle, __u64 now)
{
	if (!exchange)
		return NULL;
	exchange_add(exchange, &phase->clock, exchange->tail, now);
	if (idle)
		exchange_idle(exchange);
	if (!exchange->event.outcome)
		return exchange;
	close_exchange(phase->connection, exchange, now);
	return NULL;
}

/* The current thread turns from its handshake to other work. Returns the exchange if the
 * handshake continues. */
static __noinline struct exchange *leave_phase(struct timed *timed, struct exchange *exchange,
					       bool idle, __u64 now)
{
	/* As long as `phase` names this thread, a preemption keeps `at_work` for it. */
	exchange = add_phase(&timed->at_work, exchange, idle, now);
	barrier();
	timed->phase = 0;
	/* It is later where the thread was preempted meanwhile. */
	if (timed->since < now)
		timed->since = now;
	/* What it does in this call was not begun before. */
	timed->before = timed->since;
	return exchange;
}

/* The same where it is not known whether it is at work on one, nor which. */
static __always_inline void end_phase(bool idle)
{
	struct timed *timed = timed_here();
	struct phase *phase = timed && timed->phase ? current_phase(timed) : NULL;
	__u64 connection;

	if (!phase)
		return;
	connection = phase->connection;
	leave_phase(timed, bpf_map_lookup_elem(&exchanges, &connection), idle, bpf_ktime_get_ns());
}

/* When the current thread began what led to its socket call; `read`: when another thread
 * read what this one answers, 0 if none did. */
static __always_inline __u64 begin_of_job(const struct timed *timed, __u64 now, __u64 read)
{
	if (timed->since > now)
		return timed->since; /* it was preempted since */
	if (read && timed->before)
		return timed->before > read ? timed->before : read;
	return clock_lead(timed->since, now);
}

static __noinline void begin_phase(__u64 connection, __u64 now, __u64 read)
{
	struct timed *timed = timed_here();
	struct phase *phase;

	if (!timed)
		return;
	phase = &timed->at_work;
	timed->keep_up = KEEP_UP;
	/* First, so that a preemption keeps `at_work` for this thread. */
	timed->phase = (__u32)bpf_get_current_pid_tgid();
	barrier();
	__builtin_memset(phase, 0, sizeof(*phase));
	phase->connection = connection;
	clock_begin(&phase->clock, begin_of_job(timed, now, read));
	claim_sample(phase->clock.began);
}

/* Whether the phase that the current thread has just begun may be more than handshake. */
static __always_inline void mark_tail(bool in_tail)
{
	struct timed *timed = timed_here();

	if (timed)
		timed->at_work.in_tail = in_tail;
}

#endif
