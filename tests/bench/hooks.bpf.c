/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Programs that do nothing, where tlsprof's hooks are: what being there costs. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sock_recv_length")
int received(void *context)
{
	return 0;
}

SEC("tp_btf/sock_send_length")
int sent(void *context)
{
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int state(void *context)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int switched(void *context)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int left(void *context)
{
	return 0;
}
