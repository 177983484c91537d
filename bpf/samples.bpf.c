/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * CPU samples: a perf clock on each CPU interrupts whatever runs there.
 *
 * Identical samples share one entry with a count, which the agent reads and deletes
 * about once a second. Machine code and kernel stacks are copied with the first of
 * them, because the process may have ended, or replaced code that it compiled itself,
 * before the agent looks.
 */
#include "include/maps.h"
#include "include/sample.h"
#include "include/sampled.h"

#define CODE_BYTES (2 * TLSPROF_CODE_SIDE)
#define SAMPLES 1 /* the agent sets it by the number of CPUs and the frequency */

/* Preallocated: programs on perf events may use no others before 6.1. Keyed by place
 * and process: not an array. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLES);
	__type(key, struct tlsprof_sample_key);
	__type(value, struct tlsprof_sample);
} samples SEC(".maps");

/* A sample is too large for the stack. Nothing interrupts the clock's interrupt
 * with another sample on the same CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlsprof_sample);
} new_samples SEC(".maps");

/* Ticks of each CPU's clock: if they stop, the agent sets it up again (a CPU that went
 * offline and came back). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sample_ticks SEC(".maps");

static __always_inline bool count_again(const struct tlsprof_sample_key *key)
{
	struct tlsprof_sample *known = bpf_map_lookup_elem(&samples, key);

	if (!known)
		return false;
	/* Every CPU may be in the same place. */
	__sync_fetch_and_add(&known->count, 1);
	return true;
}

static __always_inline void count_first(const struct tlsprof_sample_key *key,
					struct tlsprof_sample *sample)
{
	sample->count = 1;
	if (!bpf_map_update_elem(&samples, key, sample, BPF_NOEXIST))
		return;
	/* Another CPU may have been faster. */
	if (!count_again(key))
		count_loss(TLSPROF_LOSS_SAMPLE_TABLE_FULL);
}

/* The page of the instruction is in memory, because it was being executed; its neighbours
 * may not be. 32-bit code is not copied: it would be decoded wrongly. */
static __always_inline void copy_code(struct tlsprof_sample *sample, const struct interrupted *at)
{
	__u64 instruction = at->instruction;
	__u32 length = at_most(code_before(instruction) + code_after(instruction), CODE_BYTES);

	sample->length = 0;
	sample->before = 0;
	if (in_32_bit_code(at))
		return;
	if (!bpf_probe_read_user(sample->data, CODE_BYTES,
				 (const void *)(instruction - TLSPROF_CODE_SIDE))) {
		sample->length = CODE_BYTES;
		sample->before = TLSPROF_CODE_SIDE;
	} else if (!bpf_probe_read_user(sample->data, length,
					(const void *)(instruction - code_before(instruction)))) {
		sample->length = length;
		sample->before = code_before(instruction);
	}
}

static __always_inline void handle_user(const struct interrupted *at,
					struct tlsprof_sample_key *key,
					struct tlsprof_sample *sample)
{
	key->place = at->instruction;
	if (count_again(key))
		return;
	sample->instruction = at->instruction;
	copy_code(sample, at);
	count_first(key, sample);
}

/* Where the current task left user mode; 0 where that cannot be asked (before 5.15),
 * and for the kernel's own tasks. */
static __always_inline __u64 left_user_mode_at(void)
{
	struct task_struct *task;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return 0;
	task = (void *)bpf_get_current_task_btf();
	if (!BPF_CORE_READ(task, tgid) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	return instruction_of((void *)bpf_task_pt_regs(task));
}

static __always_inline void handle_kernel(struct interrupted *at, struct tlsprof_sample_key *key,
					  struct tlsprof_sample *sample)
{
	long length = bpf_get_stack(at, sample->data, sizeof(sample->data), 0);

	if (length <= 0) {
		count_loss(TLSPROF_LOSS_SAMPLE_WITHOUT_STACK);
		return;
	}
	key->state |= TLSPROF_SAMPLE_KERNEL;
	key->place = stack_hash(sample->data, (__u32)length / sizeof(sample->data[0]));
	if (count_again(key))
		return;
	sample->instruction = left_user_mode_at();
	sample->length = length;
	sample->before = 0;
	count_first(key, sample);
}

/* For a phase that has begun already, as will be known later. */
static __always_inline void remember(const struct tlsprof_sample_key *key, __u32 tid)
{
	__u32 zero = 0;
	struct last_sample *last = bpf_map_lookup_elem(&last_samples, &zero);

	if (!last || !key->pid)
		return;
	last->key = *key;
	last->time = bpf_ktime_get_ns();
	last->tid = tid;
}

static __always_inline void handle_strike(struct interrupted *at)
{
	__u32 zero = 0;
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct timed *timed = timed_here();
	__u64 *ticks = bpf_map_lookup_elem(&sample_ticks, &zero);
	struct tlsprof_sample *sample = bpf_map_lookup_elem(&new_samples, &zero);
	struct tlsprof_sample_key key = { .pid = pid_tgid >> 32 };

	if (!timed || !ticks || !sample)
		return;
	(*ticks)++;
	if (current_control().no_samples)
		return;
	key.state = handshake_state((__u32)pid_tgid, timed->call,
				    timed->at_work.in_tail ? 0 : timed->phase);
	if (!bpf_map_lookup_elem(&processes_with_phases, &key.pid))
		key.state |= TLSPROF_SAMPLE_BEFORE_PHASES;
	if (in_user_mode(at))
		handle_user(at, &key, sample);
	else
		handle_kernel(at, &key, sample);
	remember(&key, (__u32)pid_tgid);
}

/* The registers are those of what the clock interrupted. */
SEC("perf_event")
int cpu_sample(struct interrupted *ctx)
{
	handle_strike(ctx);
	return 0;
}
