/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * CPU samples: a perf clock on each CPU interrupts whatever runs there.
 *
 * Identical samples share one entry with a count, which the agent reads and deletes
 * about once a second. Machine code, kernel stacks and what shows the callers in user space
 * are copied with the first of them, because the process may have ended, or replaced code
 * that it compiled itself, before the agent looks.
 */
#include "include/maps.h"
#include "include/sample.h"
#include "include/sampled.h"

#define STACK_BYTES (TLSPROF_STACK_WORDS * sizeof(__u64))
#define CODE_BYTES (TLSPROF_CODE_WORDS * sizeof(__u64))
#define IN_HANDSHAKE (TLSPROF_SAMPLE_IN_CALL | TLSPROF_SAMPLE_IN_PHASE)
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

/* A stack in user space, likewise. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, char[STACK_BYTES + SMALLEST_PAGE]);
} stacks SEC(".maps");

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

/* Its page is in memory; what of the next ones is not is filled with zeros. The verifier
 * does not see that first and last page are one: there is room for both. */
static __always_inline void read_stack(__u64 *stack, __u64 pointer)
{
	__u32 rest = pointer & (SMALLEST_PAGE - 1);
	__u32 first = at_most(SMALLEST_PAGE - rest, SMALLEST_PAGE);
	char *next = (char *)stack + first;

	bpf_probe_read_user(stack, first, (const void *)pointer);
	pointer += first;
	for (__u32 i = 1; i < STACK_BYTES / SMALLEST_PAGE; i++) {
		bpf_probe_read_user(next, SMALLEST_PAGE, (const void *)pointer);
		pointer += SMALLEST_PAGE;
		next += SMALLEST_PAGE;
	}
	bpf_probe_read_user(next, rest, (const void *)pointer);
}

static __always_inline void keep_word(struct tlsprof_sample *sample, __u64 word, __u64 slot)
{
	/* From memory each time: the verifier would follow every way to every number. */
	__u32 count = *(volatile __u32 *)&sample->words;
	__u32 at = sample->first_word + count;

	if (at >= TLSPROF_STACK_DEPTH)
		return;
	sample->data[at] = word | slot << TLSPROF_WORD_BITS;
	*(volatile __u32 *)&sample->words = count + 1;
}

#define PROBED_CALLS 4 /* within each other */

/* Return addresses that the kernel has put those of probes in place of. */
static __always_inline void keep_probed(struct tlsprof_sample *sample, struct task_struct *task)
{
	struct return_instance *call;

	if (!bpf_core_field_exists(task->utask))
		return;
	call = BPF_CORE_READ(task, utask, return_instances);
	for (int i = 0; i < PROBED_CALLS && call; i++) {
		__u64 slot = (BPF_CORE_READ(call, stack) - sample->stack_pointer) / sizeof(slot);

		if (slot < TLSPROF_STACK_WORDS)
			keep_word(sample, BPF_CORE_READ(call, orig_ret_vaddr), slot);
		call = BPF_CORE_READ(call, next);
	}
}

#define WORDS_AT_ONCE 32

/* Keeps those of so many words of the stack that may show callers, behind what the data of
 * the new sample holds already. Returns a hash with them. A separate function, so that the
 * verifier checks it only once. */
__noinline __u64 keep_callers(__u32 first, __u64 program_start, __u64 program_end, __u64 hash)
{
	__u32 zero = 0;
	struct tlsprof_sample *sample = bpf_map_lookup_elem(&new_samples, &zero);
	__u64 *stack = bpf_map_lookup_elem(&stacks, &zero);
	struct surroundings around = { .program_start = program_start, .program_end = program_end };

	if (!sample || !stack)
		return hash;
	stack += at_most(first, TLSPROF_STACK_WORDS - WORDS_AT_ONCE);
	around.instruction = sample->instruction;
	around.stack_pointer = sample->stack_pointer;
	for (__u32 i = 0; i < WORDS_AT_ONCE; i++) {
		__u64 word = unsigned_address(stack[i]);

		if (may_show_caller(word, &around)) {
			keep_word(sample, word, first + i);
			hash = mixed(hash, word + first + i);
		}
	}
	return hash;
}

/* The callers in user space of what the new sample hit. Returns a hash of its instruction
 * and of them. Separate, likewise. */
__noinline __u64 find_callers(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 start = BPF_CORE_READ(task, mm, start_code);
	__u64 end = BPF_CORE_READ(task, mm, end_code);
	__u32 zero = 0;
	struct tlsprof_sample *sample = bpf_map_lookup_elem(&new_samples, &zero);
	__u64 *stack = bpf_map_lookup_elem(&stacks, &zero);
	__u64 hash;

	if (!sample || !stack)
		return 0;
	hash = sample->instruction;
	keep_probed(sample, task);
	read_stack(stack, sample->stack_pointer);
	for (__u32 i = 0; i < TLSPROF_STACK_WORDS; i += WORDS_AT_ONCE)
		hash = keep_callers(i, start, end, hash);
	return hash;
}

static __always_inline void set_registers(struct tlsprof_sample *sample,
					  const struct left_user_mode *left, __u32 first_word)
{
	sample->instruction = left->instruction;
	sample->stack_pointer = left->stack_pointer;
	sample->frame_pointer = left->frame_pointer;
	sample->link = left->link;
	sample->first_word = first_word;
	sample->words = 0;
}

static __always_inline void handle_user(const struct interrupted *at,
					struct tlsprof_sample_key *key,
					struct tlsprof_sample *sample)
{
	struct left_user_mode left = registers_of(at);

	key->place = at->instruction;
	set_registers(sample, &left, TLSPROF_CODE_WORDS);
	if (key->state & IN_HANDSHAKE && !in_32_bit_code(at))
		key->place = find_callers();
	if (count_again(key))
		return;
	copy_code(sample, at);
	count_first(key, sample);
}

/* Where the current task left user mode: nothing where that cannot be asked (before 5.15),
 * and for the kernel's own tasks. */
static __always_inline struct left_user_mode left_user_mode(void)
{
	struct left_user_mode left = {};
	struct task_struct *task;
	struct pt_regs *registers;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return left;
	task = (void *)bpf_get_current_task_btf();
	if (!BPF_CORE_READ(task, tgid) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return left;
	registers = (void *)bpf_task_pt_regs(task);
	left.instruction = instruction_of(registers);
	if (is_compat(registers))
		return left;
	left.stack_pointer = registers->sp;
	left.frame_pointer = frame_pointer_of(registers);
	left.link = unsigned_address(link_of(registers));
	return left;
}

static __always_inline void handle_kernel(struct interrupted *at, struct tlsprof_sample_key *key,
					  struct tlsprof_sample *sample)
{
	long length = bpf_get_stack(at, sample->data, sizeof(sample->data), 0);
	__u32 depth = (__u32)length / sizeof(sample->data[0]);
	struct left_user_mode left;

	if (length <= 0) {
		count_loss(TLSPROF_LOSS_SAMPLE_WITHOUT_STACK);
		return;
	}
	left = left_user_mode();
	set_registers(sample, &left, depth);
	key->state |= TLSPROF_SAMPLE_KERNEL;
	key->place = stack_hash(sample->data, depth);
	if (key->state & IN_HANDSHAKE && left.stack_pointer)
		key->place = mixed(key->place, find_callers());
	if (count_again(key))
		return;
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
	__u32 kind = (__u32)bpf_get_current_pid_tgid() ? TLSPROF_RUN_OTHER : TLSPROF_RUN_IDLE;

	RUN(kind, handle_strike(ctx));
	return 0;
}
