/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What comes before TLS on a connection: a PROXY header, or a protocol that switches to
 * TLS on the client's word. Byte by byte, because a read may be of one byte. Of a client
 * only what leads to TLS is gone through: at the first command that is something else,
 * such as a login, the connection is left alone. Nothing of it leaves the kernel but
 * the name of the protocol. Pure logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_PRELUDE_H
#define TLSPROF_PRELUDE_H

#include "kernel.h"
#include "contract.h"

/* Bytes before TLS that are parsed, at most. A client sends little before it switches to
 * TLS. A server's greeting may list many capabilities. */
#define CLIENT_PRELUDE 512
#define SERVER_PRELUDE 4096

/* What the next byte of the client belongs to. */
enum prelude_part {
	PRELUDE_BEGIN = 0, /* a message, or TLS, begins */
	PRELUDE_TAG,       /* IMAP: the word before the command */
	PRELUDE_COMMAND,
	PRELUDE_ARGUMENT, /* of AUTH */
	PRELUDE_LINE,     /* the rest of a line that is allowed */
	PRELUDE_MESSAGE,  /* `left` bytes of a message that is allowed */
	PRELUDE_POSTGRESQL,
	PRELUDE_LDAP,
	PRELUDE_MYSQL,
	PRELUDE_PROXY2,
};

enum prelude_verdict {
	PRELUDE_GOES_ON = 0,
	PRELUDE_TLS, /* this byte is its first */
	PRELUDE_OTHER,
};

struct prelude {
	__u64 word;    /* the last bytes of a part, the last one lowest; letters in capitals */
	__u16 left;    /* bytes to come of PRELUDE_MESSAGE */
	__u8 part;     /* enum prelude_part */
	__u8 position; /* bytes of the part so far, saturating */
	__u8 upgrade;  /* enum tlsprof_upgrade */
	__u8 proxied;  /* 1: a PROXY header has come */
	__u8 greeted;  /* bytes of the server's greeting so far, up to GREETING */
	__u8 reserved;
};

/* Bytes that identify a server's greeting. */
#define GREETING 5
#define WORD 8

/* A word of up to eight letters, as `word` holds it. */
#define LETTERS(a, b, c, d) ((__u64)(a) << 24 | (__u64)(b) << 16 | (c) << 8 | (d))
#define LETTERS8(a, b, c, d, e, f, g, h) (LETTERS(a, b, c, d) << 32 | LETTERS(e, f, g, h))

/* The protocol of a server's first bytes, or NONE. */
static inline __u8 upgrade_of_greeting(__u64 bytes, __u8 count)
{
	if (count == 3 && bytes == LETTERS(0, '2', '2', '0'))
		return TLSPROF_UPGRADE_SMTP; /* or FTP, see prelude_argument() */
	if (count == 3 && bytes == LETTERS(0, '+', 'O', 'K'))
		return TLSPROF_UPGRADE_POP3;
	if (count == 4 && bytes == LETTERS('*', ' ', 'O', 'K'))
		return TLSPROF_UPGRADE_IMAP;
	/* A packet of less than 1 KiB, number 0; protocol 10. */
	if (count == GREETING && (bytes & 0xfcffffffULL) == 10)
		return TLSPROF_UPGRADE_MYSQL;
	return TLSPROF_UPGRADE_NONE;
}

/* The next byte of the server. Of an answer to a client that spoke first nothing is
 * wanted. */
static inline __u8 prelude_server_byte(struct prelude *prelude, __u8 byte)
{
	if (prelude->upgrade || prelude->greeted >= GREETING)
		return PRELUDE_GOES_ON;
	prelude->word = prelude->word << 8 | byte;
	prelude->greeted++;
	prelude->upgrade = upgrade_of_greeting(prelude->word, prelude->greeted);
	if (prelude->upgrade)
		prelude->word = 0;
	return prelude->upgrade || prelude->greeted < GREETING ? PRELUDE_GOES_ON : PRELUDE_OTHER;
}

static inline void prelude_enter(struct prelude *prelude, __u8 part)
{
	prelude->part = part;
	prelude->position = 0;
	prelude->word = 0;
}

/* Commands that a client may give before TLS without saying who it is to be. */
static inline bool is_allowed_command(__u8 upgrade, __u64 word)
{
	if (word == LETTERS('N', 'O', 'O', 'P') || word == LETTERS('Q', 'U', 'I', 'T'))
		return true;
	switch (upgrade) {
	case TLSPROF_UPGRADE_SMTP:
	case TLSPROF_UPGRADE_FTP:
		return word == LETTERS8('S', 'T', 'A', 'R', 'T', 'T', 'L', 'S') ||
		       word == LETTERS('E', 'H', 'L', 'O') || word == LETTERS('H', 'E', 'L', 'O') ||
		       word == LETTERS('L', 'H', 'L', 'O') || word == LETTERS('R', 'S', 'E', 'T') ||
		       word == LETTERS('F', 'E', 'A', 'T') || word == LETTERS('S', 'Y', 'S', 'T');
	case TLSPROF_UPGRADE_IMAP:
		return word == LETTERS8('S', 'T', 'A', 'R', 'T', 'T', 'L', 'S') ||
		       word == LETTERS8('C', 'A', 'P', 'A', 'B', 'I', 'L', 'I') ||
		       word == LETTERS(0, 0, 'I', 'D');
	case TLSPROF_UPGRADE_POP3:
		return word == LETTERS('S', 'T', 'L', 'S') || word == LETTERS('C', 'A', 'P', 'A');
	default:
		return false;
	}
}

