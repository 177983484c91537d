/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Coroutines over makecontext(3), of one thread. */
#ifndef TLSPROF_TESTS_COROUTINE_H
#define TLSPROF_TESTS_COROUTINE_H

#include <stdbool.h>

struct coroutine;

/* A coroutine that will call `run`; it has not begun yet. */
struct coroutine *coroutine_new(void (*run)(void *), void *argument);

/* Runs it until it yields or ends. False when it has ended: it is gone then. */
bool coroutine_resume(struct coroutine *coroutine);

/* Goes back from the running coroutine to whom resumed it. */
void coroutine_yield(void);

#endif
