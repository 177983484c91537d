/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Which processes have listening sockets open, in whatever network namespace. The agent
 * reads this like a file: one pass over the open files of all processes, where /proc
 * would take a system call for each of them.
 */
#include "include/contract.h"
#include "include/files.h"

/* With MPTCP the socket that a process has stands for those of TCP. */
static __always_inline bool listens(struct sock *sk)
{
	__u16 protocol = BPF_CORE_READ(sk, sk_protocol);

	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

SEC("iter/task_file")
int listeners(struct bpf_iter__task_file *context)
{
	struct tlsprof_listener listener = {};
	struct task_struct *task = context->task;
	struct file *file = context->file;
	struct socket *socket;
	struct sock *sk;

	if (!task || !file || !is_type(file->f_inode->i_mode, S_IFSOCK))
		return 0;
	socket = file->private_data;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !listens(sk))
		return 0;
	listener.socket = file->f_inode->i_ino;
	listener.pid = task->tgid;
	listener.port = BPF_CORE_READ(sk, __sk_common.skc_num);
	bpf_seq_write(context->meta->seq, &listener, sizeof(listener));
	return 0;
}