static inline bool is_proxy_word(const struct prelude *prelude)
{
	return !prelude->upgrade && prelude->word == (LETTERS('P', 'R', 'O', 'X') << 8 | 'Y');
}

static inline bool has_auth_argument(__u8 upgrade)
{
	return upgrade == TLSPROF_UPGRADE_SMTP || upgrade == TLSPROF_UPGRADE_FTP;
}

/* FTP: AUTH TLS, and its older forms (RFC 4217, 2). In SMTP it is a login. */
static inline bool is_tls_argument(__u64 word)
{
	return word == LETTERS(0, 'T', 'L', 'S') || word == LETTERS(0, 'S', 'S', 'L') ||
	       word == (LETTERS('T', 'L', 'S', '-') << 8 | 'C') ||
	       word == (LETTERS('T', 'L', 'S', '-') << 8 | 'P');
}

/* A word is over. */
static inline __u8 prelude_word_end(struct prelude *prelude, __u8 byte)
{
	bool ends_line = byte == '\n';

	if (prelude->part == PRELUDE_TAG) {
		prelude_enter(prelude, PRELUDE_COMMAND);
		return ends_line ? PRELUDE_OTHER : PRELUDE_GOES_ON;
	}
	if (prelude->part == PRELUDE_ARGUMENT) {
		if (!is_tls_argument(prelude->word))
			return PRELUDE_OTHER;
		prelude->upgrade = TLSPROF_UPGRADE_FTP;
	} else if (is_proxy_word(prelude) && !prelude->proxied) {
		prelude->proxied = 1;
	} else if (has_auth_argument(prelude->upgrade) && byte == ' ' &&
		   prelude->word == LETTERS('A', 'U', 'T', 'H')) {
		prelude_enter(prelude, PRELUDE_ARGUMENT);
		return PRELUDE_GOES_ON;
	} else if (!is_allowed_command(prelude->upgrade, prelude->word)) {
		return PRELUDE_OTHER;
	}
	prelude_enter(prelude, ends_line ? PRELUDE_BEGIN : PRELUDE_LINE);
	return PRELUDE_GOES_ON;
}

/* A byte of a word. Of more than eight letters the first eight count, but a tag may be
 * anything. */
static inline __u8 prelude_word_byte(struct prelude *prelude, __u8 byte)
{
	if (byte == ' ' || byte == '\r' || byte == '\n')
		return prelude_word_end(prelude, byte);
	if (prelude->position >= WORD)
		return PRELUDE_GOES_ON;
	if (byte >= 'a' && byte <= 'z')
		byte -= 'a' - 'A';
	prelude->word = prelude->word << 8 | byte;
	prelude->position++;
	return PRELUDE_GOES_ON;
}

/* Messages by their bytes, 0 for any. Not static: aya leaves static data where it is not. */

/* The extended request StartTLS with a message id of one byte (RFC 4511, 4.14.1). */
const __u8 ldap_start_tls[] = "\x30\x1d\x02\x01\x00\x77\x18\x80\x16"
			      "1.3.6.1.4.1.1466.20037";

/* HAProxy, proxy-protocol.txt, 2.2: command, family and length follow. */
const __u8 proxy_signature[16] = "\r\n\r\n\0\r\nQUIT\n";

/* A byte of a message that must be like this one; where it is 0 there may be anything. */
static inline __u8 prelude_like(struct prelude *prelude, const __u8 *message, __u8 length,
				__u8 byte)
{
	__u8 position = prelude->position;

	if (position >= length)
		return PRELUDE_OTHER;
	prelude->position++;
	return !message[position] || message[position] == byte ? PRELUDE_GOES_ON : PRELUDE_OTHER;
}

/* Other extended requests change passwords. */
static inline __u8 prelude_ldap_byte(struct prelude *prelude, __u8 byte)
{
	const __u8 length = sizeof(ldap_start_tls) - 1;
	__u8 verdict = prelude_like(prelude, ldap_start_tls, length, byte);

	if (verdict == PRELUDE_GOES_ON && prelude->position == length) {
		prelude->upgrade = TLSPROF_UPGRADE_LDAP;
		prelude_enter(prelude, PRELUDE_BEGIN);
	}
	return verdict;
}

/* SSLRequest, or GSSENCRequest, which may come before it. What else begins so names a
 * user (PostgreSQL, Message Formats). */
