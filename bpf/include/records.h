/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * One direction of a TLS connection, record by record: only the headers are
 * looked at (RFC 8446, 5.1). Pure logic, unit-tested natively in tests/bpf.
 */
#ifndef TLSPROF_RECORDS_H
#define TLSPROF_RECORDS_H

#include "kernel.h"

#include "contract.h"

enum content_type {
	CONTENT_CHANGE_CIPHER_SPEC = 20,
	CONTENT_ALERT = 21,
	CONTENT_HANDSHAKE = 22,
	CONTENT_APPLICATION_DATA = 23,
	CONTENT_HEARTBEAT = 24,
};

#define RECORD_HEADER 5
#define ALERT_BODY 2 /* in clear: level and description (RFC 8446, 6) */
/* TLS 1.3, with a tag of 16 bytes: header, alert, content type and tag. */
#define ALERT_RECORD_13 (RECORD_HEADER + ALERT_BODY + 1 + 16)
/* Longest body up to TLS 1.2 (RFC 5246, 6.2.3): 2^14 + 2048. */
#define RECORD_BODY 18432

struct records {
	__u64 header; /* its bytes so far, as one number */
	__u32 moved;  /* bytes of the stream so far, before TLS too */
	__u32 before; /* those before TLS */
	__u16 left;   /* bytes to come of this header or body */
	__u16 length; /* of the record's body */
	__u8 type;    /* enum content_type */
	__u8 in_body;
	__u8 opaque; /* 1: nothing more that the agent would read is to come */
};

/* Where the stream stands in TLS. */
static inline __u32 records_offset(const struct records *records)
{
	return records->moved - records->before;
}

static inline void records_begin(struct records *records)
{
	records->header = 0;
	records->left = RECORD_HEADER;
	records->in_body = 0;
}

/* Whether the last record has come to its end, and nothing of the next one has come. */
static inline bool records_are_whole(const struct records *records)
{
	return !records->in_body && records->left == RECORD_HEADER;
}

static inline bool is_record_header(__u64 header)
{
	__u8 type = header >> 32, major = header >> 24, minor = header >> 16;

	return type >= CONTENT_CHANGE_CIPHER_SPEC && type <= CONTENT_HEARTBEAT && major == 3 &&
	       minor <= 4 && (header & 0xffff) <= RECORD_BODY;
}

/* Takes the next byte of a header. */
static inline void records_header_byte(struct records *records, __u8 byte)
{
	records->header = records->header << 8 | byte;
}

/* The header is there. Returns whether it is one. */
static inline bool records_header_end(struct records *records)
{
	if (!is_record_header(records->header))
		return false;
	records->type = records->header >> 32;
	records->length = records->header;
	records->left = records->length;
	records->in_body = 1;
	if (records->type == CONTENT_APPLICATION_DATA || records->moved > TLSPROF_COPIED_BYTES)
		records->opaque = 1;
	return true;
}

#endif
