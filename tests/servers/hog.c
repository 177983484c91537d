/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Uses CPU time in a known way and says how much: the ground truth for CPU samples.
 *
 * Four forms: threads that compute, threads that make system calls, children that
 * compute one after another, each for a few milliseconds of CPU time, and children that
 * do so in a thread that outlives the first one.
 *
 * It prints "ready", begins at the first line on stdin, ends when stdin closes, and
 * prints one line of JSON.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 64, PIECE = 1 << 20 };

static atomic_bool over;

/* Arithmetic that no compiler can leave out, for about a millisecond. */
static void compute(void)
{
	uint64_t value = 88172645463325252u;

	for (int i = 0; i < 400000; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	__asm__ volatile("" : : "r"(value));
}

static void *compute_on(void *unused)
{
	(void)unused;
	while (!over)
		compute();
	return NULL;
}

/* Nearly all of it in the kernel, which clears the memory. */
static void *call_on(void *unused)
{
	char *buffer = malloc(PIECE);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)unused;
	if (!buffer || zeros < 0)
		die("/dev/zero");
	while (!over)
		if (read(zeros, buffer, PIECE) != PIECE)
			die("read");
	close(zeros);
	free(buffer);
	return NULL;
}

/* Ends the process without libcrypto's cleaning up, which is not what it is to compute. */
static void *compute_for(void *cpu_ns)
{
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < *(uint64_t *)cpu_ns)
		compute();
	_exit(0);
}

/* The process ends with the other thread. */
static void compute_in_thread(uint64_t *cpu_ns)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, compute_for, cpu_ns))
		die("pthread_create");
	pthread_exit(NULL);
}

static void compute_in_child(uint64_t cpu_ns, bool in_thread)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		/* Outlives the first thread's stack. */
		static uint64_t wanted;

		wanted = cpu_ns;
		if (in_thread)
			compute_in_thread(&wanted);
		compute_for(&wanted);
	}
	if (waitpid(pid, NULL, 0) != pid)
		die("waitpid");
}

static double seconds(int who)
{
	struct rusage used;

	getrusage(who, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void wait_for_line(void)
{
	char byte = 0;

	while (byte != '\n')
		if (read(STDIN_FILENO, &byte, 1) != 1)
			exit(1);
}

static bool stdin_closed(int timeout_ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, timeout_ms) > 0;
}

static void run_threads(int count, void *(*work)(void *))
{
	pthread_t threads[MOST_THREADS];

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			die("pthread_create");
	while (!stdin_closed(-1))
		;
	over = true;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "compute", required_argument, NULL, 'u' },
		{ "call", required_argument, NULL, 'k' },
		{ "children", required_argument, NULL, 'c' },
		{ "threaded-children", required_argument, NULL, 't' },
		{ 0 },
	};
	int form = getopt_long(argc, argv, "", names, NULL);
	int number = form < 0 || form == '?' ? 0 : atoi(optarg);

	if (number < 1 || number > MOST_THREADS) {
		fprintf(stderr,
			"usage: %s --compute THREADS | --call THREADS | --children MS | "
			"--threaded-children MS\n",
			*argv);
		return 2;
	}
	puts("ready");
	fflush(stdout);
	wait_for_line();
	if (form == 'u' || form == 'k')
		run_threads(number, form == 'u' ? compute_on : call_on);
	else
		while (!stdin_closed(0))
			compute_in_child((uint64_t)number * 1000000u, form == 't');
	printf("{\"cpu_seconds\":%.6f}\n", seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN));
	return 0;
}
