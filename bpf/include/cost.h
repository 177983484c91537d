/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Part of the contract (contract.h): what the agent estimates the cost of the programs from. */
#ifndef TLSPROF_COST_H
#define TLSPROF_COST_H

#include <linux/types.h>

/* What ran, indices of the `hits` per-CPU array. */
enum tlsprof_hit {
	TLSPROF_HIT_ENTRY = 0,  /* uprobe at a function's entry */
	TLSPROF_HIT_RETURN = 1, /* uretprobe */
	TLSPROF_HIT_SWITCH = 2, /* scheduler switch of a thread inside a call */
	/* A run of tcp_state() that the kernel skipped and another program recovered. */
	TLSPROF_HIT_STOOD_IN = 3,
	/* Those of ENTRY with TLSPROF_SINGLE_STEPPED. */
	TLSPROF_HIT_SINGLE_STEP = 4,
	TLSPROF_HIT_COUNT = 5,
};

/* Whom the time in a program is taken from: indices of the `runs` per-CPU array. */
enum tlsprof_run {
	TLSPROF_RUN_PROBE = 0,  /* a process that is probed */
	TLSPROF_RUN_CALL = 1,   /* any thread of the host, on socket calls */
	TLSPROF_RUN_STATE = 2,  /* likewise, at changes of a connection's state and at accepts */
	TLSPROF_RUN_OTHER = 3,  /* likewise, in the scheduler, of processes, and samples */
	TLSPROF_RUN_IDLE = 4,   /* nobody: samples of idle CPUs */
	TLSPROF_RUN_SWITCH = 5, /* any thread of the host, where clocks are stopped */
	TLSPROF_RUN_COUNT = 6,
};

/* Runs of all programs of a kind on a CPU. */
struct tlsprof_runs {
	__u64 count;
	__u64 nanos; /* estimated from those that were timed */
	/* State of the programs, see runs.h. */
	__u64 timed; /* `count` at the last run that was timed */
	__u64 began; /* the run that is timed now, else 0 */
	__u64 left;  /* runs that come before the next one that is timed */
};

#endif
