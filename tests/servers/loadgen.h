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
	KIND_PLAIN,        /* an HTTP request without TLS */
	KIND_DRIBBLE,      /* as KIND_FULL, its ClientHello written byte by byte */
	KIND_COUNT,
};

enum outcome {
	OUTCOME_COMPLETED,
	OUTCOME_FAILED,
	OUTCOME_ABANDONED,
	OUTCOME_PLAIN, /* no handshake */
};

/* What is said on a connection before TLS. */
enum prelude {
	PRELUDE_NONE,
	PRELUDE_PROXY1, /* PROXY protocol, version 1: text */
	PRELUDE_PROXY2, /* version 2: binary */
	PRELUDE_SMTP,   /* STARTTLS */
	PRELUDE_IMAP,   /* STARTTLS */
	PRELUDE_POP3,   /* STLS */
	PRELUDE_COUNT,
};

struct plan {
	struct sockaddr_in server;
	SSL_CTX *ctx;
	SSL_SESSION *session; /* what KIND_RESUME takes up */
	int foreign_version;  /* what KIND_NO_VERSION offers */
	const char *foreign_group;
	const char *server_name;
	enum prelude prelude;
};

struct result {
	enum outcome outcome;
	int resumed;
	uint64_t cpu_ns; /* in SSL_connect */
	char version[16];
	char cipher[48];
	char group[24];
	/* The same in the words of the TLS registries, of this one handshake: the
	 * group of a resumed TLS 1.2 session is none. */
	const char *registry_version;
	const char *registry_cipher;
	char registry_group[24];
	const char *resumption; /* none, session_id, ticket, psk */
	SSL_SESSION *session;   /* KIND_FULL only; the caller frees it */
};

/* Opens a connection, does what `kind` says, and waits for the server to close
 * its end, so that the server's own count is made when this returns. Returns 0,
 * or -1 with the cause on stderr when something else happened than planned. */
int run_connection(const struct plan *plan, enum kind kind, struct result *result);

/* The prelude of that name; PRELUDE_COUNT if there is none. */
enum prelude prelude_named(const char *name);

/* Says what comes before TLS. Returns 0, or -1 if the server did not play its part. */
int prelude_say(enum prelude prelude, int fd);

/* A request of the protocol that answers and then ends the connection. */
const char *prelude_request(enum prelude prelude);

/* Fills in what was negotiated, for people and in the words of the registries. */
void note_negotiated(SSL *ssl, struct result *result);

/* Counts a connection; `status` as run_connection returned it. Takes a lock. */
void results_add(const struct result *result, int status);

/* Prints all counts as one line of JSON. Returns how many went otherwise than planned. */
unsigned long results_print(void);

#endif
