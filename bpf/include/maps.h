/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Maps that more than one program file uses, and the counting of losses. */
#ifndef TLSPROF_MAPS_H
#define TLSPROF_MAPS_H

#include "clock.h"
#include "runs.h"

#define EVENT_RING_BYTES (8 * 1024 * 1024)
/* Wakes the agent when this much is waiting; otherwise it polls. */
#define EVENT_WAKEUP_BYTES (EVENT_RING_BYTES / 4)

/* Set by the agent where the kernel has no socket-local storage for these programs, and
 * where the hook on socket calls is sys_exit (sockets.bpf.c), which has no pointer that
 * the verifier would take for a socket's: connections are kept by the addresses of their
 * sockets then. The branch that is not taken is not verified. */
const volatile __u8 connections_by_address = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENT_RING_BYTES);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLSPROF_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlsprof_control);
} control SEC(".maps");

static __always_inline struct tlsprof_control current_control(void)
{
	__u32 zero = 0;
	struct tlsprof_control *value = bpf_map_lookup_elem(&control, &zero);
	struct tlsprof_control none = {};

	return value ? *value : none;
}

/* Whether a connection that opens now is followed, if calls are looked at at all. */
static __always_inline bool calls_are_seen(void)
{
	__u32 zero = 0;
	struct tlsprof_control *value = bpf_map_lookup_elem(&control, &zero);

	return value && !(value->calls_generation & 1);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLSPROF_HIT_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

/* A thread's work on the handshake of a connection, see phases.h. */
struct phase {
	__u64 connection;
	struct clock clock;
	/* It may be the answer to a request that came with the end of the handshake:
	 * neither CPU time nor samples count unless it turns out to be tickets. */
	__u64 in_tail;
};

/* The thread on a CPU if it is being timed, else 0. Keeps scheduler switches and socket
 * calls of all other threads inexpensive. */
struct timed {
	__u32 call;  /* inside a call of the library, see `calls` */
	__u32 phase; /* at work on a handshake, see `at_work` */
	/* When the thread last came to this CPU, wrote to a socket, or found nothing
	 * to read: what it does after that, it does for something new. Not kept up
	 * where no handshake is: reading the clock is most of what a socket call's
	 * program costs. */
	__u64 since;
	__u64 before;   /* what it was until the socket call that the thread is in */
	__u32 keep_up;  /* so many times more */
	__u32 compared; /* the last such window, see clock.h */
	/* Of the thread `phase`. Here and not in a map by thread, as it is begun and ended
	 * at each socket call of a handshake: only one that leaves the CPU meanwhile is put
	 * there. */
	struct phase at_work;
};

_Static_assert(sizeof(struct timed) == sizeof(struct tlsprof_timed), "TLSPROF_TIMED_PRIVATE");

/* After a handshake `since` is kept up for so many socket calls and switches. */
#define KEEP_UP 128

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct timed);
} timed_threads SEC(".maps");

static __always_inline struct timed *timed_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&timed_threads, &zero);
}

static __always_inline void keep_up_at(struct timed *timed, __u64 now)
{
	timed->since = timed->keep_up ? now : 0;
	if (timed->keep_up)
		timed->keep_up--;
}

/* A handshake goes on that has no clock here: another one may. */
static __always_inline void keep_up_longer(void)
{
	struct timed *timed = timed_here();

	if (timed)
		timed->keep_up = KEEP_UP;
}

/* The same where the time is asked for by nothing else. */
static __always_inline void keep_up(struct timed *timed)
{
	keep_up_at(timed, timed->keep_up ? bpf_ktime_get_ns() : 0);
}

static __always_inline void mark_call(__u32 tid)
{
	struct timed *timed = timed_here();

	if (timed)
		timed->call = tid;
}

static __always_inline void count_hit(__u32 kind)
{
	__u64 *count = bpf_map_lookup_elem(&hits, &kind);

	if (count)
		(*count)++;
}

/* Programs in softirqs interrupt others, also here. */
static __noinline void count_loss(__u32 reason)
{
	__u64 *count = bpf_map_lookup_elem(&losses, &reason);

	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline __u64 wakeup_flags(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= EVENT_WAKEUP_BYTES
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

static __always_inline void send_event(void *event, __u64 size)
{
	if (bpf_ringbuf_output(&events, event, size, wakeup_flags()))
		count_loss(TLSPROF_LOSS_EVENT_RING_FULL);
}

static __always_inline __u64 process_start(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, group_leader, start_boottime);
}

#endif
