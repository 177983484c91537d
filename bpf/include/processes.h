/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Events of processes, and the CPU time of those that end.
 */
#ifndef TLSPROF_PROCESSES_H
#define TLSPROF_PROCESSES_H

#include "sampled.h"

static __always_inline void describe(struct tlsprof_process_event *event, __u32 kind,
				     struct task_struct *task)
{
	event->header.kind = kind;
	event->header.pid = BPF_CORE_READ(task, tgid);
	event->header.time = bpf_ktime_get_ns();
	event->process_start = BPF_CORE_READ(task, group_leader, start_boottime);
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), task->comm);
}

/*
 * CPU time of a process whose threads have all ended, but perhaps for their last
 * instructions; at an exec all others have, and its own time since the last tick is missing. Those that are released are summed in its signal struct, as the
 * scheduler saw them last. Threads release themselves; the first one is released by the
 * parent, or itself where the parent ignores SIGCHLD. `nr_threads` are not.
 */
static __always_inline __u64 process_cpu(struct task_struct *task)
{
	/* In this order: the kernel adds to the sum and takes from the count at once, so
	 * that a release in between is not counted twice. */
	__u64 released = BPF_CORE_READ(task, signal, sum_sched_runtime);
	__u64 own = BPF_CORE_READ(task, se.sum_exec_runtime);

	if (BPF_CORE_READ(task, signal, nr_threads))
		return released + BPF_CORE_READ(task, group_leader, se.sum_exec_runtime);
	/* The sum is the older one; of a process with one thread its own is exact. */
	released = BPF_CORE_READ(task, signal, sum_sched_runtime);
	return released > own ? released : own;
}

/*
 * How often clock ticks found it in user and in system mode: by these the kernel divides
 * the CPU time that wait4(2) reports (cputime_adjust, kernel/sched/cputime.c). A thread that
 * is released in between may be missed or count twice: one share of many.
 */
static __always_inline void read_ticks(struct tlsprof_process_event *event,
				       struct task_struct *task)
{
	event->user = BPF_CORE_READ(task, signal, utime);
	event->system = BPF_CORE_READ(task, signal, stime);
	if (!BPF_CORE_READ(task, signal, nr_threads))
		return;
	event->user += BPF_CORE_READ(task, group_leader, utime);
	event->system += BPF_CORE_READ(task, group_leader, stime);
}

/*
 * A thread has left its last CPU for good. Only now does the kernel know what it used:
 * at sched_process_exit the time since its last tick is not accounted yet, and it has
 * still to give back its memory and its files.
 *
 * The process ends with its last thread. Threads that end at once cannot know which of
 * them that is: each that may be the last one reports the end, with what is summed by
 * then; the last report is complete.
 */
static __always_inline void handle_thread_end(struct task_struct *task)
{
	struct tlsprof_process_event event = {};
	bool first = BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return;
	/* Others have still to end, and one of them will come here. */
	if (!first && BPF_CORE_READ(task, signal, nr_threads) > 1)
		return;
	describe(&event, TLSPROF_EVENT_EXIT, task);
	event.cpu = process_cpu(task);
	read_ticks(&event, task);
	bpf_map_delete_elem(&processes_with_phases, &event.header.pid);
	send_event(&event, sizeof(event));
}

#endif