static inline __u8 prelude_postgresql_byte(struct prelude *prelude, __u8 byte)
{
	prelude->word = prelude->word << 8 | byte;
	if (++prelude->position < 8)
		return PRELUDE_GOES_ON;
	if (prelude->word != 0x0000000804d2162fULL && prelude->word != 0x0000000804d21630ULL)
		return PRELUDE_OTHER;
	prelude->upgrade = TLSPROF_UPGRADE_POSTGRESQL;
	prelude_enter(prelude, PRELUDE_BEGIN);
	return PRELUDE_GOES_ON;
}

/* SSLRequest: a packet of 32 bytes, number 1, with the flag CLIENT_SSL. A login is longer,
 * or lacks that flag. */
static inline __u8 prelude_mysql_byte(struct prelude *prelude, __u8 byte)
{
	prelude->word = prelude->word << 8 | byte;
	if (++prelude->position < 6)
		return PRELUDE_GOES_ON;
	if (prelude->word >> 16 != 0x20000001 || !(prelude->word & 0x08))
		return PRELUDE_OTHER;
	prelude_enter(prelude, PRELUDE_MESSAGE);
	prelude->left = 4 + 32 - 6;
	return PRELUDE_GOES_ON;
}

static inline __u8 prelude_proxy2_byte(struct prelude *prelude, __u8 byte)
{
	__u16 left;

	prelude->word = prelude->word << 8 | byte;
	if (prelude_like(prelude, proxy_signature, sizeof(proxy_signature), byte))
		return PRELUDE_OTHER;
	if (prelude->position < sizeof(proxy_signature))
		return PRELUDE_GOES_ON;
	left = prelude->word & 0xffff;
	prelude_enter(prelude, left ? PRELUDE_MESSAGE : PRELUDE_BEGIN);
	prelude->left = left;
	prelude->proxied = 1;
	return PRELUDE_GOES_ON;
}

/* The part that a message of the client begins with, by its first byte. */
static inline __u8 prelude_first_part(const struct prelude *prelude, __u8 byte)
{
	switch (prelude->upgrade) {
	case TLSPROF_UPGRADE_IMAP:
		return PRELUDE_TAG;
	case TLSPROF_UPGRADE_SMTP:
	case TLSPROF_UPGRADE_FTP:
	case TLSPROF_UPGRADE_POP3:
		return PRELUDE_COMMAND;
	case TLSPROF_UPGRADE_MYSQL:
		return PRELUDE_MYSQL;
	case TLSPROF_UPGRADE_LDAP:
		return PRELUDE_BEGIN; /* nothing but TLS */
	case TLSPROF_UPGRADE_POSTGRESQL:
		return byte == 0 ? PRELUDE_POSTGRESQL : PRELUDE_BEGIN;
	}
	switch (byte) {
	case 0:
		return PRELUDE_POSTGRESQL;
	case 0x30:
		return PRELUDE_LDAP;
	case 'P':
		return prelude->proxied ? PRELUDE_BEGIN : PRELUDE_COMMAND;
	case '\r':
		return prelude->proxied ? PRELUDE_BEGIN : PRELUDE_PROXY2;
	default:
		return PRELUDE_BEGIN;
	}
}

/* What prelude_client_byte() says of the very first byte, without anything to keep its state. */
static inline __u8 prelude_first_byte(__u8 byte)
{
	const struct prelude none = {};

	if (byte == 22)
		return PRELUDE_TLS;
	return prelude_first_part(&none, byte) == PRELUDE_BEGIN ? PRELUDE_OTHER : PRELUDE_GOES_ON;
}

/* The next byte of the client. */
static inline __u8 prelude_client_byte(struct prelude *prelude, __u8 byte)
{
	if (prelude->part == PRELUDE_BEGIN) {
		/* A handshake record: no message of these protocols begins like it. */
		if (byte == 22)
			return PRELUDE_TLS;
		prelude_enter(prelude, prelude_first_part(prelude, byte));
	}
	switch (prelude->part) {
	case PRELUDE_TAG:
	case PRELUDE_COMMAND:
	case PRELUDE_ARGUMENT:
		return prelude_word_byte(prelude, byte);
	case PRELUDE_LINE:
		if (byte == '\n')
			prelude_enter(prelude, PRELUDE_BEGIN);
		return PRELUDE_GOES_ON;
	case PRELUDE_MESSAGE:
		if (--prelude->left == 0)
			prelude_enter(prelude, PRELUDE_BEGIN);
		return PRELUDE_GOES_ON;
	case PRELUDE_POSTGRESQL:
		return prelude_postgresql_byte(prelude, byte);
	case PRELUDE_LDAP:
		return prelude_ldap_byte(prelude, byte);
	case PRELUDE_MYSQL:
		return prelude_mysql_byte(prelude, byte);
	case PRELUDE_PROXY2:
		return prelude_proxy2_byte(prelude, byte);
	default:
		return PRELUDE_OTHER;
	}
}

#endif
