/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * All programs in one object, because they share maps: linked from several objects, each
 * map and each function would have to be declared in one of them and defined in another,
 * and no function could be inlined across. Each file also compiles by itself.
 *
 * A function is __noinline where several paths lead to it, or where it runs once for a
 * handshake and would only stand in the way of the other calls (finish, describe_exchange):
 * inlined everywhere, the programs at socket calls were more than twice as long. The
 * others are inlined, as a call costs more than they do.
 */
#include "accept.bpf.c"
#include "connections.bpf.c"
#include "gnutls.bpf.c"
#include "listeners.bpf.c"
#include "openssl.bpf.c"
#include "processes.bpf.c"
#include "samples.bpf.c"
#include "scheduler.bpf.c"
#include "sockets.bpf.c"

/* "Dual MIT/GPL" opens the helpers that ask for a GPL-compatible licence. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
