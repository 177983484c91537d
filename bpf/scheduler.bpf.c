/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Scheduler switches of threads that are inside a handshake call: takes time
 * off the CPU out of the call's clock and says what it was spent on.
 *
 * The tracepoint fires on every switch of the host, so its usual path is one
 * per-CPU read and one global read.
 */
#include "include/wait.h"

static __always_inline long task_state(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

/* Number of the system call that a task is in; -1 where the kernel has no way to
 * ask (before 5.15, kernel commit dd6e10fbd9fb). */
static __always_inline long task_syscall(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return -1;
	regs = (void *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(regs, orig_ax);
#else
	return BPF_CORE_READ(regs, syscallno);
#endif
}

/* `tid` is the thread that was marked on this CPU. */
static __always_inline void handle_switch_out(struct task_struct *prev, __u32 tid, __u64 now)
{
	struct call *call;
	long state;

	if (tid != (__u32)BPF_CORE_READ(prev, pid))
		return;
	call = bpf_map_lookup_elem(&calls, &tid);
	if (!call)
		return;
	state = task_state(prev);
	call_off_cpu(call, now,
		     wait_reason(state, BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait),
				 task_syscall(prev)));
	__sync_fetch_and_add(&threads_parked, 1);
}

static __always_inline void handle_switch_in(struct task_struct *next, __u64 now)
{
	__u32 tid = BPF_CORE_READ(next, pid);
	struct call *call = bpf_map_lookup_elem(&calls, &tid);

	if (!call || call->on_since)
		return;
	call_on_cpu(call, now);
	mark_cpu(tid);
	__sync_fetch_and_add(&threads_parked, -1);
}

/* Fourth argument prev_state from 5.18 on; prev is the second everywhere. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 zero = 0, *slot = bpf_map_lookup_elem(&thread_in_call, &zero);
	__u64 now;

	if (!(slot && *slot) && !threads_parked)
		return 0;
	count_hit(TLSPROF_HIT_SWITCH);
	now = bpf_ktime_get_ns();
	if (slot && *slot) {
		handle_switch_out(prev, *slot, now);
		*slot = 0;
	}
	if (threads_parked)
		handle_switch_in(next, now);
	return 0;
}
