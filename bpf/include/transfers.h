/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The bytes that a socket call moved. The kernel's hooks on socket calls do not pass the
 * data. It lies in the buffers that the process gave to its system call, and is in
 * memory: the kernel has just copied it.
 */
#ifndef TLSPROF_TRANSFERS_H
#define TLSPROF_TRANSFERS_H

#include "exchange.h"
#include "payload.h"
#include "maps.h"

/* Bytes before TLS that are looked at at once. */
#define LOOK 64

/* What a socket call moved, and where its bytes are put together to be sent. */
struct transfer {
	__u32 busy;
	__u32 length; /* of what was not looked at yet */
	__u32 used;   /* of event.bytes */
	__u8 direction;
	struct payload payload;
	__u8 look[LOOK]; /* of what comes before TLS: never sent */
	struct tlsprof_hello_event event;
	__u8 slack[TLSPROF_HELLO_LEN]; /* the verifier adds the largest offset and length */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct transfer);
} transfers SEC(".maps");

enum followed {
	FOLLOWED_ON = 0,
	FOLLOWED_NOT_TLS,
	FOLLOWED_LOST,       /* it cannot be read, or is no end of it */
	FOLLOWED_TO_ITS_END, /* meanwhile the connection was closed elsewhere */
};

static __always_inline struct pt_regs *syscall_registers(const struct socket_call *call)
{
	/* 5.10 has no other way to them. */
	if (connections_by_address)
		return call->registers;
	return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline bool next_piece(struct payload *payload)
{
	struct user_iovec piece;

	if (payload->left)
		return true;
	if (!payload->iov_left || bpf_probe_read_user(&piece, sizeof(piece), (void *)payload->iov))
		return false;
	payload->base = piece.base;
	payload->left = piece.length;
	payload->iov += sizeof(piece);
	payload->iov_left--;
	return true;
}

/* Finds the buffer of the system call that the current thread is in. */
static __always_inline bool find_payload(struct payload *payload, const struct socket_call *call)
{
	struct pt_regs *regs = syscall_registers(call);
	struct user_message message;
	__u64 address = SYSCALL_PARM2(regs);

	if (is_compat(regs))
		return false;
	switch (buffer_of_syscall(syscall_number(regs))) {
	case BUFFER_PLAIN:
		payload->base = address;
		payload->left = call->length;
		return true;
	case BUFFER_VECTOR:
		payload->iov = address;
		payload->iov_left = SYSCALL_PARM3(regs);
		return next_piece(payload);
	case BUFFER_MESSAGE:
		if (bpf_probe_read_user(&message, sizeof(message), (void *)address))
			return false;
		payload->iov = message.iov;
		payload->iov_left = message.iov_count;
		return next_piece(payload);
	default:
		return false;
	}
}

static __always_inline struct transfer *current_transfer(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&transfers, &zero);
}

static __always_inline void pass(struct transfer *transfer, struct records *records, __u32 count)
{
	transfer->payload.base += count;
	transfer->payload.left -= count;
	transfer->length -= count;
	records->moved += count;
}

#endif
