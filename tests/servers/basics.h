/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the test programs of all TLS libraries share: the end of a program, and clocks. */
#ifndef TLSPROF_TESTS_BASICS_H
#define TLSPROF_TESTS_BASICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
