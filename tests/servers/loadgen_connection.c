/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "loadgen.h"

#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVER_TIMEOUT_SECONDS = 60, HELLO_LIMIT = 4096 };

static int tcp_connect(const struct sockaddr_in *server)
{
	struct timeval timeout = { .tv_sec = SERVER_TIMEOUT_SECONDS };
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server))) {
		perror("connect");
		close(fd);
		return -1;
	}
	return fd;
}

/* Ends our side and reads until the server ends its own. */
static int await_close(int fd)
{
	char rest[4096];
	ssize_t got;

	shutdown(fd, SHUT_WR);
	do
		got = recv(fd, rest, sizeof(rest), 0);
	while (got > 0);
	if (got == 0 || errno == ECONNRESET || errno == ENOTCONN)
		return 0;
	perror("waiting for the server to close");
	return -1;
}

static int await_flight(int fd)
{
	char first;

	if (recv(fd, &first, 1, MSG_PEEK) == 1)
		return 0;
	perror("waiting for the server's flight");
	return -1;
}

/* The answer is awaited as long as our side is open: it is the server that gives
 * up, with an alert or by going away. */
static int send_garbage(int fd, struct result *result)
{
	/* Record of 6 bytes: a ClientHello of two bytes, version only. */
	static const unsigned char record[] = { 0x16, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3 };
	unsigned char answer[64];
	ssize_t got;

	if (send(fd, record, sizeof(record), MSG_NOSIGNAL) != (ssize_t)sizeof(record))
		return -1;
	got = recv(fd, answer, sizeof(answer), 0);
	result->outcome = got > 0 && answer[0] == SSL3_RT_ALERT ? OUTCOME_FAILED
								: OUTCOME_ABANDONED;
	return await_close(fd);
}

static void send_reset(int fd)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* Makes a real ClientHello in memory; it lives as long as the connection's BIO. */
static long make_hello(SSL *ssl, char **hello)
{
	BIO *out = BIO_new(BIO_s_mem());
	long length;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_connect(ssl);
	length = BIO_get_mem_data(out, hello);
	if (length <= 0 || length > HELLO_LIMIT) {
		fprintf(stderr, "no ClientHello was made\n");
		return -1;
	}
	return length;
}

/* Each byte a segment of its own (TCP_NODELAY); the server gets a chance to read it. */
static int dribble_hello(int fd, SSL *ssl)
{
	char *hello;
	long length = make_hello(ssl, &hello);

	if (length < 0)
		return -1;
	for (long i = 0; i < length; i++) {
		if (send(fd, hello + i, 1, MSG_NOSIGNAL) != 1) {
			perror("send");
			return -1;
		}
		sched_yield();
	}
	return 0;
}

/* Sends a ClientHello or half of one, and goes away. */
static int abort_handshake(int fd, SSL *ssl, enum kind kind)
{
	char *hello;
	long length = make_hello(ssl, &hello);

	if (length < 0)
		return -1;
	if (kind == KIND_ABORT_HELLO)
		length /= 2;
	if (send(fd, hello, (size_t)length, MSG_NOSIGNAL) != length) {
		perror("send");
		return -1;
	}
	if (kind == KIND_ABORT_HELLO)
		return await_close(fd);
	if (await_flight(fd))
		return -1;
	if (kind == KIND_ABORT_FLIGHT)
		return await_close(fd);
	send_reset(fd);
	return 0;
}

static bool should_fail(enum kind kind)
{
	return kind == KIND_NO_GROUP || kind == KIND_NO_VERSION || kind == KIND_REJECT;
}

