/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "static_http.h"

#include <openssl/rand.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int unused)
{
	int kept = errno;

	(void)unused;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = kept;
}

/* The program that is started gets the same arguments, and two more. */
static void start_program(char **arguments, int fd, int ticket_keys)
{
	char connection[16];
	char keys[16];
	char *argv[ARGUMENTS_MAX + 5];
	int argc = 0;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0) {
		close(fd);
		return;
	}
	while (arguments[argc] && argc < ARGUMENTS_MAX) {
		argv[argc] = arguments[argc];
		argc++;
	}
	snprintf(connection, sizeof(connection), "%d", fd);
	snprintf(keys, sizeof(keys), "%d", ticket_keys);
	argv[argc++] = "--connection";
	argv[argc++] = connection;
	argv[argc++] = "--ticket-keys";
	argv[argc++] = keys;
	argv[argc] = NULL;
	execv(argv[0], argv);
	_exit(127);
}

_Noreturn void accept_in_programs(int listener, char **arguments)
{
	struct sigaction action = { .sa_handler = reap, .sa_flags = SA_RESTART };
	unsigned char keys[TICKET_KEY_BYTES];
	int file = memfd_create("ticket-keys", 0);

	if (RAND_bytes(keys, sizeof(keys)) != 1 || file < 0 ||
	    write(file, keys, sizeof(keys)) != sizeof(keys) || sigaction(SIGCHLD, &action, NULL))
		die("ticket keys");
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			start_program(arguments, fd, file);
	}
}
