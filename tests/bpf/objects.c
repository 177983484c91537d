/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connection objects of a library over memory and their connections. */
#include "check.h"
#include "object.h"

enum { CONNECTIONS = 12, ROUNDS = 2000, OBJECT = 0x1000 };

/* What a connection does next, in this order. */
enum step {
	STEP_ACCEPT, /* SERVER: some make their object before anything has come */
	STEP_FIRST,  /* CLIENT: makes its hello and sends it; SERVER: reads one and answers */
	STEP_SECOND, /* reads, and goes on */
	STEP_CLOSE,
	STEP_DONE,
};

enum kind { KIND_SERVER, KIND_CLIENT, KIND_OWN_SOCKET, KIND_WITHOUT_LIBRARY, KIND_COUNT };

struct side {
	struct exchange exchange;
	struct tlsprof_handshake handshake;
	enum kind kind;
	enum step step;
};

/* One thread with all that the programs keep, `sides` by connection less one. */
struct thread {
	struct side sides[CONNECTIONS];
	__u64 phase;      /* connection */
	__u64 hello_made; /* object */
	__u64 random;
};

static __u32 draw(struct thread *thread, __u32 below)
{
	thread->random = thread->random * 6364136223846793005u + 1442695040888963407u;
	return (thread->random >> 33) % below;
}

static __u64 object_of(__u64 connection)
{
	return OBJECT + connection;
}

static struct side *side_of(struct thread *thread, __u64 connection)
{
	return &thread->sides[connection - 1];
}

/* A call of the library that makes no socket call, as calls.h joins it. */
static void call_library(struct thread *thread, __u64 connection)
{
	struct side *side = side_of(thread, connection);
	struct call call = { .object = object_of(connection), .role = side->handshake.event.role };

	if (makes_hello(&side->handshake))
		thread->hello_made = call.object;
	else if (thread->phase && side_of(thread, thread->phase)->step != STEP_DONE &&
		 exchange_take(&side_of(thread, thread->phase)->exchange, call.object, call.role))
		call.connection = thread->phase;
	handshake_add_call(&side->handshake, &call, 0);
}

/* Handshake bytes move outside of calls. */
static void move_bytes(struct thread *thread, __u64 connection, bool hello_sent)
{
	struct side *side = side_of(thread, connection);

	if (hello_sent && thread->hello_made) {
		exchange_hello(&side->exchange, connection,
			       &side_of(thread, thread->hello_made - OBJECT)->handshake,
			       thread->hello_made);
		thread->hello_made = 0;
	}
	thread->phase = connection;
}

static void call_on_own_socket(struct thread *thread, __u64 connection)
{
	struct side *side = side_of(thread, connection);
	struct call call = { .object = object_of(connection), .connection = connection };

	side->exchange.object = call.object;
	handshake_add_call(&side->handshake, &call, 0);
	thread->phase = connection;
}

static void go_on(struct thread *thread, __u64 connection)
{
	struct side *side = side_of(thread, connection);
	enum step step = side->step++;

	if (step == STEP_CLOSE || (step == STEP_ACCEPT && side->kind != KIND_SERVER))
		return;
	switch (side->kind) {
	case KIND_SERVER:
		if (step != STEP_ACCEPT)
			move_bytes(thread, connection, false);
		if (step != STEP_ACCEPT || draw(thread, 2))
			call_library(thread, connection);
		break;
	case KIND_CLIENT:
		if (step != STEP_FIRST)
			move_bytes(thread, connection, false);
		call_library(thread, connection);
		move_bytes(thread, connection, step == STEP_FIRST);
		break;
	case KIND_OWN_SOCKET:
		call_on_own_socket(thread, connection);
		break;
	default:
		move_bytes(thread, connection, step == STEP_FIRST);
	}
}

static void begin(struct thread *thread, __u64 connection)
{
	struct side *side = side_of(thread, connection);
	__u8 role;

	side->kind = draw(thread, KIND_COUNT);
	role = side->kind == KIND_SERVER || (side->kind == KIND_OWN_SOCKET && draw(thread, 2))
		       ? TLSPROF_ROLE_SERVER
		       : TLSPROF_ROLE_CLIENT;
	side->exchange.event.role = role;
	side->handshake.event.role = role;
}

static void check_connections(struct thread *thread)
{
	for (__u64 id = 1; id <= CONNECTIONS; id++) {
		const struct side *side = side_of(thread, id);
		bool moved = side->step > STEP_FIRST;
		bool has_library = side->kind != KIND_WITHOUT_LIBRARY;

		CHECK_EQUAL(side->handshake.event.connection, moved && has_library ? id : 0);
	}
}

/* Connections of all kinds on one thread, in any order, each left at any point. */
static void each_object_finds_its_own_connection(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct thread thread = { .random = round };

		for (__u64 id = 1; id <= CONNECTIONS; id++)
			begin(&thread, id);
		for (int i = draw(&thread, CONNECTIONS * STEP_DONE * 2); i; i--) {
			__u64 id = 1 + draw(&thread, CONNECTIONS);

			if (side_of(&thread, id)->step < STEP_DONE)
				go_on(&thread, id);
		}
		check_connections(&thread);
	}
}

static void a_connection_is_of_one_object_and_one_role(void)
{
	struct exchange exchange = { .event.role = TLSPROF_ROLE_SERVER };

	CHECK_EQUAL(exchange_take(&exchange, OBJECT, TLSPROF_ROLE_CLIENT), false);
	CHECK_EQUAL(exchange_take(&exchange, OBJECT, TLSPROF_ROLE_SERVER), true);
	CHECK_EQUAL(exchange_take(&exchange, OBJECT + 1, TLSPROF_ROLE_SERVER), false);
	CHECK_EQUAL(exchange_take(&exchange, OBJECT, TLSPROF_ROLE_SERVER), true);
}

static void a_hello_that_was_never_sent_does_not_take_another(void)
{
	struct exchange exchange = { .event.role = TLSPROF_ROLE_CLIENT };
	struct tlsprof_handshake settled = { .event.role = TLSPROF_ROLE_CLIENT,
					     .event.connection = 7 };

	exchange_hello(&exchange, 8, &settled, OBJECT);
	CHECK_EQUAL(settled.event.connection, 7);
	CHECK_EQUAL(exchange.object, 0);
}

int main(void)
{
	RUN(each_object_finds_its_own_connection);
	RUN(a_connection_is_of_one_object_and_one_role);
	RUN(a_hello_that_was_never_sent_does_not_take_another);
	return summary();
}
