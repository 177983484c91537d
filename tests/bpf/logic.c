/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "check.h"
#include "handshake.h"
#define __TARGET_ARCH_x86
#include "wait.h"

static const struct tlsprof_control attached = { .steps_generation = 1,
						 .key_derivation_generation = 3 };

static void time_off_the_cpu_is_not_cpu_time(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1000);
	clock_off_cpu(&call.clock, 1400, TLSPROF_WAIT_LOCK);
	CHECK_EQUAL(clock_cpu(&call.clock, 9999), 400);
	clock_on_cpu(&call.clock, 5000);
	CHECK_EQUAL(clock_cpu(&call.clock, 5100), 500);
	CHECK_EQUAL(call.clock.wait[TLSPROF_WAIT_LOCK], 3600);
}

/* A program looked at the time, was preempted, and uses that time afterwards. */
static void a_time_before_the_last_switch_is_no_time_on_the_cpu(void)
{
	struct tlsprof_handshake_event event = {};
	struct clock clock = {};

	clock_begin(&clock, 10);
	clock_off_cpu(&clock, 100, TLSPROF_WAIT_RUN_QUEUE);
	clock_on_cpu(&clock, 400);
	CHECK_EQUAL(clock_cpu(&clock, 90), 90);
	clock_add_to(&clock, &event, 90);
	CHECK_EQUAL(event.in_call, 390);
	CHECK_EQUAL(event.wait[TLSPROF_WAIT_RUN_QUEUE], 300);
}

/* Profilers beside each other see a lead of different lengths, by what their programs take. */
static void a_lead_that_is_a_little_longer_is_no_other_figure(void)
{
	const __u64 now = 10 * LEAD_NS;
	__u64 last = 0;

	for (__u64 took = LEAD_NS / 2; took <= 2 * LEAD_NS; took += LEAD_NS / 10) {
		__u64 lead = now - clock_lead(now - took, now);

		/* Never less than that of a shorter one. */
		CHECK_EQUAL(lead >= last, 1);
		CHECK_EQUAL(lead, took < LEAD_NS ? took : LEAD_NS);
		last = lead;
	}
	CHECK_EQUAL(clock_lead(0, now), now);
}

static void cpu_and_waits_add_up_to_the_time_in_the_call(void)
{
	struct call call = {};
	struct tlsprof_handshake handshake = {};
	__u64 sum;

	clock_begin(&call.clock, 10);
	clock_off_cpu(&call.clock, 20, TLSPROF_WAIT_NETWORK);
	clock_on_cpu(&call.clock, 50);
	clock_off_cpu(&call.clock, 60, TLSPROF_WAIT_RUN_QUEUE);
	clock_on_cpu(&call.clock, 65);
	handshake_add_call(&handshake, &call, 100);
	sum = handshake.event.cpu;
	for (int i = 0; i < TLSPROF_WAIT_COUNT; i++)
		sum += handshake.event.wait[i];
	CHECK_EQUAL(sum, handshake.event.in_call);
	CHECK_EQUAL(handshake.event.in_call, 90);
	CHECK_EQUAL(handshake.event.cpu, 55);
}

static void a_step_takes_what_it_calls(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1);
	CHECK_EQUAL(call_step_begin(&call, 100, TLSPROF_STEP_VERIFICATION, 0x1000, 0), true);
	CHECK_EQUAL(call_step_begin(&call, 150, TLSPROF_STEP_SIGNING, 0xf00, 0), false);
	CHECK_EQUAL(call_step_end(&call, 180, 0xf00), false);
	CHECK_EQUAL(call_step_end(&call, 300, 0x1000), true);
	CHECK_EQUAL(call.step[TLSPROF_STEP_VERIFICATION], 200);
	CHECK_EQUAL(call.step[TLSPROF_STEP_SIGNING], 0);
	CHECK_EQUAL(call.step_calls[TLSPROF_STEP_VERIFICATION], 1);
}

