/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See record_clock.c: looked up at run time, since it is there only if it is preloaded. */
#ifndef TLSPROF_TESTS_RECORD_CLOCK_H
#define TLSPROF_TESTS_RECORD_CLOCK_H

#include <stdint.h>

#define RECORD_CLOCK "record_clock_ns"

typedef uint64_t record_clock_fn(void);

/* What the calling thread has spent so far in calls of libssl into libcrypto for records,
 * those of handshakes included. */
record_clock_fn record_clock_ns;

#endif
