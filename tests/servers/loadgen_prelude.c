/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What loadgen says before TLS: a PROXY protocol header, or a protocol that
 * switches to TLS on the client's word. */
#include "loadgen.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { STEPS = 3, LINE_LEN = 512 };

/* Sends `say` (nothing in the first step of some), then reads lines up to the
 * first that begins with `expect`; nothing is expected of a PROXY receiver. */
struct step {
	const char *say;
	const char *expect;
};

static const struct script {
	const char *name;
	struct step steps[STEPS];
	const char *request;
} scripts[PRELUDE_COUNT] = {
	[PRELUDE_NONE] = { .name = "none" },
	[PRELUDE_PROXY1] = { .name = "proxy1",
			     .steps = { { "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n",
					  NULL } } },
	[PRELUDE_PROXY2] = { .name = "proxy2" },
	[PRELUDE_SMTP] = { .name = "smtp",
			   .steps = { { "", "220 " },
				      { "EHLO localhost\r\n", "250 " },
				      { "STARTTLS\r\n", "220 " } },
			   .request = "QUIT\r\n" },
	[PRELUDE_IMAP] = { .name = "imap",
			   .steps = { { "", "* OK" }, { "a STARTTLS\r\n", "a OK" } },
			   .request = "b LOGOUT\r\n" },
	[PRELUDE_POP3] = { .name = "pop3",
			   .steps = { { "", "+OK" }, { "STLS\r\n", "+OK" } },
			   .request = "QUIT\r\n" },
};

/* Version 2: signature, PROXY command, TCP over IPv4, 12 bytes of addresses. */
static const char proxy2[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"
			     "\xc0\0\2\1\xc0\0\2\2\x9c\x40\1\xbb";

enum prelude prelude_named(const char *name)
{
	enum prelude prelude = PRELUDE_NONE;

	while (prelude < PRELUDE_COUNT && strcmp(scripts[prelude].name, name) != 0)
		prelude++;
	return prelude;
}

static int send_all(int fd, const char *bytes, size_t length)
{
	return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : -1;
}

/* Reads byte by byte: what follows the line is not ours to take. */
static int read_line(int fd, char line[LINE_LEN])
{
	for (int i = 0; i < LINE_LEN - 1; i++) {
		if (recv(fd, line + i, 1, 0) != 1)
			return -1;
		if (line[i] == '\n') {
			line[i + 1] = '\0';
			return 0;
		}
	}
	return -1;
}

static int await_line(int fd, const char *expect)
{
	char line[LINE_LEN];

	do
		if (read_line(fd, line))
			return -1;
	while (strncmp(line, expect, strlen(expect)) != 0);
	return 0;
}

int prelude_say(enum prelude prelude, int fd)
{
	const struct step *steps = scripts[prelude].steps;

	if (prelude == PRELUDE_PROXY2)
		return send_all(fd, proxy2, sizeof(proxy2) - 1);
	for (int i = 0; i < STEPS && steps[i].say; i++) {
		if (send_all(fd, steps[i].say, strlen(steps[i].say)) ||
		    (steps[i].expect && await_line(fd, steps[i].expect))) {
			fprintf(stderr, "the server did not say %s\n", steps[i].expect);
			return -1;
		}
	}
	return 0;
}

const char *prelude_request(enum prelude prelude)
{
	const char *request = scripts[prelude].request;

	return request ? request : "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
}
