/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * The contract between the BPF programs and the agent: every type, number and
 * map value that crosses from the kernel to user space. The agent's side is
 * generated from this file when it is built (bindgen), never written by hand.
 *
 * Units: all times are nanoseconds of CLOCK_MONOTONIC (bpf_ktime_get_ns), all
 * durations nanoseconds. Process ids are those of the initial pid namespace.
 */
#ifndef TLSPROF_CONTRACT_H
#define TLSPROF_CONTRACT_H

#include <linux/types.h>

#include "cost.h"

enum tlsprof_limits {
	TLSPROF_COMM_LEN = 16,          /* TASK_COMM_LEN */
	TLSPROF_GROUP_LEN = 24,         /* longest name in libssl 3.x: "SecP384r1MLKEM1024" */
	TLSPROF_PATH_LEN = 128,         /* executable of an exec event, cut beyond */
	TLSPROF_HELLO_LEN = 4096,       /* most bytes of a connection in one event */
	TLSPROF_COPIED_BYTES = 24576,   /* of a direction: later records are not copied */
	TLSPROF_CODE_SIDE = 128,        /* most bytes of machine code on a side of a sample */
	TLSPROF_STACK_DEPTH = 127,      /* PERF_MAX_STACK_DEPTH, include/uapi/linux/perf_event.h */
	TLSPROF_CODE_WORDS = 32,        /* of them those that machine code takes up: both sides */
	TLSPROF_STACK_WORDS = 1024,     /* words of a user stack that are looked at: 8 KiB */
	TLSPROF_WORD_BITS = 52,         /* of a word that is kept; above them, where it was */
	TLSPROF_EXCHANGE_PRIVATE = 368, /* state of the programs, see exchange.h */
	TLSPROF_CALL_PRIVATE = 244,     /* likewise, see call.h */
	TLSPROF_TIMED_PRIVATE = 144,    /* likewise, see maps.h */
};

/* What a record in the `events` ring buffer is. */
enum tlsprof_event_kind {
	TLSPROF_EVENT_HANDSHAKE = 1,
	TLSPROF_EVENT_FORK = 2,
	TLSPROF_EVENT_EXEC = 3,
	TLSPROF_EVENT_EXIT = 4,
	/* Sent when the owner is known, with the time at which it was opened. */
	TLSPROF_EVENT_CONNECTION_OPENED = 5,
	TLSPROF_EVENT_CONNECTION_CLOSED = 6,
	TLSPROF_EVENT_HELLO = 7,
};

/* What saw a handshake. */
enum tlsprof_source {
	TLSPROF_SOURCE_LIBRARY = 1, /* probes in the TLS library */
	TLSPROF_SOURCE_SOCKET = 2,  /* TLS records in socket calls */
};

/* The TLS library whose probes saw a handshake: its error numbers are its own. */
enum tlsprof_library {
	TLSPROF_LIBRARY_NONE = 0, /* source SOCKET */
	TLSPROF_LIBRARY_OPENSSL = 1,
	TLSPROF_LIBRARY_GNUTLS = 2,
};

/* Which way data moved, seen from the owner of the connection. */
enum tlsprof_direction {
	TLSPROF_DIRECTION_NONE = 0,
	TLSPROF_DIRECTION_IN = 1,
	TLSPROF_DIRECTION_OUT = 2,
};

/* Parts of a handshake that socket calls tell apart. */
enum tlsprof_flight {
	/* Up to the server's first answer: a server makes its key and signs here. */
	TLSPROF_FLIGHT_FIRST = 0,
	/* From the peer's next bytes to the end: key agreement in TLS 1.2. */
	TLSPROF_FLIGHT_LAST = 1,
	TLSPROF_FLIGHT_COUNT = 2,
};

