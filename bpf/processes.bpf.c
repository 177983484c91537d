/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Processes that come, change and go. In the same ring as handshakes, so that
 * the agent learns of a process before its first handshake and of its end after
 * its last.
 */
#include "include/calls.h"

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

/* The handshake that an ending thread was in the middle of ends with it; on its
 * socket it may go on, for another thread or process. */
static __always_inline void abandon_call(__u64 now)
{
	struct call *call = current_call();

	if (call)
		end_call(call, TLSPROF_OUTCOME_ABANDONED, now);
	end_phase(false);
}

static __always_inline void handle_thread_exit(void)
{
	abandon_call(bpf_ktime_get_ns());
	forget_parked((__u32)bpf_get_current_pid_tgid());
}

static __always_inline void handle_fork(struct task_struct *parent, struct task_struct *child)
{
	struct tlsprof_process_event event = {};

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid) ||
	    BPF_CORE_READ(child, flags) & PF_KTHREAD)
		return;
	describe(&event, TLSPROF_EVENT_FORK, child);
	event.parent_pid = BPF_CORE_READ(parent, tgid);
	send_event(&event, sizeof(event));
}

static __always_inline void handle_exec(struct task_struct *task, struct linux_binprm *bprm)
{
	struct tlsprof_process_event event = {};

	abandon_call(bpf_ktime_get_ns());
	describe(&event, TLSPROF_EVENT_EXEC, task);
	event.cpu = process_cpu(task);
	read_ticks(&event, task);
	bpf_probe_read_kernel_str(event.path, sizeof(event.path), BPF_CORE_READ(bprm, filename));
	send_event(&event, sizeof(event));
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

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	RUN(TLSPROF_RUN_OTHER, handle_fork(parent, child));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	RUN(TLSPROF_RUN_OTHER, handle_exec(task, bprm));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit)
{
	RUN(TLSPROF_RUN_OTHER, handle_thread_exit());
	return 0;
}

static __always_inline void handle_departure(struct task_struct *prev)
{
	if (task_state(prev) == TASK_DEAD)
		handle_thread_end(prev);
}

/* Apart from sched_switch() (scheduler.bpf.c), which is not always attached. */
SEC("tp_btf/sched_switch")
int BPF_PROG(thread_left, bool preempt, struct task_struct *prev)
{
	RUN(TLSPROF_RUN_OTHER, handle_departure(prev));
	return 0;
}