static void a_step_does_not_count_the_traps_in_it(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1);
	CHECK_EQUAL(call_step_begin(&call, 100, TLSPROF_STEP_KEY_EXCHANGE, 0x1000, 20), true);
	CHECK_EQUAL(call_step_begin(&call, 150, TLSPROF_STEP_SIGNING, 0xf00, 10), false);
	CHECK_EQUAL(call_step_end(&call, 300, 0x1000), true);
	CHECK_EQUAL(call.step[TLSPROF_STEP_KEY_EXCHANGE], 170);
	CHECK_EQUAL(call_step_begin(&call, 400, TLSPROF_STEP_KEY_EXCHANGE, 0x1000, 20), true);
	CHECK_EQUAL(call_step_end(&call, 415, 0x1000), true);
	CHECK_EQUAL(call.step[TLSPROF_STEP_KEY_EXCHANGE], 170);
	CHECK_EQUAL(call.step_calls[TLSPROF_STEP_KEY_EXCHANGE], 2);
}

static void a_step_does_not_count_time_off_the_cpu(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1);
	call_step_begin(&call, 100, TLSPROF_STEP_KEY_EXCHANGE, 0x1000, 0);
	clock_off_cpu(&call.clock, 150, TLSPROF_WAIT_RUN_QUEUE);
	clock_on_cpu(&call.clock, 1150);
	call_step_end(&call, 1200, 0x1000);
	CHECK_EQUAL(call.step[TLSPROF_STEP_KEY_EXCHANGE], 100);
}

static void the_end_of_a_step_that_never_began_is_ignored(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1);
	CHECK_EQUAL(call_step_end(&call, 10, 0x1000), false);
	CHECK_EQUAL(call_step_end(&call, 10, 0), false);
	call_step_begin(&call, 20, TLSPROF_STEP_COUNT, 0x1000, 0); /* a cookie that names no step */
	CHECK_EQUAL(call_step_end(&call, 30, 0x1000), false);
}

static void a_return_that_was_not_seen_does_not_hide_later_steps(void)
{
	struct call call = {};

	clock_begin(&call.clock, 1);
	call_step_begin(&call, 100, TLSPROF_STEP_KEY_DERIVATION, 0x1000, 0);
	/* Its return probe was released meanwhile. The next function has its
	 * return address at the same place, or above. */
	CHECK_EQUAL(call_step_begin(&call, 200, TLSPROF_STEP_SIGNING, 0x1000, 0), true);
	CHECK_EQUAL(call_step_end(&call, 250, 0x1000), true);
	CHECK_EQUAL(call.step[TLSPROF_STEP_SIGNING], 50);
	CHECK_EQUAL(call.step[TLSPROF_STEP_KEY_DERIVATION], 0);
	call_step_begin(&call, 300, TLSPROF_STEP_KEY_DERIVATION, 0x1000, 0);
	CHECK_EQUAL(call_step_begin(&call, 400, TLSPROF_STEP_KEY_EXCHANGE, 0x1010, 0), true);
	CHECK_EQUAL(call_step_end(&call, 430, 0x1010), true);
	CHECK_EQUAL(call.step[TLSPROF_STEP_KEY_EXCHANGE], 30);
}

static void derive_is_a_key_exchange_after_set_peer_only(void)
{
	struct call call = {};

	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_SIGNING, 1, 1, 0x1000), TLSPROF_STEP_SIGNING);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 1, 0x1000),
		    TLSPROF_STEP_KEY_DERIVATION);
	call.exchange_context = 7;
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 0, 0x1000),
		    TLSPROF_STEP_KEY_EXCHANGE);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 8, 1, 0x1000),
		    TLSPROF_STEP_KEY_DERIVATION);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 1, 0x1000),
		    TLSPROF_STEP_KEY_EXCHANGE);
	/* The context was freed and its address used again. */
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 1, 0x1000),
		    TLSPROF_STEP_KEY_DERIVATION);
}

