/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A library of its own, as a runtime with coroutines is: tlsprof must find it in
 * a process whose program does not import makecontext. */
#include "coroutine.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 256 * 1024 };

struct coroutine {
	void (*run)(void *);
	void *argument;
	ucontext_t here, caller;
	bool ended;
	char stack[STACK];
};

static struct coroutine *running;

static void begin(void)
{
	running->run(running->argument);
	running->ended = true;
}

struct coroutine *coroutine_new(void (*run)(void *), void *argument)
{
	struct coroutine *coroutine = calloc(1, sizeof(*coroutine));

	if (!coroutine || getcontext(&coroutine->here)) {
		perror("coroutine_new");
		exit(1);
	}
	coroutine->run = run;
	coroutine->argument = argument;
	coroutine->here.uc_stack.ss_sp = coroutine->stack;
	coroutine->here.uc_stack.ss_size = sizeof(coroutine->stack);
	coroutine->here.uc_link = &coroutine->caller;
	makecontext(&coroutine->here, begin, 0);
	return coroutine;
}

bool coroutine_resume(struct coroutine *coroutine)
{
	running = coroutine;
	swapcontext(&coroutine->caller, &coroutine->here);
	if (!coroutine->ended)
		return true;
	free(coroutine);
	return false;
}

void coroutine_yield(void)
{
	swapcontext(&running->here, &running->caller);
}
