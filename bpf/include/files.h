/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Kinds of files, by the mode of their inodes. */
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

#endif
