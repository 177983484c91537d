/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One connection of the stand-in for Domino's `http`. */
#ifndef TLSPROF_TESTS_STATIC_HTTP_H
#define TLSPROF_TESTS_STATIC_HTTP_H

#include "common.h"

enum { TICKET_KEY_BYTES = 80, ARGUMENTS_MAX = 32 };

struct service {
	SSL_CTX *ctx;           /* NULL: HTTP without TLS */
	unsigned long requests; /* that a connection may carry */
	size_t bytes;           /* of each answer's body */
};

/* Serves the connection to its end, and closes it. */
void serve_connection(const struct service *service, int fd);

/* Starts the program itself anew for each connection, with the same arguments and two
 * more: the descriptor, and that of a file with keys for tickets. */
_Noreturn void accept_in_programs(int listener, char **arguments);

#endif
