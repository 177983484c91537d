/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the servers in C answer: a few bytes, or as many as the request names: `GET /1048576`. */
#ifndef TLSPROF_TESTS_ANSWER_H
#define TLSPROF_TESTS_ANSWER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_PIECE = 16 * 1024, MAX_ANSWER = 1 << 30 };

/* How long an answer the request asks for; 0 if it does not say. */
static inline long asked_length(const char *request)
{
	static const char get[] = "GET /";
	long length;

	if (strncmp(request, get, sizeof(get) - 1))
		return 0;
	length = strtol(request + sizeof(get) - 1, NULL, 10);
	return length < 0 || length > MAX_ANSWER ? 0 : length;
}

/* On a blocking socket: in pieces of the size of a record. Whether all was taken. */
static inline bool send_long_answer(SSL *ssl, long length)
{
	static const char piece[ANSWER_PIECE];
	char head[128];
	int written = snprintf(head, sizeof(head), "HTTP/1.0 200 OK\r\nContent-Length: %ld\r\n\r\n",
			       length);

	if (SSL_write(ssl, head, written) <= 0)
		return false;
	for (long left = length; left > 0; left -= ANSWER_PIECE)
		if (SSL_write(ssl, piece, (int)(left < ANSWER_PIECE ? left : ANSWER_PIECE)) <= 0)
			return false;
	return true;
}

#endif
