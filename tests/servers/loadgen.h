/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What one client connection of loadgen does and what came of it. */
#ifndef TLSPROF_TESTS_LOADGEN_H
#define TLSPROF_TESTS_LOADGEN_H

#include "common.h"

#include <netinet/in.h>

enum kind {
	KIND_FULL,         /* full handshake, one request */
	KIND_RESUME,       /* resumes the session of the first full one */
	KIND_ABORT_HELLO,  /* half a ClientHello, then end of file */
	KIND_ABORT_FLIGHT, /* reads the server's flight, then end of file */
	KIND_RESET,        /* reads the server's flight, then a TCP reset */
	KIND_GARBAGE,      /* a handshake record whose ClientHello is nonsense */
	KIND_NO_GROUP,     /* offers only a group that the server lacks */
	KIND_NO_VERSION,   /* offers only a version that the server lacks */
	KIND_REJECT,       /* refuses the server's certificate with an alert */
	KIND_COUNT,
};

enum outcome { OUTCOME_COMPLETED, OUTCOME_FAILED, OUTCOME_ABANDONED, OUTCOME_RAW };

struct plan {
	struct sockaddr_in server;
	SSL_CTX *ctx;
	SSL_SESSION *session; /* what KIND_RESUME takes up */
	int foreign_version;  /* what KIND_NO_VERSION offers */
	const char *foreign_group;
	const char *server_name;
};

struct result {
	enum outcome outcome;
	int resumed;
	uint64_t cpu_ns; /* in SSL_connect */
	char version[16];
	char cipher[48];
	char group[24];
	SSL_SESSION *session; /* KIND_FULL only; the caller frees it */
};

/* Opens a connection, does what `kind` says, and waits for the server to close
 * its end, so that the server's own count is made when this returns. Returns 0,
 * or -1 with the cause on stderr when something else happened than planned. */
int run_connection(const struct plan *plan, enum kind kind, struct result *result);

#endif
