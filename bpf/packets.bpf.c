/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What packets cost whom: the time of the kernel's work for TCP in softirqs, by the
 * process that owns the connection. Samples of softirqs do not tell the connection;
 * they are divided by these times.
 *
 * A packet is timed as a whole, from the beginning of tcp_v4_rcv() to its end; what is
 * called in between says whose it is. The timers of connections are timed alike. Few
 * are: one in TLSPROF_PACKETS_A_TIMED_ONE. For all others nothing is looked up.
 */
#include "include/connection.h"
#include "include/maps.h"
#include "include/packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tlsprof_packet);
} packets SEC(".maps");

/* Keyed by owner and port: not an array. Preallocated, as it is written in softirqs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the agent sets it where packets are timed */
	__type(key, struct tlsprof_packet_key);
	__type(value, struct tlsprof_packet_time);
} packet_times SEC(".maps");

static __always_inline struct tlsprof_packet *packet_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&packets, &zero);
}

/* The packet that this CPU is timing; NULL for none. The thread is another one where
 * softirqs can be preempted (PREEMPT_RT). */
static __always_inline struct tlsprof_packet *timed_packet(void)
{
	struct tlsprof_packet *packet = packet_here();

	if (!packet || !packet->began)
		return NULL;
	return packet->thread == bpf_get_current_pid_tgid() ? packet : NULL;
}

static __always_inline struct tlsprof_packet *handle_begin(void)
{
	struct tlsprof_packet *packet = packet_here();

	if (!packet || !packet_is_next(packet))
		return NULL;
	packet_begin(packet, bpf_ktime_get_ns(), bpf_get_current_pid_tgid(), bpf_get_prandom_u32());
	return packet;
}

static __always_inline void handle_end(void)
{
	struct tlsprof_packet *packet = timed_packet();
	struct tlsprof_packet_key key = {};
	struct tlsprof_packet_time *known, new = { .timed = 1 };

	if (!packet)
		return;
	new.nanos = bpf_ktime_get_ns() - packet->began;
	packet->began = 0;
	key.on = packet->thread >> 32;
	key.owner = packet->owner;
	key.cpu = bpf_get_smp_processor_id();
	key.port = packet->port;
	key.work = packet->work;
	known = bpf_map_lookup_elem(&packet_times, &key);
	if (known) {
		known->timed++;
		known->nanos += new.nanos;
	} else if (bpf_map_update_elem(&packet_times, &key, &new, BPF_NOEXIST)) {
		count_loss(TLSPROF_LOSS_PACKET_TABLE_FULL);
	}
}

static __always_inline void set_port(struct tlsprof_packet *packet, __u16 port, __u16 work)
{
	packet->owner = 0;
	packet->port = port;
	packet->work = work;
}

/* A connection that nobody has read or written yet is known by its port, as is a
 * listening socket. */
static __always_inline void set_owner(struct tlsprof_packet *packet, struct sock *sk, __u16 work)
{
	int state = sk->__sk_common.skc_state;
	struct connection *connection = NULL;

	if (is_whole(state) && state != BPF_TCP_LISTEN)
		connection = find_connection(sk);
	set_port(packet, sk->__sk_common.skc_num, work);
	if (connection && connection->pid) {
		packet->owner = connection->pid;
		packet->port = 0;
	}
}

static __always_inline __u8 flags_of(struct sk_buff *skb)
{
	__u8 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags),
			      skb->head + skb->transport_header + TCP_FLAGS_AT);
	return flags;
}

static __always_inline void handle_socket(struct sock *sk, struct sk_buff *skb)
{
	struct tlsprof_packet *packet = timed_packet();

	if (packet)
		set_owner(packet, sk, work_of(sk->__sk_common.skc_state, flags_of(skb)));
}

SEC("fentry/tcp_v4_rcv")
int BPF_PROG(packet_begin_4)
{
	handle_begin();
	return 0;
}

SEC("fexit/tcp_v4_rcv")
int BPF_PROG(packet_end_4)
{
	handle_end();
	return 0;
}

SEC("fentry/tcp_v6_rcv")
int BPF_PROG(packet_begin_6)
{
	handle_begin();
	return 0;
}

SEC("fexit/tcp_v6_rcv")
int BPF_PROG(packet_end_6)
{
	handle_end();
	return 0;
}

SEC("fentry/tcp_v4_do_rcv")
int BPF_PROG(packet_socket_4, struct sock *sk, struct sk_buff *skb)
{
	handle_socket(sk, skb);
	return 0;
}

SEC("fentry/tcp_v6_do_rcv")
int BPF_PROG(packet_socket_6, struct sock *sk, struct sk_buff *skb)
{
	handle_socket(sk, skb);
	return 0;
}

/* The last ACK of an opening: a socket comes of it. */
SEC("fentry/tcp_check_req")
int BPF_PROG(packet_request, struct sock *listener)
{
	struct tlsprof_packet *packet = timed_packet();

	if (packet)
		set_port(packet, listener->__sk_common.skc_num, TLSPROF_WORK_OPEN);
	return 0;
}

SEC("fentry/tcp_timewait_state_process")
int BPF_PROG(packet_time_wait, struct inet_timewait_sock *tw)
{
	struct tlsprof_packet *packet = timed_packet();

	if (packet)
		set_port(packet, tw->__tw_common.skc_num, TLSPROF_WORK_CLOSE);
	return 0;
}

SEC("fentry/tw_timer_handler")
int BPF_PROG(time_wait_begin, struct timer_list *timer)
{
	const __u64 offset = bpf_core_field_offset(struct inet_timewait_sock, tw_timer);
	struct inet_timewait_sock *tw = (void *)timer - offset;
	struct tlsprof_packet *packet = handle_begin();

	if (packet)
		set_port(packet, BPF_CORE_READ(tw, __tw_common.skc_num), TLSPROF_WORK_CLOSE);
	return 0;
}

SEC("fexit/tw_timer_handler")
int BPF_PROG(time_wait_end)
{
	handle_end();
	return 0;
}

/* Retransmissions. A process that has the socket does later itself what its timer
 * wanted: that is in its own time. */
SEC("fentry/tcp_write_timer_handler")
int BPF_PROG(retransmission_begin, struct sock *sk)
{
	struct tlsprof_packet *packet = sk->sk_lock.owned ? NULL : handle_begin();

	if (packet)
		set_owner(packet, sk, work_of(sk->__sk_common.skc_state, 0));
	return 0;
}

SEC("fexit/tcp_write_timer_handler")
int BPF_PROG(retransmission_end, struct sock *sk)
{
	if (!sk->sk_lock.owned)
		handle_end();
	return 0;
}