/* A protocol that switches to TLS on the client's word. */
enum tlsprof_upgrade {
	TLSPROF_UPGRADE_NONE = 0,
	TLSPROF_UPGRADE_SMTP = 1,
	TLSPROF_UPGRADE_FTP = 2,
	TLSPROF_UPGRADE_IMAP = 3,
	TLSPROF_UPGRADE_POP3 = 4,
	TLSPROF_UPGRADE_LDAP = 5,
	TLSPROF_UPGRADE_POSTGRESQL = 6,
	TLSPROF_UPGRADE_MYSQL = 7,
};

/* What a connection carries. */
enum tlsprof_tls {
	TLSPROF_TLS_NONE = 0,        /* no TLS, or its beginning was not seen */
	TLSPROF_TLS_HANDSHAKE = 1,   /* a handshake that did not complete */
	TLSPROF_TLS_ESTABLISHED = 2, /* a handshake that completed */
};

/* Role of the profiled process in a handshake or a connection; also the attach
 * cookie of the state machine's probes. */
enum tlsprof_role {
	TLSPROF_ROLE_SERVER = 1,
	TLSPROF_ROLE_CLIENT = 2,
};

enum tlsprof_outcome {
	TLSPROF_OUTCOME_COMPLETED = 1,
	/* The library raised an error and gave up. */
	TLSPROF_OUTCOME_FAILED = 2,
	/* The peer went away, or the connection object or its process ended,
	 * before the handshake did. */
	TLSPROF_OUTCOME_ABANDONED = 3,
};

/* Steps of a handshake; also the attach cookie of the step probes. What is in
 * none of them is the step "other", computed in user space. */
enum tlsprof_step {
	TLSPROF_STEP_KEY_EXCHANGE = 0,
	TLSPROF_STEP_SIGNING = 1,
	TLSPROF_STEP_VERIFICATION = 2,
	TLSPROF_STEP_RSA_DECRYPTION = 3,
	TLSPROF_STEP_KEY_DERIVATION = 4,
	TLSPROF_STEP_COUNT = 5,
	/* Cookies only. OpenSSL 1.1.1 derives keys with the function that also
	 * agrees on the shared secret: a key exchange if the peer's key was set
	 * just before, else key derivation. */
	TLSPROF_STEP_BY_PEER = 16,
	/* Key exchanges whose ciphertext tells the group by its length. */
	TLSPROF_STEP_ENCAPSULATE = 17,
	TLSPROF_STEP_DECAPSULATE = 18,
};

/* Added to the cookie of a probe whose instruction the kernel does not emulate: it runs a copy
 * of it, up to a second trap. */
#define TLSPROF_SINGLE_STEPPED 256

/* Why a thread was off the CPU inside a handshake call. */
enum tlsprof_wait {
	TLSPROF_WAIT_RUN_QUEUE = 0, /* runnable, another thread had the CPU */
	TLSPROF_WAIT_LOCK = 1,      /* in futex */
	TLSPROF_WAIT_DISK = 2,      /* in_iowait */
	TLSPROF_WAIT_NETWORK = 3,   /* in a socket or poll system call */
	TLSPROF_WAIT_RANDOM = 4,    /* in getrandom, or reading a random source */
	TLSPROF_WAIT_PIPE = 5,      /* reading or writing another pipe or FIFO */
	TLSPROF_WAIT_OTHER = 6,
	TLSPROF_WAIT_COUNT = 7,
};