/* Several probes at one place run a program several times for one hit. */
static void a_program_that_runs_again_at_the_same_hit_finds_its_work_done(void)
{
	const char x25519[TLSPROF_GROUP_LEN] = "X25519", p256[TLSPROF_GROUP_LEN] = "P-256";
	const struct tlsprof_handshake handshake = { .began = 10 }, none = {};
	struct call call = { .exchange_context = 7 };

	for (int run = 0; run < 3; run++) {
		__u8 step = call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 1, 0x1000);

		CHECK_EQUAL(step, TLSPROF_STEP_KEY_EXCHANGE);
		call_step_begin(&call, 100, step, 0x1000, 0);
		call.step_cookie = TLSPROF_STEP_BY_PEER;
	}
	CHECK_EQUAL(call_step_end(&call, 300, 0x1000), true);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_BY_PEER, 7, 1, 0x1000),
		    TLSPROF_STEP_KEY_DERIVATION);
	for (int run = 0; run < 3; run++)
		call_name_group(&call, x25519);
	CHECK_EQUAL(call.groups_named, 1);
	call_name_group(&call, p256);
	CHECK_EQUAL(call.groups_named, 2);
	CHECK_EQUAL(strcmp(call.group, "P-256"), 0);
	CHECK_EQUAL(handshake_is_of(&handshake, 10), true);
	CHECK_EQUAL(handshake_is_of(&handshake, 20), false);
	CHECK_EQUAL(handshake_is_of(&none, 0), false);
}

static void the_first_group_that_is_named_may_have_no_name(void)
{
	const char none[TLSPROF_GROUP_LEN] = "";
	struct call call = {};

	call_name_group(&call, none);
	call_name_group(&call, none);
	CHECK_EQUAL(call.groups_named, 1);
}

static void the_length_of_a_result_is_kept_by_kind(void)
{
	struct call call = { .step_cookie = TLSPROF_STEP_SIGNING };

	call_step_result(&call, 256);
	call.step_cookie = TLSPROF_STEP_ENCAPSULATE;
	call_step_result(&call, 1120);
	call.step_cookie = TLSPROF_STEP_VERIFICATION;
	call_step_result(&call, 7);
	CHECK_EQUAL(call.signature_bytes, 256);
	CHECK_EQUAL(call.encapsulated_bytes, 1120);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_ENCAPSULATE, 1, 1, 0x1000),
		    TLSPROF_STEP_KEY_EXCHANGE);
	CHECK_EQUAL(call_step_of(&call, TLSPROF_STEP_DECAPSULATE, 1, 1, 0x1000),
		    TLSPROF_STEP_KEY_EXCHANGE);
}

static void only_success_or_an_error_ends_a_handshake(void)
{
	CHECK_EQUAL(handshake_result(1, 0), TLSPROF_OUTCOME_COMPLETED);
	/* An error that was raised and dealt with. */
	CHECK_EQUAL(handshake_result(1, 193), TLSPROF_OUTCOME_COMPLETED);
	CHECK_EQUAL(handshake_result(-1, 0), CALL_RETRY);
	CHECK_EQUAL(handshake_result(0, 0), CALL_RETRY);
	CHECK_EQUAL(handshake_result(-1, 193), TLSPROF_OUTCOME_FAILED);
	CHECK_EQUAL(handshake_result(0, 193), TLSPROF_OUTCOME_FAILED);
	CHECK_EQUAL(handshake_result(-1, SSL_R_UNEXPECTED_EOF_WHILE_READING),
		    TLSPROF_OUTCOME_ABANDONED);
}

