/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "selftimed.h"

#include <unistd.h>

struct totals *totals;

static void count_handshake(struct connection *conn, atomic_ulong *outcome)
{
	(*outcome)++;
	totals->cpu_ns += conn->cpu_ns;
	totals->wall_ns += clock_ns(CLOCK_MONOTONIC) - conn->began_ns;
	conn->handshake_ended = true;
}

static enum progress want(int error)
{
	if (error == SSL_ERROR_WANT_READ)
		return PROGRESS_WAIT_READ;
	return error == SSL_ERROR_WANT_WRITE ? PROGRESS_WAIT_WRITE : PROGRESS_END;
}

static enum progress handshake(struct connection *conn)
{
	uint64_t before;
	enum progress next;
	int ret, error;

	ERR_clear_error();
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = SSL_accept(conn->ssl);
	conn->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	if (ret == 1) {
		totals->completed_cpu_ns += conn->cpu_ns;
		totals->resumed += SSL_session_reused(conn->ssl);
		count_handshake(conn, &totals->completed);
		return PROGRESS_WAIT_READ;
	}
	error = SSL_get_error(conn->ssl, ret);
	next = want(error);
	if (next == PROGRESS_END)
		count_handshake(conn, peer_went_away(error) ? &totals->abandoned : &totals->failed);
	return next;
}

static enum progress serve(struct connection *conn)
{
	static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
	char request[4096];
	int ret = SSL_read(conn->ssl, request, sizeof(request));

	if (ret <= 0)
		return want(SSL_get_error(conn->ssl, ret));
	/* The answer fits any socket buffer: a short write cannot happen. */
	if (SSL_write(conn->ssl, answer, sizeof(answer) - 1) > 0)
		SSL_shutdown(conn->ssl);
	return PROGRESS_END;
}

enum progress connection_advance(struct connection *conn)
{
	if (!conn->handshake_ended) {
		enum progress next = handshake(conn);

		if (!conn->handshake_ended || next == PROGRESS_END)
			return next;
	}
	return serve(conn);
}

struct connection *connection_open(SSL_CTX *ctx, int fd)
{
	struct connection *conn = calloc(1, sizeof(*conn));

	if (!conn)
		die("calloc");
	conn->fd = fd;
	conn->ssl = SSL_new(ctx);
	conn->began_ns = clock_ns(CLOCK_MONOTONIC);
	if (!conn->ssl || !SSL_set_fd(conn->ssl, fd))
		die("SSL_new");
	return conn;
}

void connection_close(struct connection *conn)
{
	if (!conn->handshake_ended)
		count_handshake(conn, &totals->abandoned);
	SSL_free(conn->ssl);
	/* Last: the client takes the close as a sign that all is counted. */
	close(conn->fd);
	free(conn);
	totals->connections--;
}