/* Data that was lost, by reason: indices of the `losses` per-CPU array. */
enum tlsprof_loss {
	TLSPROF_LOSS_EVENT_RING_FULL = 0,
	TLSPROF_LOSS_HANDSHAKE_TABLE_FULL = 1,
	TLSPROF_LOSS_THREAD_TABLE_FULL = 2,
	/* A handshake began inside a call of another handshake on one thread. */
	TLSPROF_LOSS_NESTED_HANDSHAKE = 3,
	/* A handshake that was under way when the probes were attached, or a
	 * renegotiation: it did public-key work, but its beginning was not seen. */
	TLSPROF_LOSS_BEGAN_BEFORE_ATTACH = 4,
	/* No memory for the state of a connection: it is not counted. */
	TLSPROF_LOSS_CONNECTION_NO_MEMORY = 5,
	/* Too many handshakes at once to follow this one on its socket. */
	TLSPROF_LOSS_EXCHANGE_TABLE_FULL = 6,
	/* The first bytes of a connection could not be read or followed: moved by
	 * io_uring or splice, or in very many small records. */
	TLSPROF_LOSS_HELLO_NOT_FOLLOWED = 7,
	/* CPU samples: too many distinct ones since the agent last read them. */
	TLSPROF_LOSS_SAMPLE_TABLE_FULL = 8,
	/* A kernel stack could not be walked. */
	TLSPROF_LOSS_SAMPLE_WITHOUT_STACK = 9,
	TLSPROF_LOSS_COUNT = 10,
};

/* Who ended a connection: who sent close_notify (of TLS), FIN or RST first. */
enum tlsprof_closer {
	TLSPROF_CLOSER_LOCAL = 1,
	TLSPROF_CLOSER_REMOTE = 2,
	/* The peer no longer answered. */
	TLSPROF_CLOSER_TIMEOUT = 3,
};

/* Written by the agent, read by the programs: element 0 of the `control` array.
 * A generation is odd while that group of probes is attached everywhere. */
struct tlsprof_control {
	__u32 steps_generation;
	__u32 key_derivation_generation;
	/* Odd while the hooks on socket calls are detached, or about to be: connections
	 * opened then are not followed. */
	__u32 calls_generation;
	/* What TLSPROF_SINGLE_STEPPED costs, calibrated. */
	__u32 single_step_ns;
};

struct tlsprof_event_header {
	__u32 kind; /* enum tlsprof_event_kind */
	__u32 pid;  /* process (thread group) id */
	__u64 time; /* when the event happened */
};

/*
 * One handshake, sent when it ends, by each source that saw it. A call is one of
 * the library's state machine; of the source SOCKET, a stretch from a socket call
 * that moved handshake bytes to the thread's next socket call or sleep.
 */
struct tlsprof_handshake_event {
	struct tlsprof_event_header header;
	__u64 process_start;            /* start_boottime of the process: tells reused pids apart */
	__u64 connection;               /* the TCP connection, 0 if not known */
	__u64 duration;                 /* first call to the end, wall clock */
	__u64 in_call;                  /* part of `duration` inside calls, on and off the CPU */
	__u64 cpu;                      /* part of `in_call` on the CPU, interrupts included */
	__u64 step[TLSPROF_STEP_COUNT]; /* LIBRARY: parts of `cpu` */
	__u64 flight[TLSPROF_FLIGHT_COUNT]; /* SOCKET: parts of `cpu`, add up to it */
	/* SOCKET: time on the CPU, not in `cpu`, after the peer's last handshake
	 * bytes where these came together with application data: finishing the
	 * handshake and answering the request cannot be told apart. */
	__u64 finish_and_answer;
	__u64 wait[TLSPROF_WAIT_COUNT]; /* parts of `in_call`: in_call = cpu + sum(wait) */
	__u32 calls;        /* retries included; SOCKET: stretches of work, 0: it was not timed */
	__u32 error_reason; /* reason number of the library's error, 0 for none */
	__u8 step_calls[TLSPROF_STEP_COUNT]; /* outermost calls, saturating */
	__u8 role;                           /* enum tlsprof_role */
	__u8 outcome;                        /* enum tlsprof_outcome */
	/* 1 when the probes of that group were attached from the handshake's
	 * beginning to its end; 0: its steps cannot be told apart. */
	__u8 steps_observed;
	__u8 key_derivation_observed;
	__u8 groups_named; /* names that `group` was set to, saturating */
	__u8 source;       /* enum tlsprof_source */
	/* SOCKET, 1: the thread that answered is not the one that had read, see `unseen_us`. */
	__u8 handed_over;
	/* SOCKET, 1: a handshake of the library names `connection`, or will; no other
	 * is the same. */
	__u8 named;
	__u8 library; /* enum tlsprof_library */
	/* SOCKET, TLS 1.3, 1: the client sent more than its Finished, as it does to answer
	 * a request for its certificate. */
	__u8 client_authenticates;
	__u32 probe_hits;         /* probes hit inside the calls: their cost is in `cpu` */
	__u32 signature_bytes;    /* length of the own signature, 0 for none */
	__u32 encapsulated_bytes; /* length of a KEM ciphertext, 0 for none */
	/* SOCKET: from the end of the reading thread's work to the beginning of the
	 * answering one's, microseconds. Other threads cannot have worked on it for longer. */
	__u32 unseen_us;
	char group[TLSPROF_GROUP_LEN]; /* the library's name of the key exchange group */
	char comm[TLSPROF_COMM_LEN];
};