static void calls_of_one_handshake_add_up(void)
{
	struct tlsprof_handshake handshake = { .began = 1000, .steps_generation = 1 };
	struct call first = { .signature_bytes = 256, .groups_named = 1, .group = "X25519" };
	struct call second = {};

	clock_begin(&first.clock, 1000);
	call_step_begin(&first, 1010, TLSPROF_STEP_SIGNING, 0x1000, 0);
	call_step_end(&first, 1050, 0x1000);
	handshake_add_call(&handshake, &first, 1100);
	clock_begin(&second.clock, 5000);
	handshake_add_call(&handshake, &second, 5030);
	handshake_end(&handshake, TLSPROF_OUTCOME_COMPLETED, 5030, &attached);
	CHECK_EQUAL(handshake.event.calls, 2);
	CHECK_EQUAL(handshake.event.cpu, 130);
	CHECK_EQUAL(handshake.event.duration, 4030);
	CHECK_EQUAL(handshake.event.step[TLSPROF_STEP_SIGNING], 40);
	CHECK_EQUAL(handshake.event.signature_bytes, 256);
	CHECK_EQUAL(strcmp(handshake.event.group, "X25519"), 0);
}

static void steps_are_observed_only_when_attached_throughout(void)
{
	CHECK_EQUAL(observed_throughout(1, 1), 1);
	CHECK_EQUAL(observed_throughout(0, 0), 0); /* never attached */
	CHECK_EQUAL(observed_throughout(2, 3), 0); /* attached after the beginning */
	CHECK_EQUAL(observed_throughout(1, 2), 0); /* released before the end */
	CHECK_EQUAL(observed_throughout(1, 3), 0); /* released and attached again */
}

static void counts_saturate(void)
{
	struct tlsprof_handshake handshake = {};
	struct call call = { .step_calls = { 200 } };

	handshake_add_call(&handshake, &call, 0);
	handshake_add_call(&handshake, &call, 0);
	CHECK_EQUAL(handshake.event.step_calls[0], 255);
	CHECK_EQUAL(saturating_increment(255), 255);
}

static void waits_have_reasons(void)
{
	struct waited_file pipe = { .mode = S_IFIFO | 0600 };

	CHECK_EQUAL(wait_reason(0, false, NR_FUTEX, &pipe), TLSPROF_WAIT_RUN_QUEUE);
	CHECK_EQUAL(wait_reason(1, false, NR_FUTEX, &pipe), TLSPROF_WAIT_LOCK);
	CHECK_EQUAL(wait_reason(2, true, NR_READ, &pipe), TLSPROF_WAIT_DISK);
	CHECK_EQUAL(wait_reason(1, false, NR_READ, &pipe), TLSPROF_WAIT_PIPE);
	CHECK_EQUAL(wait_reason(1, false, NR_RECVFROM, &pipe), TLSPROF_WAIT_NETWORK);
	CHECK_EQUAL(wait_reason(1, false, NR_PPOLL, &pipe), TLSPROF_WAIT_NETWORK);
	CHECK_EQUAL(wait_reason(1, false, NR_GETRANDOM, &pipe), TLSPROF_WAIT_RANDOM);
	CHECK_EQUAL(wait_reason(1, false, -1, &pipe), TLSPROF_WAIT_OTHER);
}

static void only_who_sleeps_in_a_read_or_write_is_asked_for_its_file(void)
{
	CHECK_EQUAL(asks_file(1, false, NR_READ), true);
	CHECK_EQUAL(asks_file(1, false, NR_WRITEV), true);
	CHECK_EQUAL(asks_file(0, false, NR_READ), false);
	CHECK_EQUAL(asks_file(2, true, NR_READ), false);
	CHECK_EQUAL(asks_file(1, false, NR_RECVMSG), false);
	CHECK_EQUAL(asks_file(1, false, NR_FUTEX), false);
	CHECK_EQUAL(asks_file(1, false, -1), false);
}

static __u8 wait_of(__u16 mode, __u32 device, const char *name)
{
	struct waited_file file = { .mode = mode | 0644, .device = device };

	strncpy((char *)file.name, name, sizeof(file.name));
	return wait_of_file(&file);
}

