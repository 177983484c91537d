/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The on-CPU clock of a stretch of work on one thread, and why it stood still.
 * Scheduler switches start and stop it. Pure logic, unit-tested natively in
 * tests/bpf.
 */
#ifndef TLSPROF_CLOCK_H
#define TLSPROF_CLOCK_H

#include "kernel.h"
#include "contract.h"

struct clock {
	__u64 began;
	__u64 on_since; /* 0 while off the CPU */
	__u64 off_since;
	__u64 cpu; /* until on_since */
	__u64 wait[TLSPROF_WAIT_COUNT];
	__u8 off_reason; /* enum tlsprof_wait */
};

/* The longest lead of a stretch before its socket call. OpenSSL needs 20 to 60 us to
 * create a connection object and read; more may be other work. */
#define LEAD_NS 100000

/*
 * When what led to a socket call at `now` began: its thread has worked since then, 0 for not
 * known. No step at the limit, where all or nothing would count by chance: a new thread of
 * rustls takes 70 to 110 us.
 */
static inline __u64 clock_lead(__u64 since, __u64 now)
{
	if (!since)
		return now;
	return now - since <= LEAD_NS ? since : now - LEAD_NS;
}

static inline void clock_begin(struct clock *clock, __u64 now)
{
	clock->began = now;
	clock->on_since = now;
}

/* A program may be preempted between reading the time and using it. Its thread was then off
 * the CPU, and its clock was restarted after that time. */
static inline __u64 clock_now(const struct clock *clock, __u64 now)
{
	return clock->on_since > now ? clock->on_since : now;
}

/* Time on the CPU so far. */
static inline __u64 clock_cpu(const struct clock *clock, __u64 now)
{
	if (!clock->on_since)
		return clock->cpu;
	return clock->cpu + (clock_now(clock, now) - clock->on_since);
}

static inline void clock_off_cpu(struct clock *clock, __u64 now, __u8 reason)
{
	clock->cpu = clock_cpu(clock, now);
	clock->on_since = 0;
	clock->off_since = now;
	clock->off_reason = reason;
}

static inline void clock_on_cpu(struct clock *clock, __u64 now)
{
	if (clock->off_reason < TLSPROF_WAIT_COUNT)
		clock->wait[clock->off_reason] += now - clock->off_since;
	clock->on_since = now;
}

/* Adds a stretch that has just ended to its handshake: all but where on the CPU
 * its time went. */
static inline void clock_add_to(const struct clock *clock, struct tlsprof_handshake_event *event,
				__u64 now)
{
	event->calls++;
	event->in_call += clock_now(clock, now) - clock->began;
	for (int i = 0; i < TLSPROF_WAIT_COUNT; i++)
		event->wait[i] += clock->wait[i];
}

/* Of the handshakes that a library's probes time, the first of each 17 ms (2^24 ns) on each CPU is
 * timed on its socket as well: enough to compare the two, whatever the load; and a busy service
 * leaves a quiet one its share, as an allowance by the second does not. */
#define COMPARED_EVERY 24

/* Whether `now` is in another such window than the last one compared. */
static inline bool is_first_of_window(__u32 *last, __u64 now)
{
	__u32 window = now >> COMPARED_EVERY;

	if (*last == window)
		return false;
	*last = window;
	return true;
}

#endif
