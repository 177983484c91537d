/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Processes that come, change and go. In the same ring as handshakes, so that
 * the agent learns of a process before its first handshake and of its end after
 * its last.
 */
#include "include/calls.h"
#include "include/processes.h"

/* The handshake that an ending thread was in the middle of ends with it; on its
 * socket it may go on, for another thread or process. */
static __always_inline void abandon_call(__u64 now)
{
	struct call *call = current_call();

	if (call)
		end_call(call, TLSPROF_OUTCOME_ABANDONED, now);
	end_phase(false);
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
	RUN(TLSPROF_RUN_OTHER, abandon_call(bpf_ktime_get_ns()));
	return 0;
}