/* A handshake under way: value of the `handshakes` hash. The agent ends those of
 * processes that have ended. */
struct tlsprof_handshake {
	struct tlsprof_handshake_event event;
	__u64 began;
	__u32 steps_generation;
	__u32 key_derivation_generation;
};

/* Its key. */
struct tlsprof_connection_object {
	__u64 object; /* address of the library's connection object */
	__u64 pid;
};

/* A call of a library that a thread is in: value of the `calls` hash. */
struct tlsprof_call {
	__u32 pid;
	__u8 private[TLSPROF_CALL_PRIVATE];
};

/* The thread on a CPU: value of the `timed_threads` per-CPU array. */
struct tlsprof_timed {
	__u8 private[TLSPROF_TIMED_PRIVATE];
};

/* A handshake that is followed on its socket: value of the `exchanges` hash. The agent gives
 * up those on whose connections nothing moves any more. */
struct tlsprof_exchange {
	__u64 began;   /* 0: the connection has not come to TLS yet */
	__u64 touched; /* when its last bytes moved */
	__u8 private[TLSPROF_EXCHANGE_PRIVATE];
};

/* fork (of a process, not a thread), exec and exit (of the last thread). */
struct tlsprof_process_event {
	struct tlsprof_event_header header;
	__u64 process_start;
	__u64 cpu;        /* exec, exit: CPU time of the whole process, all threads */
	__u64 user;       /* exec, exit: its user time by clock ticks, for a share of `cpu` only */
	__u64 system;     /* exec, exit: its system time by clock ticks, likewise */
	__u32 parent_pid; /* fork: the process that forked */
	__u32 reserved;
	char comm[TLSPROF_COMM_LEN];
	char path[TLSPROF_PATH_LEN]; /* exec: file name as given to execve */
};

/* A process that has a listening TCP socket open; once for each descriptor. */
struct tlsprof_listener {
	__u64 socket; /* inode */
	__u32 pid;
	__u16 port;
	__u16 reserved;
};

/* One TCP connection, opened or closed. What is known only at the close is 0 in
 * the event of the opening. */
struct tlsprof_connection_event {
	struct tlsprof_event_header header; /* pid: the owner, 0 if nobody read, wrote or closed */
	__u64 connection;                   /* tells connections apart; never reused */
	__u64 duration;       /* ESTABLISHED to CLOSE, 0 if its opening was not seen */
	__u64 accept_wait;    /* SERVER: ESTABLISHED to accept, at least 1; 0 if not seen */
	__u64 bytes_received; /* payload in order, read by the owner or not */
	__u64 bytes_sent;     /* payload, each byte once */
	/* Parts of the two that moved after the TLS handshake, 0 without TLS. */
	__u64 application_received;
	__u64 application_sent;
	__u64 round_trip;  /* least that TCP has measured, 0 if it has not */
	__u64 remote;      /* CLIENT: tells remote endpoints apart, a keyed hash; else 0 */
	__u32 local_ports; /* CLIENT: how many ephemeral ports its network namespace has */
	__u32 turns;   /* where `followed`: requests with their answers, see connection_data() */
	__u32 segment; /* payload of a full segment on the way to the peer, in bytes */
	/* 1: socket calls were seen when it was opened; CLOSED: from then on to its end. */
	__u8 followed;
	/* CLOSED: 1: tells the opening too, for which there is no OPENED. */
	__u8 untold;
	__u8 reserved[2];
	__u16 port;     /* local port, 0 if its opening was not seen */
	__u8 role;      /* enum tlsprof_role, 0 if its opening was not seen */
	__u8 closed_by; /* enum tlsprof_closer */
	__u8 reset;     /* 1: ended by RST, from either side */
	__u8 time_wait; /* 1: left a TIME_WAIT bucket on this side */
	__u8 seen_open; /* 0: it was open before the watch began */
	__u8 tls;       /* enum tlsprof_tls */
	char comm[TLSPROF_COMM_LEN];
};

