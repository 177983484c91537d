/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What comes before TLS: captured sessions, and what clients say that does not lead there. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "prelude.h"

#ifndef FIXTURES
#define FIXTURES "../../agent/tests/fixtures/hello/"
#endif

static const char *const names[] = {
	[TLSPROF_UPGRADE_SMTP] = "smtp",   [TLSPROF_UPGRADE_FTP] = "ftp",
	[TLSPROF_UPGRADE_IMAP] = "imap",   [TLSPROF_UPGRADE_POP3] = "pop3",
	[TLSPROF_UPGRADE_LDAP] = "ldap",   [TLSPROF_UPGRADE_POSTGRESQL] = "postgresql",
	[TLSPROF_UPGRADE_MYSQL] = "mysql",
};

/* Lets one side say something; returns the first verdict that is not to go on. */
static int say(struct prelude *prelude, bool client, const void *text, size_t length)
{
	const __u8 *bytes = text;
	int verdict = PRELUDE_GOES_ON;

	for (size_t i = 0; i < length && verdict == PRELUDE_GOES_ON; i++)
		verdict = client ? prelude_client_byte(prelude, bytes[i])
				 : prelude_server_byte(prelude, bytes[i]);
	return verdict;
}

#define CLIENT(prelude, text) say(prelude, true, text, sizeof(text) - 1)
#define SERVER(prelude, text) say(prelude, false, text, sizeof(text) - 1)

/* What a client hears first, and then says, in a new session. */
#define SESSION(greeting, text)                                                     \
	({                                                                          \
		struct prelude prelude_ = {};                                       \
		int first_ = SERVER(&prelude_, greeting);                           \
		first_ == PRELUDE_GOES_ON ? CLIENT(&prelude_, text) : 100 + first_; \
	})

/* Plays the lines "C hex" and "S hex" of a captured session up to the verdict. */
static int play(const char *name, struct prelude *prelude, char *expected, size_t size)
{
	static char line[256 * 1024];
	static __u8 bytes[sizeof(line) / 2];
	char path[256];
	int verdict = PRELUDE_GOES_ON;
	FILE *file;

	snprintf(path, sizeof(path), FIXTURES "%s.hex", name);
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		exit(1);
	}
	while (verdict == PRELUDE_GOES_ON && fgets(line, sizeof(line), file)) {
		size_t length = 0;

		if (line[0] == '=')
			snprintf(expected, size, "%s", line);
		if (line[0] != 'C' && line[0] != 'S')
			continue;
		for (char *at = line + 2; isxdigit(at[0]) && isxdigit(at[1]); at += 2) {
			char digits[] = { at[0], at[1], 0 };

			bytes[length++] = strtoul(digits, NULL, 16);
		}
		verdict = say(prelude, line[0] == 'C', bytes, length);
	}
	fclose(file);
	return verdict;
}

static void captured_sessions_lead_to_tls_and_tell_their_protocol(void)
{
	static const char *const sessions[] = {
		"starttls-smtp-tls12",       "starttls-smtp-tls13",
		"starttls-smtp-python",      "starttls-imap-tls12",
		"starttls-imap-tls13",       "starttls-imap-python",
		"starttls-pop3-tls12",       "starttls-pop3-tls13",
		"starttls-ftp-tls12",        "starttls-ftp-tls13",
		"starttls-ldap-tls12",       "starttls-ldap-tls13",
		"starttls-postgresql-tls13", "starttls-mysql-tls12",
		"starttls-mysql-tls13",      "proxy-v1-curl",
		"openssl30-tls13-full",
	};

	for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
		struct prelude prelude = {};
		char expected[1024] = "", upgrade[32] = "upgrade=";

		CHECK_EQUAL(play(sessions[i], &prelude, expected, sizeof(expected)), PRELUDE_TLS);
		CHECK_EQUAL(prelude.proxied, strstr(expected, "proxy_protocol") != NULL);
		CHECK_EQUAL(prelude.upgrade != 0, strstr(expected, "upgrade=") != NULL);
		if (!prelude.upgrade)
			continue;
		strcat(upgrade, names[prelude.upgrade]);
		CHECK_EQUAL(strstr(expected, upgrade) != NULL, 1);
	}
}

static void captured_sessions_without_tls_are_left_alone(void)
{
	struct prelude http = {}, postgresql = {};
	char expected[1024];

	CHECK_EQUAL(play("plain-http-curl", &http, expected, sizeof(expected)), PRELUDE_OTHER);
	CHECK_EQUAL(play("starttls-postgresql-plain", &postgresql, expected, sizeof(expected)),
		    PRELUDE_OTHER);
}

