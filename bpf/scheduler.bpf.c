/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Scheduler switches of threads that are at work on a handshake: subtracts off-CPU
 * time from the handshake's CPU clock and records what the thread waited for.
 *
 * The tracepoint fires on every switch of the host, so its usual path is one per-CPU read
 * and one count for the thread that comes. The agent takes the program out while nothing is
 * timed: neither socket calls are seen nor libraries probed.
 */
#include "include/calls.h"
#include "include/wait.h"

/* What a thread saved when it entered the kernel; NULL where the kernel has no way to
 * ask (before 5.15, kernel commit dd6e10fbd9fb). */
static __always_inline struct pt_regs *saved_registers(struct task_struct *task)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return NULL;
	return (void *)bpf_task_pt_regs(task);
}

/* The file that a thread reads or writes. Nothing is recorded if another thread has closed it. */
static __always_inline void read_file(struct task_struct *task, __u32 number,
				      struct waited_file *told)
{
	struct file *file = file_by_number(task->files->fdt->fd, number);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	told->mode = BPF_CORE_READ(inode, i_mode);
	if (is_type(told->mode, S_IFCHR))
		told->device = BPF_CORE_READ(inode, i_rdev);
	if (is_type(told->mode, S_IFIFO))
		bpf_probe_read_kernel_str(told->name, sizeof(told->name),
					  BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

/* What a thread waits for that leaves the CPU in that state. */
static __always_inline __u8 reason_of(struct task_struct *task, long state)
{
	bool in_iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	struct pt_regs *regs = saved_registers(task);
	struct waited_file file = {};
	long nr = -1;

	/* Numbers of calls mean others in 32-bit processes. */
	if (regs && !is_compat(regs))
		nr = syscall_number(regs);
	if (regs && asks_file(state, in_iowait, nr))
		read_file(task, SYSCALL_PARM1(regs), &file);
	return wait_reason(state, in_iowait, nr, &file);
}

static __always_inline void park(__u32 tid, struct clock *clock, __u64 now, __u8 reason)
{
	clock_off_cpu(clock, now, reason);
	__sync_fetch_and_add(parked_like(tid), 1);
}

static __always_inline void unpark(__u32 tid, struct clock *clock, __u64 now)
{
	if (clock->on_since)
		return;
	clock_on_cpu(clock, now);
	__sync_fetch_and_add(parked_like(tid), -1);
}

/*
 * A thread that waits for a lock, a disk or random numbers is still at work on
 * its handshake; one that waits for the network, for a pipe, by which threads are
 * given jobs too, or for anything else, may come back for something else.
 */
static __always_inline bool ends_phase(const struct exchange *exchange, __u8 reason)
{
	if (reason == TLSPROF_WAIT_NETWORK || reason == TLSPROF_WAIT_PIPE ||
	    reason == TLSPROF_WAIT_OTHER)
		return true;
	if (reason != TLSPROF_WAIT_LOCK)
		return false;
	/* A pool thread waits for its next job in the same way. Only a thread that owes the
	 * peer an answer is assumed to return to this handshake. */
	return !exchange || !exchange_owes_answer(exchange);
}

/* A thread that is at work on a handshake leaves the CPU. */
static __always_inline void park_phase(struct timed *timed, __u64 now, __u8 reason)
{
	struct phase *phase = &timed->at_work;
	__u64 connection = phase->connection;
	__u32 tid = timed->phase;
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	if (ends_phase(exchange, reason)) {
		add_phase(phase, exchange, true, now);
		return;
	}
	/* Another thread may end it before this one comes back, if it does. */
	if (exchange && reason == TLSPROF_WAIT_LOCK) {
		exchange_add(exchange, &phase->clock, exchange->tail, now);
		__builtin_memset(&phase->clock, 0, sizeof(phase->clock));
		clock_begin(&phase->clock, now);
	}
	clock_off_cpu(&phase->clock, now, reason);
	if (!bpf_map_update_elem(&parked_phases, &tid, phase, BPF_NOEXIST))
		__sync_fetch_and_add(parked_like(tid), 1);
	else if (bpf_map_update_elem(&parked_phases, &tid, phase, BPF_EXIST)) /* came back unseen */
		count_loss(TLSPROF_LOSS_THREAD_TABLE_FULL);
}

/* Waits for a lock inside a handshake are shorter. */
#define LONG_LOCK_NS 10000000

/* Whether a thread that left the CPU comes back to the same job. What it did before it waited
 * for a lock is added already. A handshake may have come to its end meanwhile, or was given up. */
static __always_inline bool goes_on(const struct phase *phase, __u64 now)
{
	__u64 connection = phase->connection;
	struct exchange *exchange = bpf_map_lookup_elem(&exchanges, &connection);

	if (!exchange || phase->clock.off_reason != TLSPROF_WAIT_LOCK)
		return exchange;
	return now - phase->clock.off_since <= LONG_LOCK_NS && exchange_owes_answer(exchange);
}

/* It is back on a CPU. */
static __always_inline void unpark_phase(struct timed *timed, __u32 tid, __u64 now)
{
	struct phase *parked = bpf_map_lookup_elem(&parked_phases, &tid);
	struct phase *phase = &timed->at_work;

	if (!parked)
		return;
	*phase = *parked;
	bpf_map_delete_elem(&parked_phases, &tid);
	unpark(tid, &phase->clock, now);
	if (goes_on(phase, now))
		timed->phase = tid;
}

static __always_inline void handle_switch_out(struct task_struct *prev, bool preempt,
					      struct timed *timed, __u64 now)
{
	__u32 tid = prev->pid;
	/* One that is preempted on its way to sleep has its state already. */
	long state = preempt ? 0 : task_state(prev);
	__u8 reason = reason_of(prev, state);

	if (timed->call == tid) {
		struct call *call = bpf_map_lookup_elem(&calls, &tid);

		/* The program at its end may have been left out. */
		if (call && state == TASK_DEAD)
			bpf_map_delete_elem(&calls, &tid);
		else if (call)
			park(tid, &call->clock, now, reason);
	}
	if (timed->phase == tid)
		park_phase(timed, now, reason);
	timed->call = 0;
	timed->phase = 0;
}

static __always_inline void handle_switch_in(struct task_struct *next, struct timed *timed,
					     __u64 now)
{
	__u32 tid = next->pid;
	struct call *call = library_calls ? bpf_map_lookup_elem(&calls, &tid) : NULL;

	if (call) {
		unpark(tid, &call->clock, now);
		timed->call = tid;
	}
	unpark_phase(timed, tid, now);
}

/* A process that comes to a CPU for the first time: what it does before its first socket call
 * is its own start, for whatever connection it is. A new thread does nothing but its job. */
static __always_inline void forget_start(struct task_struct *next, struct timed *timed)
{
	if (timed->since && next->pid == next->tgid && !next->nvcsw && !next->nivcsw)
		timed->since = 0;
}

static __always_inline void handle_switch(bool preempt, struct task_struct *prev,
					  struct task_struct *next)
{
	struct timed *timed = timed_here();
	__u32 *parked = parked_like(next->pid);
	__u64 now;

	if (!timed)
		return;
	if (!timed->call && !timed->phase && !*parked) {
		keep_up(timed);
		forget_start(next, timed);
		return;
	}
	now = bpf_ktime_get_ns();
	keep_up_at(timed, now);
	forget_start(next, timed);
	count_hit(TLSPROF_HIT_SWITCH);
	if (timed->call || timed->phase)
		handle_switch_out(prev, preempt, timed, now);
	if (*parked)
		handle_switch_in(next, timed, now);
}

/* Fourth argument prev_state from 5.18 on; prev is the second everywhere. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	RUN(TLSPROF_RUN_SWITCH, handle_switch(preempt, prev, next));
	return 0;
}
