/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Remote endpoints of outgoing connections, distinguished without keeping an address:
 * by a hash with a random key that the agent draws at its start. And the number of
 * ephemeral ports for connections to one endpoint.
 */
#ifndef TLSPROF_REMOTE_H
#define TLSPROF_REMOTE_H

#include "kernel.h"

#define AF_INET6 10 /* include/linux/socket.h */

/* Set by the agent before the programs are loaded. */
const volatile __u64 remote_key = 0;

/* splitmix64's finalizer: every bit of the input moves every bit of the output. */
static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash ^= value;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/* A program that the kernel gave the socket reads what hangs on it without a helper. */
static __always_inline __u64 remote_endpoint(struct sock *sk)
{
	__u64 hash = mix(remote_key, sk->__sk_common.skc_net.net->ns.inum);
	__u64 address[2] = {};

	if (sk->__sk_common.skc_family == AF_INET6)
		bpf_probe_read_kernel(address, sizeof(address), &sk->__sk_common.skc_v6_daddr);
	else
		address[0] = sk->__sk_common.skc_daddr;
	hash = mix(hash, address[0]);
	hash = mix(hash, address[1]);
	return mix(hash, sk->__sk_common.skc_dport);
}

/* Size of ip_local_port_range in the socket's network namespace. */
static __always_inline __u32 count_local_ports(struct sock *sk)
{
	struct net *net = sk->__sk_common.skc_net.net;
	struct local_ports *ports = &net->ipv4.ip_local_ports;
	struct local_ports___before_6_7 *old = (void *)ports;
	int first, last;

	if (bpf_core_field_exists(ports->range)) {
		__u32 range = ports->range;

		first = range & 0xffff;
		last = range >> 16;
	} else {
		first = old->range[0];
		last = old->range[1];
	}
	return last >= first ? last - first + 1 : 0;
}

#endif
