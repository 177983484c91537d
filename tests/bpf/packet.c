/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unit tests of bpf/include/packet.h, compiled natively. */
#include "check.h"
#include "packet.h"

static void of_the_packets_one_in_so_many_is_timed(void)
{
	const __u64 rounds = 31 * 1000; /* every gap equally often */
	struct tlsprof_packet packet = {};

	while (packet.timed < rounds) {
		if (packet_is_next(&packet))
			packet_begin(&packet, 1, 1, (__u32)packet.timed);
	}
	CHECK_EQUAL(packet_gap(0), 0);
	CHECK_EQUAL(packet_gap(30), 30);
	CHECK_EQUAL(packet_gap(31), 0);
	/* The last is not followed by its gap. */
	CHECK_EQUAL(packet.calls, rounds * TLSPROF_PACKETS_A_TIMED_ONE - packet_gap(rounds - 1));
}

static void a_packet_whose_end_was_not_seen_is_forgotten(void)
{
	struct tlsprof_packet packet = {};

	CHECK_EQUAL(packet_is_next(&packet), true);
	packet_begin(&packet, 77, 1, 1);
	CHECK_EQUAL(packet.began, 77);
	CHECK_EQUAL(packet_is_next(&packet), false);
	CHECK_EQUAL(packet.began, 0);
	CHECK_EQUAL(packet_is_next(&packet), true);
}

static void nothing_is_known_of_a_packet_at_its_beginning(void)
{
	struct tlsprof_packet packet = { .owner = 5, .port = 443, .work = TLSPROF_WORK_CLOSE };

	packet_begin(&packet, 1, 1, 0);
	CHECK_EQUAL(packet.owner, 0);
	CHECK_EQUAL(packet.port, 0);
	CHECK_EQUAL(packet.work, TLSPROF_WORK_DATA);
}

static void a_connection_opens_has_data_and_closes(void)
{
	const __u8 ack = 0x10;

	CHECK_EQUAL(work_of(BPF_TCP_LISTEN, 0x02), TLSPROF_WORK_OPEN);
	CHECK_EQUAL(work_of(BPF_TCP_SYN_SENT, 0x12), TLSPROF_WORK_OPEN);
	CHECK_EQUAL(work_of(BPF_TCP_SYN_RECV, ack), TLSPROF_WORK_OPEN);
	CHECK_EQUAL(work_of(BPF_TCP_ESTABLISHED, ack), TLSPROF_WORK_DATA);
	CHECK_EQUAL(work_of(BPF_TCP_ESTABLISHED, ack | TCP_FLAG_FIN_BIT), TLSPROF_WORK_CLOSE);
	CHECK_EQUAL(work_of(BPF_TCP_ESTABLISHED, TCP_FLAG_RST_BIT), TLSPROF_WORK_CLOSE);
	CHECK_EQUAL(work_of(BPF_TCP_FIN_WAIT1, ack), TLSPROF_WORK_CLOSE);
	CHECK_EQUAL(work_of(BPF_TCP_CLOSE_WAIT, ack), TLSPROF_WORK_CLOSE);
	CHECK_EQUAL(work_of(BPF_TCP_LAST_ACK, ack), TLSPROF_WORK_CLOSE);
}

static void mini_sockets_are_not_whole(void)
{
	CHECK_EQUAL(is_whole(BPF_TCP_TIME_WAIT), false);
	CHECK_EQUAL(is_whole(BPF_TCP_NEW_SYN_RECV), false);
	CHECK_EQUAL(is_whole(BPF_TCP_ESTABLISHED), true);
	CHECK_EQUAL(is_whole(BPF_TCP_LISTEN), true);
}

int main(void)
{
	RUN(of_the_packets_one_in_so_many_is_timed);
	RUN(a_packet_whose_end_was_not_seen_is_forgotten);
	RUN(nothing_is_known_of_a_packet_at_its_beginning);
	RUN(a_connection_opens_has_data_and_closes);
	RUN(mini_sockets_are_not_whole);
	return summary();
}