static void a_read_waits_for_what_its_file_is(void)
{
	struct waited_file unknown = {};

	CHECK_EQUAL(wait_of(S_IFSOCK, 0, ""), TLSPROF_WAIT_NETWORK);
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(1, 8), ""), TLSPROF_WAIT_RANDOM);
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(1, 9), ""), TLSPROF_WAIT_RANDOM);
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(10, 183), ""), TLSPROF_WAIT_RANDOM);
	/* /dev/tpm0 signs as well; a terminal; /dev/zero. */
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(10, 224), ""), TLSPROF_WAIT_OTHER);
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(5, 0), ""), TLSPROF_WAIT_OTHER);
	CHECK_EQUAL(wait_of(S_IFCHR, DEVICE(1, 5), ""), TLSPROF_WAIT_OTHER);
	/* A disk with the same numbers; a file of a server in user space. */
	CHECK_EQUAL(wait_of(0060000, DEVICE(1, 8), "random"), TLSPROF_WAIT_OTHER);
	CHECK_EQUAL(wait_of(0100000, 0, "random"), TLSPROF_WAIT_OTHER);
	CHECK_EQUAL(wait_of_file(&unknown), TLSPROF_WAIT_OTHER);
}

static void a_fifo_is_a_random_source_by_its_whole_name(void)
{
	static const char *const sources[] = { "random", "urandom", "srandom", "hwrng" };
	static const char *const others[] = { "",         "rando",           "random1",
					      "urandom2", "Random",          "hwrng0",
					      "log",      "urandom-of-us",   "srandoms",
					      "xurandom", "random.and.long", "entropy" };

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		CHECK_EQUAL(wait_of(S_IFIFO, 0, sources[i]), TLSPROF_WAIT_RANDOM);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK_EQUAL(wait_of(S_IFIFO, 0, others[i]), TLSPROF_WAIT_PIPE);
}

static void of_each_window_the_first_is_compared(void)
{
	const __u64 window = 1ULL << COMPARED_EVERY;
	__u32 last = 0;
	int taken = 0;

	for (__u64 now = 7 * window; now < 17 * window; now += window / 8)
		taken += is_first_of_window(&last, now);
	CHECK_EQUAL(taken, 10);
	CHECK_EQUAL(is_first_of_window(&last, 17 * window - 1), false);
	CHECK_EQUAL(is_first_of_window(&last, 17 * window), true);
}

int main(void)
{
	RUN(time_off_the_cpu_is_not_cpu_time);
	RUN(a_time_before_the_last_switch_is_no_time_on_the_cpu);
	RUN(a_lead_that_is_a_little_longer_is_no_other_figure);
	RUN(of_each_window_the_first_is_compared);
	RUN(cpu_and_waits_add_up_to_the_time_in_the_call);
	RUN(a_step_takes_what_it_calls);
	RUN(a_step_does_not_count_the_traps_in_it);
	RUN(a_step_does_not_count_time_off_the_cpu);
	RUN(the_end_of_a_step_that_never_began_is_ignored);
	RUN(a_return_that_was_not_seen_does_not_hide_later_steps);
	RUN(derive_is_a_key_exchange_after_set_peer_only);
	RUN(a_program_that_runs_again_at_the_same_hit_finds_its_work_done);
	RUN(the_first_group_that_is_named_may_have_no_name);
	RUN(the_length_of_a_result_is_kept_by_kind);
	RUN(only_success_or_an_error_ends_a_handshake);
	RUN(calls_of_one_handshake_add_up);
	RUN(steps_are_observed_only_when_attached_throughout);
	RUN(counts_saturate);
	RUN(waits_have_reasons);
	RUN(only_who_sleeps_in_a_read_or_write_is_asked_for_its_file);
	RUN(a_read_waits_for_what_its_file_is);
	RUN(a_fifo_is_a_random_source_by_its_whole_name);
	return summary();
}
