/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Files by their numbers, and their kinds by the mode of their inodes. */
#ifndef TLSPROF_FILES_H
#define TLSPROF_FILES_H

#include "kernel.h"

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFCHR 0020000
#define S_IFIFO 0010000

static inline bool is_type(__u16 mode, __u16 type)
{
	return (mode & S_IFMT) == type;
}

#ifndef TLSPROF_NATIVE
/* A file of a task's table, NULL if it was closed meanwhile. The number is a valid one, or was when
 * the system call began; tables of files do not shrink. */
static __always_inline struct file *file_by_number(struct file **files, __u32 number)
{
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), files + number);
	return file;
}
#endif

#endif