static void a_login_without_tls_ends_it(void)
{
	CHECK_EQUAL(SESSION("220 mail ESMTP\r\n", "EHLO me\r\nAUTH PLAIN AG1lAHNlY3JldA==\r\n"),
		    PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("220 mail ESMTP\r\n", "EHLO me\r\nMAIL FROM:<me@example.org>\r\n"),
		    PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("220 ftp\r\n", "USER me\r\n"), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("* OK ready\r\n", "a1 LOGIN me secret\r\n"), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("* OK ready\r\n", "a1 ID NIL\r\na2 AUTHENTICATE PLAIN\r\n"),
		    PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("+OK ready\r\n", "CAPA\r\nUSER me\r\n"), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("+OK ready\r\n", "APOP me c4c9334bac560ecc979e58001b3e22fb\r\n"),
		    PRELUDE_OTHER);
	/* The answer to a challenge is not a command. */
	CHECK_EQUAL(SESSION("+OK ready\r\n", "AUTH\r\n"), PRELUDE_OTHER);
}

static void it_ends_at_the_command_and_not_behind_its_arguments(void)
{
	CHECK_EQUAL(SESSION("220 mail\r\n", "AUTH PLAIN "), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("220 ftp\r\n", "USER "), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("* OK\r\n", "a1 LOGIN "), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("+OK\r\n", "PASS "), PRELUDE_OTHER);
	CHECK_EQUAL(SESSION("+OK\r\n", "PASSWORDOFMANYLETTERS\r\n"), PRELUDE_OTHER);
}

static void commands_may_be_in_small_letters(void)
{
	CHECK_EQUAL(SESSION("220 mail\r\n", "ehlo me\r\nstarttls\r\n\x16"), PRELUDE_TLS);
	CHECK_EQUAL(SESSION("* OK\r\n", "x capability\r\ny starttls\r\n\x16"), PRELUDE_TLS);
	CHECK_EQUAL(SESSION("220-ftp\r\n", "auth tls\n\x16"), PRELUDE_TLS);
}

static void a_client_may_go_on_when_tls_is_refused(void)
{
	CHECK_EQUAL(SESSION("220 mail\r\n", "STARTTLS\r\nQUIT\r\n"), PRELUDE_GOES_ON);
	CHECK_EQUAL(SESSION("220 ftp\r\n", "AUTH TLS\r\nAUTH SSL\r\n\x16"), PRELUDE_TLS);
}

static void other_protocols_are_known_by_their_first_bytes(void)
{
	struct prelude http = {}, post = {}, other = {}, ssh = {}, redis = {};

	CHECK_EQUAL(CLIENT(&http, "G"), PRELUDE_OTHER);
	CHECK_EQUAL(CLIENT(&post, "POST "), PRELUDE_OTHER);
	CHECK_EQUAL(CLIENT(&redis, "*"), PRELUDE_OTHER);
	CHECK_EQUAL(CLIENT(&other, "\x10"), PRELUDE_OTHER);
	CHECK_EQUAL(SERVER(&ssh, "SSH-2"), PRELUDE_OTHER);
}

#define PROXY2 "\r\n\r\n\0\r\nQUIT\n"

static void proxy_headers_come_before_tls_or_a_protocol(void)
{
	struct prelude v1 = {}, v2 = {}, local = {}, twice = {}, mail = {}, http = {};
	struct prelude check = {};

	CHECK_EQUAL(CLIENT(&v1, "PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\n\x16"), PRELUDE_TLS);
	CHECK_EQUAL(v1.proxied, 1);
	CHECK_EQUAL(CLIENT(&v2, PROXY2 "\x21\x11\x00\x0c"
				       "0123456789ab"
				       "\x16"),
		    PRELUDE_TLS);
	CHECK_EQUAL(v2.proxied, 1);
	CHECK_EQUAL(CLIENT(&local, PROXY2 "\x20\x00\x00\x00"
					  "\x16"),
		    PRELUDE_TLS);
	CHECK_EQUAL(CLIENT(&check, PROXY2 "\x20\x00\x00\x00"), PRELUDE_GOES_ON);
	CHECK_EQUAL(SERVER(&check, "220 mail\r\n"), PRELUDE_GOES_ON);
	CHECK_EQUAL(CLIENT(&check, "STARTTLS\r\n\x16"), PRELUDE_TLS);
	CHECK_EQUAL(CLIENT(&twice, "PROXY UNKNOWN\r\nPROXY UNKNOWN\r\n"), PRELUDE_OTHER);
	CHECK_EQUAL(CLIENT(&mail, "PROXY UNKNOWN\r\n"), PRELUDE_GOES_ON);
	CHECK_EQUAL(SERVER(&mail, "220 mail\r\n"), PRELUDE_GOES_ON);
	CHECK_EQUAL(CLIENT(&mail, "STARTTLS\r\n\x16"), PRELUDE_TLS);
	CHECK_EQUAL(CLIENT(&http, "PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"), PRELUDE_OTHER);
}

