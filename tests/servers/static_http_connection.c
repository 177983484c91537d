/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "static_http.h"
#include "answer.h"

#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_LIMIT = 4096, HEAD_LIMIT = 256 };

struct stream {
	SSL *ssl; /* NULL without TLS */
	int fd;
};

static long stream_read(struct stream *stream, char *data, size_t room)
{
	return stream->ssl ? SSL_read(stream->ssl, data, (int)room)
			   : recv(stream->fd, data, room, 0);
}

static bool stream_write(struct stream *stream, const char *data, size_t length)
{
	long done = stream->ssl ? SSL_write(stream->ssl, data, (int)length)
				: send(stream->fd, data, length, MSG_NOSIGNAL);

	return done == (long)length;
}

/* Reads the head of a request, which is all of one: no client here sends a body, or a
 * second request before the first is answered. */
static bool read_request(struct stream *stream, char request[REQUEST_LIMIT])
{
	size_t length = 0;

	while (length < REQUEST_LIMIT - 1) {
		long got = stream_read(stream, request + length, REQUEST_LIMIT - 1 - length);

		if (got <= 0)
			return false;
		length += (size_t)got;
		request[length] = 0;
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

/* By the rules of HTTP/1.1, and by those of HTTP/1.0, which is what ab speaks. */
static bool wants_more(const char *request)
{
	if (strcasestr(request, "\nConnection: close"))
		return false;
	return strstr(request, " HTTP/1.1\r\n") || strcasestr(request, "\nConnection: keep-alive");
}

static bool answer(struct stream *stream, size_t bytes, bool last)
{
	char *text = malloc(HEAD_LIMIT + bytes);
	int head;
	bool written;

	if (!text)
		die("malloc");
	head = snprintf(text, HEAD_LIMIT,
			"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
			"Connection: %s\r\n\r\n",
			bytes, last ? "close" : "keep-alive");
	memset(text + head, 'x', bytes);
	text[(size_t)head + bytes - 1] = '\n';
	written = stream_write(stream, text, (size_t)head + bytes);
	free(text);
	return written;
}

static void serve_requests(const struct service *service, struct stream *stream)
{
	char request[REQUEST_LIMIT];
	bool more = true;

	for (unsigned long turn = 1; more && read_request(stream, request); turn++) {
		long asked = asked_length(request);

		if (asked && stream->ssl) {
			send_long_answer(stream->ssl, asked);
			return;
		}
		more = turn < service->requests && wants_more(request);
		if (!answer(stream, service->bytes, !more))
			return;
	}
}

void serve_connection(const struct service *service, int fd)
{
	struct stream stream = { .fd = fd };

	if (service->ctx) {
		stream.ssl = SSL_new(service->ctx);
		if (!stream.ssl || !SSL_set_fd(stream.ssl, fd))
			die("SSL_new");
		if (SSL_accept(stream.ssl) == 1) {
			serve_requests(service, &stream);
			SSL_shutdown(stream.ssl);
		}
		ERR_clear_error();
		SSL_free(stream.ssl);
	} else {
		serve_requests(service, &stream);
	}
	close(fd);
}
