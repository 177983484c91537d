/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The self-timed server: its options, one connection, and the totals over all of them. What a TLS
 * library does of that is in selftimed_connection.c (OpenSSL) and selftimed_gnutls.c.
 */
#ifndef TLSPROF_TESTS_SELFTIMED_H
#define TLSPROF_TESTS_SELFTIMED_H

#include "basics.h"

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

enum form { FORM_NONE, FORM_THREADS, FORM_EPOLL, FORM_FORK };

/* NULL: the library's own choice. */
struct options {
	enum form form;
	int port;
	bool no_tickets;
	const char *cert;
	const char *key;
	const char *tls;
	const char *groups;
	const char *ciphers;
	const char *ciphersuites;
};

/* What a connection has of its library. */
struct tls;

struct connection {
	struct tls *tls;
	int fd;
	bool handshake_ended;
	uint64_t began_ns;
	uint64_t cpu_ns;
};

enum progress { PROGRESS_WAIT_READ, PROGRESS_WAIT_WRITE, PROGRESS_END };

extern struct totals *totals;

/* To be called once, before connections are opened. */
void connections_setup(const struct options *options);

/* What the library does for a connection whose socket is `fd`. */
struct tls *tls_open(int fd);

/* Goes on with the handshake as far as it can, and counts it once it has ended. */
enum progress tls_handshake(struct connection *conn);

/* Goes on with the one request, as far as it can. */
enum progress tls_serve(struct connection *conn);

void tls_close(struct tls *tls);

static inline void count_handshake(struct connection *conn, atomic_ulong *outcome)
{
	(*outcome)++;
	totals->cpu_ns += conn->cpu_ns;
	totals->wall_ns += clock_ns(CLOCK_MONOTONIC) - conn->began_ns;
	conn->handshake_ended = true;
}

#endif
