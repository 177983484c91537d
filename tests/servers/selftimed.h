/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One connection of the self-timed server, and the totals over all of them. */
#ifndef TLSPROF_TESTS_SELFTIMED_H
#define TLSPROF_TESTS_SELFTIMED_H

#include "common.h"

#include <stdatomic.h>

/* Shared memory, so that the processes of --fork add to it too. */
struct totals {
	atomic_ulong completed;
	atomic_ulong resumed; /* part of completed */
	atomic_ulong failed;
	atomic_ulong abandoned;
	atomic_ullong cpu_ns; /* all handshakes, however they ended */
	atomic_ullong completed_cpu_ns;
	atomic_ullong wall_ns;
	atomic_ullong record_ns;  /* records of answers in libcrypto, if the record clock runs */
	atomic_ulong connections; /* open now */
};

struct connection {
	SSL *ssl;
	int fd;
	bool handshake_ended;
	uint64_t began_ns;
	uint64_t cpu_ns;
};

enum progress { PROGRESS_WAIT_READ, PROGRESS_WAIT_WRITE, PROGRESS_END };

extern struct totals *totals;

/* Takes `fd` over; connection_close closes it. */
struct connection *connection_open(SSL_CTX *ctx, int fd);

/* Goes on with the handshake, then with the one request, as far as it can. */
enum progress connection_advance(struct connection *conn);

/* A handshake still under way counts as abandoned. */
void connection_close(struct connection *conn);

#endif