static void databases_ask_for_tls_before_they_name_a_user(void)
{
	struct prelude gss = {}, startup = {}, login = {};

	CHECK_EQUAL(CLIENT(&gss, "\0\0\0\x08\x04\xd2\x16\x30"), PRELUDE_GOES_ON);
	CHECK_EQUAL(SERVER(&gss, "N"), PRELUDE_GOES_ON);
	CHECK_EQUAL(CLIENT(&gss, "\0\0\0\x08\x04\xd2\x16\x2f"), PRELUDE_GOES_ON);
	CHECK_EQUAL(SERVER(&gss, "S"), PRELUDE_GOES_ON);
	CHECK_EQUAL(CLIENT(&gss, "\x16"), PRELUDE_TLS);
	CHECK_EQUAL(CLIENT(&startup, "\0\0\0\x21\0\x03\0\0"), PRELUDE_OTHER);
	CHECK_EQUAL(SERVER(&login, "\x4a\0\0\0\x0a"
				   "8.0.36"),
		    PRELUDE_GOES_ON);
	CHECK_EQUAL(login.upgrade, TLSPROF_UPGRADE_MYSQL);
	CHECK_EQUAL(CLIENT(&login, "\xc0\0\0\x01\x85\xa6"), PRELUDE_OTHER);
}

static void of_ldap_only_the_request_for_tls_is_gone_through(void)
{
	struct prelude bind = {}, password = {}, again = {};

	CHECK_EQUAL(CLIENT(&bind, "\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03"), PRELUDE_OTHER);
	/* An extended request, too, and as long: a new password (RFC 3062). */
	CHECK_EQUAL(CLIENT(&password, "\x30\x1d\x02\x01\x01\x77\x18\x80\x17"
				      "1.3.6.1.4.1.4203."),
		    PRELUDE_OTHER);
	CHECK_EQUAL(CLIENT(&again, "\x30\x1d\x02\x01\x07\x77\x18\x80\x16"
				   "1.3.6.1.4.1.1466.20037"),
		    PRELUDE_GOES_ON);
	CHECK_EQUAL(CLIENT(&again, "\x30"), PRELUDE_OTHER);
}

/* What it rules out never gets further. */
static void a_first_byte_is_judged_as_all_are(void)
{
	int others = 0;

	for (int byte = 0; byte < 256; byte++) {
		struct prelude prelude = {};

		CHECK_EQUAL(prelude_first_byte(byte), prelude_client_byte(&prelude, byte));
		others += prelude_first_byte(byte) == PRELUDE_OTHER;
	}
	/* All but TLS, PostgreSQL, LDAP, and the two headers of proxies. */
	CHECK_EQUAL(others, 256 - 5);
}

static void any_bytes_are_survived(void)
{
	unsigned int seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct prelude prelude = {};

		prelude.upgrade = round % 8;
		for (int i = 0; i < 200; i++) {
			seed = seed * 1103515245 + 12345;
			if (seed >> 30 ? prelude_client_byte(&prelude, seed >> 16)
				       : prelude_server_byte(&prelude, seed >> 16))
				break;
		}
	}
}

int main(void)
{
	RUN(captured_sessions_lead_to_tls_and_tell_their_protocol);
	RUN(captured_sessions_without_tls_are_left_alone);
	RUN(a_login_without_tls_ends_it);
	RUN(it_ends_at_the_command_and_not_behind_its_arguments);
	RUN(commands_may_be_in_small_letters);
	RUN(a_client_may_go_on_when_tls_is_refused);
	RUN(other_protocols_are_known_by_their_first_bytes);
	RUN(proxy_headers_come_before_tls_or_a_protocol);
	RUN(databases_ask_for_tls_before_they_name_a_user);
	RUN(of_ldap_only_the_request_for_tls_is_gone_through);
	RUN(a_first_byte_is_judged_as_all_are);
	RUN(any_bytes_are_survived);
	return summary();
}
