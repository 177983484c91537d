/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * How often programs run, and for how long: the agent keeps their cost within its budget. The
 * kernel's own statistics of programs (BPF_ENABLE_STATS) require CAP_SYS_ADMIN, and read the clock
 * twice in each run of every program of the host. Here all runs are counted, and about one in 16
 * is timed: it stands for all since the last one that was timed.
 */
#ifndef TLSPROF_RUNS_H
#define TLSPROF_RUNS_H

#include "prelude.h"

/* Runs between two that are timed: by chance, so that programs that take turns are all met. */
#define RUNS_BETWEEN_LEAST 8
#define RUNS_BETWEEN_MORE 15
/* What takes longer was interrupted. */
#define LONGEST_RUN_NS 100000

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLSPROF_RUN_COUNT);
	__type(key, __u32);
	__type(value, struct tlsprof_runs);
} runs SEC(".maps");

static __always_inline struct tlsprof_runs *run_begins(__u32 kind)
{
	struct tlsprof_runs *all = bpf_map_lookup_elem(&runs, &kind);

	if (!all)
		return NULL;
	all->count++;
	if (all->left)
		all->left--;
	else
		all->began = bpf_ktime_get_ns();
	return all;
}

/* If another run of the kind was timed on this CPU meanwhile, this one is not. */
static __always_inline void run_ends(struct tlsprof_runs *all)
{
	__u64 now, took;

	if (!all->began)
		return;
	now = bpf_ktime_get_ns();
	took = now - all->began;
	all->began = 0;
	/* The next run is timed, and stands for this one too. */
	if (took > LONGEST_RUN_NS)
		return;
	all->nanos += took * (all->count - all->timed);
	all->timed = all->count;
	/* Not its lowest bits: some clocks tick in steps of 16 or 41 ns. */
	all->left = RUNS_BETWEEN_LEAST + ((now >> 6) & RUNS_BETWEEN_MORE);
}

/* The body of a program, of a kind of `enum tlsprof_run`. */
#define RUN(kind, body)                                           \
	do {                                                      \
		struct tlsprof_runs *all_runs = run_begins(kind); \
                                                                  \
		if (all_runs) {                                   \
			body;                                     \
			run_ends(all_runs);                       \
		}                                                 \
	} while (0)

#endif
