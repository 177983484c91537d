/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "selftimed.h"

#include "answer.h"
#include "common.h"
#include "record_clock.h"

#include <dlfcn.h>
#include <unistd.h>

struct tls {
	SSL *ssl;
};

static SSL_CTX *ctx;

static enum progress want(int error)
{
	if (error == SSL_ERROR_WANT_READ)
		return PROGRESS_WAIT_READ;
	return error == SSL_ERROR_WANT_WRITE ? PROGRESS_WAIT_WRITE : PROGRESS_END;
}

enum progress tls_handshake(struct connection *conn)
{
	uint64_t before;
	enum progress next;
	int ret, error;

	ERR_clear_error();
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = SSL_accept(conn->tls->ssl);
	conn->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	if (ret == 1) {
		totals->completed_cpu_ns += conn->cpu_ns;
		totals->resumed += SSL_session_reused(conn->tls->ssl);
		count_handshake(conn, &totals->completed);
		return PROGRESS_WAIT_READ;
	}
	error = SSL_get_error(conn->tls->ssl, ret);
	next = want(error);
	if (next == PROGRESS_END)
		count_handshake(conn, peer_went_away(error) ? &totals->abandoned : &totals->failed);
	return next;
}

static record_clock_fn *record_clock;

__attribute__((constructor)) static void find_record_clock(void)
{
	record_clock = (record_clock_fn *)dlsym(RTLD_DEFAULT, RECORD_CLOCK);
}

/* 0 where the record clock is not preloaded. */
static uint64_t record_ns(void)
{
	return record_clock ? record_clock() : 0;
}

/* A short answer fits any socket buffer: a short write cannot happen. Long ones are for the
 * forms that block. */
static bool answer(SSL *ssl, const char *request)
{
	static const char text[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
	long length = asked_length(request);

	return length ? send_long_answer(ssl, length) : SSL_write(ssl, text, sizeof(text) - 1) > 0;
}

enum progress tls_serve(struct connection *conn)
{
	char request[4096];
	uint64_t before = record_ns();
	int ret = SSL_read(conn->tls->ssl, request, sizeof(request) - 1);

	if (ret <= 0)
		return want(SSL_get_error(conn->tls->ssl, ret));
	request[ret] = '\0';
	if (answer(conn->tls->ssl, request))
		SSL_shutdown(conn->tls->ssl);
	totals->record_ns += record_ns() - before;
	return PROGRESS_END;
}

void connections_setup(const struct options *options)
{
	SSL_CTX *made = SSL_CTX_new(TLS_server_method());

	if (!made)
		fail("SSL_CTX_new");
	use_version(made, options->tls ? tls_version(options->tls) : 0);
	if (SSL_CTX_use_certificate_chain_file(made, options->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(made, options->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_set_session_id_context(made, (const unsigned char *)"t", 1) != 1 ||
	    (options->groups && SSL_CTX_set1_groups_list(made, options->groups) != 1) ||
	    (options->ciphers && SSL_CTX_set_cipher_list(made, options->ciphers) != 1) ||
	    (options->ciphersuites && SSL_CTX_set_ciphersuites(made, options->ciphersuites) != 1))
		fail("TLS options");
	/* For suites with DHE, where they are asked for. */
	SSL_CTX_set_dh_auto(made, 1);
	if (options->no_tickets)
		SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
	ctx = made;
}

struct tls *tls_open(int fd)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		die("calloc");
	tls->ssl = SSL_new(ctx);
	if (!tls->ssl || !SSL_set_fd(tls->ssl, fd))
		die("SSL_new");
	return tls;
}

void tls_close(struct tls *tls)
{
	SSL_free(tls->ssl);
	free(tls);
}
