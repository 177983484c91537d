/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"
#define __TARGET_ARCH_x86
#include "payload.h"

static void calls_that_move_data_have_a_direction(void)
{
	CHECK_EQUAL(direction_of_syscall(NR_READ), TLSPROF_DIRECTION_IN);
	CHECK_EQUAL(direction_of_syscall(NR_RECVMMSG), TLSPROF_DIRECTION_IN);
	CHECK_EQUAL(direction_of_syscall(NR_WRITEV), TLSPROF_DIRECTION_OUT);
	CHECK_EQUAL(direction_of_syscall(NR_SENDFILE), TLSPROF_DIRECTION_OUT);
	CHECK_EQUAL(direction_of_syscall(NR_FUTEX), TLSPROF_DIRECTION_NONE);
	CHECK_EQUAL(direction_of_syscall(-1), TLSPROF_DIRECTION_NONE);
}

static void a_buffer_is_only_in_calls_that_move_data(void)
{
	for (long nr = -1; nr < 512; nr++) {
		if (buffer_of_syscall(nr) != BUFFER_UNKNOWN)
			CHECK_EQUAL(!direction_of_syscall(nr), 0);
	}
	CHECK_EQUAL(buffer_of_syscall(NR_RECVFROM), BUFFER_PLAIN);
	CHECK_EQUAL(buffer_of_syscall(NR_READV), BUFFER_VECTOR);
	CHECK_EQUAL(buffer_of_syscall(NR_SENDMSG), BUFFER_MESSAGE);
	CHECK_EQUAL(buffer_of_syscall(NR_SENDFILE), BUFFER_UNKNOWN);
}

static void only_receives_have_flags_that_matter(void)
{
	for (long nr = -1; nr < 512; nr++) {
		if (receive_flags_of_syscall(nr))
			CHECK_EQUAL(direction_of_syscall(nr), TLSPROF_DIRECTION_IN);
	}
	CHECK_EQUAL(receive_flags_of_syscall(NR_RECVMSG), 3);
	CHECK_EQUAL(receive_flags_of_syscall(NR_RECVFROM), 4);
	CHECK_EQUAL(receive_flags_of_syscall(NR_READ), 0);
}

static void only_accepts_return_connections(void)
{
	int found = 0;

	for (long nr = -1; nr < 512; nr++) {
		found += accepts(nr);
		if (accepts(nr))
			CHECK_EQUAL(direction_of_syscall(nr), TLSPROF_DIRECTION_NONE);
	}
	CHECK_EQUAL(found, 2);
}

int main(void)
{
	RUN(only_accepts_return_connections);
	RUN(calls_that_move_data_have_a_direction);
	RUN(a_buffer_is_only_in_calls_that_move_data);
	RUN(only_receives_have_flags_that_matter);
	return summary();
}
