/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The last sample of each CPU. A phase begins before the socket call that shows it, so
 * that a sample may turn out to be part of one after it was counted.
 */
#ifndef TLSPROF_SAMPLED_H
#define TLSPROF_SAMPLED_H

#include "maps.h"

struct last_sample {
	struct tlsprof_sample_key key;
	__u64 time;
	__u32 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct last_sample);
} last_samples SEC(".maps");

/* How many samples of an entry of `samples` turned out to be in a phase; keyed like
 * that. The agent moves them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the agent sets it, as that of `samples` */
	__type(key, struct tlsprof_sample_key);
	__type(value, __u64);
} backdated_samples SEC(".maps");

#define PROCESSES_WITH_PHASES 4096

/* Processes that have been in the phase of a handshake, and have not ended. Preallocated, as
 * programs on perf events need it; the one without a handshake for longest gives way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PROCESSES_WITH_PHASES);
	__type(key, __u32); /* process id */
	__type(value, __u8);
} processes_with_phases SEC(".maps");

static __always_inline void note_process_with_phase(__u32 pid)
{
	__u8 one = 1;

	if (!bpf_map_lookup_elem(&processes_with_phases, &pid))
		bpf_map_update_elem(&processes_with_phases, &pid, &one, BPF_ANY);
}

/* The current thread has been in a phase since `began`: so was its sample, if that was
 * taken meanwhile. Periods are longer than the lead: there is at most one. */
static __always_inline void claim_sample(__u64 began)
{
	__u32 zero = 0;
	struct last_sample *last = bpf_map_lookup_elem(&last_samples, &zero);
	__u64 one = 1, *count;
	struct tlsprof_sample_key key;

	if (!last || last->time < began || last->tid != (__u32)bpf_get_current_pid_tgid())
		return;
	key = last->key;
	last->time = 0;
	if (key.state & TLSPROF_SAMPLE_IN_PHASE)
		return;
	if (!bpf_map_lookup_elem(&backdated_samples, &key) &&
	    !bpf_map_update_elem(&backdated_samples, &key, &one, BPF_NOEXIST))
		return;
	/* Another CPU may have been faster. */
	count = bpf_map_lookup_elem(&backdated_samples, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		count_loss(TLSPROF_LOSS_SAMPLE_TABLE_FULL);
}

#endif