/*
 * The next bytes in clear at the beginning of TLS on a connection, in one direction.
 * Sent as long as the array is filled. `offset` is where they stand in TLS: what is
 * missing in between could not be read. Of what came before TLS there is only its kind.
 */
struct tlsprof_hello_event {
	struct tlsprof_event_header header; /* pid: who read or wrote */
	__u64 connection;
	__u32 offset;
	__u16 length;   /* of `bytes` */
	__u8 direction; /* enum tlsprof_direction */
	__u8 role;      /* enum tlsprof_role of the TCP connection */
	__u8 upgrade;   /* enum tlsprof_upgrade: the protocol that came before */
	__u8 proxied;   /* 1: a PROXY header came before */
	__u8 reserved[6];
	__u8 bytes[TLSPROF_HELLO_LEN];
};

/* What a CPU did when it was sampled: bits of `state` in a sample's key. */
enum tlsprof_sample_state {
	TLSPROF_SAMPLE_KERNEL = 1, /* it ran in kernel mode, else in user mode */
	/* What the thread was at work on, as the sources of handshakes see it. */
	TLSPROF_SAMPLE_IN_CALL = 2,  /* inside a call of the library's state machine */
	TLSPROF_SAMPLE_IN_PHASE = 4, /* in the phase of a handshake on a socket */
	/* The process has not been in such a phase yet: it has just started, or has no
	 * handshakes. */
	TLSPROF_SAMPLE_BEFORE_PHASES = 8,
};

/* Samples that are alike: key of the `samples` hash. */
struct tlsprof_sample_key {
	/* User mode: address of the next instruction. Kernel mode: a hash of the
	 * kernel stack. */
	__u64 place;
	__u32 pid;   /* 0: the idle task */
	__u32 state; /* enum tlsprof_sample_state */
};

/* Its value. The agent reads and deletes entries with their counts. */
struct tlsprof_sample {
	__u64 count;
	/* User mode: address of the next instruction. Kernel mode: where the first of
	 * these left user mode, 0 if not known. */
	__u64 instruction;
	__u32 length; /* bytes of `data` that hold something, but for words of the stack */
	__u32 before; /* user mode: how many of them lie before `instruction` */
	/* In a handshake, 64-bit code: registers that show who called. Kernel mode: when
	 * it left user mode. */
	__u64 stack_pointer;
	__u64 frame_pointer;
	__u64 link;       /* AArch64: x30 */
	__u32 words;      /* how many words of the stack `data` holds */
	__u32 first_word; /* and from which of its own on */
	/* User mode: machine code around `instruction`, at most TLSPROF_CODE_SIDE bytes
	 * before it and as many from it on. Kernel mode: addresses in the kernel, innermost
	 * first. Behind it, words of the stack in user space that may be return addresses or
	 * saved frame pointers: the lower TLSPROF_WORD_BITS bits of each, and above them how
	 * many words from `stack_pointer` it was. */
	__u64 data[TLSPROF_STACK_DEPTH];
};

#endif
