/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Which packets are timed, and what they are for. Pure logic, unit-tested natively in
 * tests/bpf.
 */
#ifndef TLSPROF_PACKET_H
#define TLSPROF_PACKET_H

#include "kernel.h"
#include "contract.h"
#include <linux/bpf.h> /* BPF_TCP_*: the kernel's TCP states, stable numbers */

#define TCP_FLAGS_AT 13 /* in the header of TCP, RFC 9293 */
#define TCP_FLAG_FIN_BIT 0x01
#define TCP_FLAG_RST_BIT 0x04

/* Counts one; true if it is to be timed. */
static inline bool packet_is_next(struct tlsprof_packet *packet)
{
	packet->calls++;
	packet->began = 0; /* also of one whose end was not seen */
	if (!packet->gap)
		return true;
	packet->gap--;
	return false;
}

/* How many to leave out, from a random number: TLSPROF_PACKETS_A_TIMED_ONE - 1 on
 * average. */
static inline __u32 packet_gap(__u32 random)
{
	return random % (2 * TLSPROF_PACKETS_A_TIMED_ONE - 1);
}

static inline void packet_begin(struct tlsprof_packet *packet, __u64 now, __u64 thread,
				__u32 random)
{
	packet->began = now;
	packet->thread = thread;
	packet->gap = packet_gap(random);
	packet->timed++;
	packet->owner = 0;
	packet->port = 0;
	packet->work = TLSPROF_WORK_DATA;
}

/* What a packet is for that a whole socket in this state takes. Until data flows it
 * opens; with the first sign of an end it closes, as samples of the functions that
 * handle it have it (agent/src/evidence/activity/kernel_functions.rs). */
static inline __u16 work_of(int state, __u8 flags)
{
	switch (state) {
	case BPF_TCP_LISTEN:
	case BPF_TCP_SYN_SENT:
	case BPF_TCP_SYN_RECV:
	case BPF_TCP_NEW_SYN_RECV:
		return TLSPROF_WORK_OPEN;
	case BPF_TCP_ESTABLISHED:
		return flags & (TCP_FLAG_FIN_BIT | TCP_FLAG_RST_BIT) ? TLSPROF_WORK_CLOSE
								     : TLSPROF_WORK_DATA;
	default:
		return TLSPROF_WORK_CLOSE;
	}
}

/* Request and TIME_WAIT sockets are the beginning of a socket only: they have no
 * storage. */
static inline bool is_whole(int state)
{
	return state != BPF_TCP_TIME_WAIT && state != BPF_TCP_NEW_SYN_RECV;
}

#endif