static int prepare(const struct plan *plan, enum kind kind, SSL *ssl)
{
	if (plan->server_name)
		SSL_set_tlsext_host_name(ssl, plan->server_name);
	switch (kind) {
	case KIND_RESUME: {
		/* A copy: OpenSSL may mark a session used up when its SSL ends. */
		SSL_SESSION *copy = SSL_SESSION_dup(plan->session);
		int ok = copy && SSL_set_session(ssl, copy);

		SSL_SESSION_free(copy);
		return ok ? 0 : -1;
	}
	case KIND_NO_GROUP:
		/* Without RSA key transport, which needs no group in TLS 1.2. */
		return SSL_set1_groups_list(ssl, plan->foreign_group) == 1 &&
				       SSL_set_cipher_list(ssl, "ECDHE") == 1
			       ? 0
			       : -1;
	case KIND_NO_VERSION:
		return SSL_set_min_proto_version(ssl, plan->foreign_version) &&
				       SSL_set_max_proto_version(ssl, plan->foreign_version)
			       ? 0
			       : -1;
	case KIND_REJECT:
		SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
		return 0;
	default:
		return 0;
	}
}

/* One request, one answer. The session is taken with the answer: in TLS 1.3 the
 * ticket comes before it. It is a copy: OpenSSL gives a session up when the peer
 * ends without close_notify, as Java's server does. */
static int request(SSL *ssl, const char *text, struct result *result, bool keep_session)
{
	char answer[4096];
	int length = 0;
	int got;

	if (SSL_write(ssl, text, (int)strlen(text)) <= 0)
		return -1;
	while ((got = SSL_read(ssl, answer, sizeof(answer))) > 0) {
		length += got;
		if (keep_session && !result->session)
			result->session = SSL_SESSION_dup(SSL_get0_session(ssl));
	}
	SSL_shutdown(ssl);
	return length ? 0 : -1;
}

static int connect_tls(const struct plan *plan, int fd, SSL *ssl, enum kind kind,
		       struct result *result)
{
	uint64_t before;
	int ret;

	if (kind == KIND_DRIBBLE && dribble_hello(fd, ssl))
		return -1;
	if (!SSL_set_fd(ssl, fd))
		die("SSL_set_fd");
	ERR_clear_error();
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = SSL_connect(ssl);
	result->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	result->outcome = ret == 1                                  ? OUTCOME_COMPLETED
			  : peer_went_away(SSL_get_error(ssl, ret)) ? OUTCOME_ABANDONED
								    : OUTCOME_FAILED;
	if ((ret != 1) != should_fail(kind))
		return -1;
	if (ret != 1)
		return await_close(fd);
	note_negotiated(ssl, result);
	if (request(ssl, prelude_request(plan->prelude), result, kind == KIND_FULL))
		return -1;
	return await_close(fd);
}

/* An HTTP request without TLS. Some servers answer in plain text, others with an
 * alert, others not at all. */
static int run_plain(int fd)
{
	const char *text = prelude_request(PRELUDE_NONE);

	if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		return -1;
	return await_close(fd);
}

static int run_tls(const struct plan *plan, int fd, enum kind kind, struct result *result)
{
	SSL *ssl = SSL_new(plan->ctx);
	int status;

	if (!ssl || prepare(plan, kind, ssl))
		die("SSL_new");
	if (kind == KIND_ABORT_HELLO || kind == KIND_ABORT_FLIGHT || kind == KIND_RESET) {
		result->outcome = OUTCOME_ABANDONED;
		status = abort_handshake(fd, ssl, kind);
	} else {
		status = connect_tls(plan, fd, ssl, kind, result);
	}
	if (status)
		ERR_print_errors_fp(stderr);
	SSL_free(ssl);
	return status;
}

int run_connection(const struct plan *plan, enum kind kind, struct result *result)
{
	int fd = tcp_connect(&plan->server);
	int status = -1;

	if (fd < 0)
		return -1;
	if (kind == KIND_PLAIN) {
		result->outcome = OUTCOME_PLAIN;
		status = run_plain(fd);
	} else if (prelude_say(plan->prelude, fd) == 0) {
		if (kind == KIND_GARBAGE) {
			status = send_garbage(fd, result);
		} else {
			status = run_tls(plan, fd, kind, result);
		}
	}
	close(fd);
	return status;
}
