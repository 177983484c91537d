/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the test programs with OpenSSL share: errors and TLS version names. */
#ifndef TLSPROF_TESTS_COMMON_H
#define TLSPROF_TESTS_COMMON_H

#include "basics.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static inline _Noreturn void die(const char *what)
{
	perror(what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

static inline int tls_version(const char *name)
{
	if (!strcmp(name, "1.2"))
		return TLS1_2_VERSION;
	if (!strcmp(name, "1.3"))
		return TLS1_3_VERSION;
	if (!strcmp(name, "any"))
		return 0;
	fprintf(stderr, "unknown TLS version %s: use 1.2, 1.3 or any\n", name);
	exit(2);
}

/* Sets the one version allowed; 0 leaves the library's own range. */
static inline void use_version(SSL_CTX *ctx, int version)
{
	if (version && (!SSL_CTX_set_min_proto_version(ctx, version) ||
			!SSL_CTX_set_max_proto_version(ctx, version)))
		die("TLS version");
}

/* Whether a call ended with `error` (SSL_get_error) because the peer went away:
 * a reset, a broken pipe, or an end of file, which OpenSSL 3 raises as an error
 * of its own. All else is a failure. */
static inline bool peer_went_away(int error)
{
	if (error == SSL_ERROR_SYSCALL || error == SSL_ERROR_ZERO_RETURN)
		return true;
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
	return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
#else
	return false;
#endif
}

#endif
