/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A TLS server with a coroutine for each connection, in one thread: reading from
 * a socket without data switches to another stack in the middle of a handshake.
 * Return probes in libssl would kill it.
 *
 * It echoes the first byte of each connection and closes. The coroutines come
 * from a library that it loads with dlopen: at once, or with --late when a line
 * comes on its standard input. It prints "port N" when it listens.
 *
 * usage: coroutines CERT KEY LIBRARY [--late]
 */
#define _GNU_SOURCE
#include "common.h"
#include "coroutine.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 64, BACKLOG = 64 };

static SSL_CTX *ctx;
static BIO_METHOD *yielding;
static typeof(coroutine_new) *new_coroutine;
static typeof(coroutine_resume) *resume;
static typeof(coroutine_yield) *yield;

static void *symbol(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return address;
}

static void load_coroutines(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	new_coroutine = symbol(library, "coroutine_new");
	resume = symbol(library, "coroutine_resume");
	yield = symbol(library, "coroutine_yield");
}

static int read_or_yield(BIO *bio, char *data, int size)
{
	int fd = (int)(intptr_t)BIO_get_data(bio);

	for (;;) {
		ssize_t got = recv(fd, data, (size_t)size, MSG_DONTWAIT);

		if (got >= 0 || (errno != EAGAIN && errno != EINTR))
			return (int)got;
		yield();
	}
}

/* What this server sends fits into any socket's buffer. */
static int write_all(BIO *bio, const char *data, int size)
{
	return (int)send((int)(intptr_t)BIO_get_data(bio), data, (size_t)size, MSG_NOSIGNAL);
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static void make_bio_method(void)
{
	yielding = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "yielding socket");
	if (!yielding || !BIO_meth_set_read(yielding, read_or_yield) ||
	    !BIO_meth_set_write(yielding, write_all) || !BIO_meth_set_ctrl(yielding, control))
		die("BIO_meth_new");
}

static void serve(void *argument)
{
	BIO *bio = BIO_new(yielding);
	SSL *ssl = SSL_new(ctx);
	char byte;

	if (!bio || !ssl)
		die("SSL_new");
	BIO_set_data(bio, argument);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, &byte, 1) == 1)
		SSL_write(ssl, &byte, 1);
	SSL_free(ssl);
}

static int listen_anywhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) ||
	    listen(listener, BACKLOG) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen");
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	return listener;
}

static void run(int listener)
{
	struct pollfd fds[CONNECTIONS + 1] = { { .fd = listener, .events = POLLIN } };
	struct coroutine *coroutines[CONNECTIONS + 1];
	nfds_t count = 1;

	for (;;) {
		if (poll(fds, count, -1) < 0)
			die("poll");
		for (nfds_t i = count - 1; i > 0; i--) {
			if (!fds[i].revents || resume(coroutines[i]))
				continue;
			close(fds[i].fd);
			count--;
			fds[i] = fds[count];
			coroutines[i] = coroutines[count];
		}
		if (fds[0].revents && count <= CONNECTIONS) {
			int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			if (fd < 0)
				die("accept");
			fds[count] = (struct pollfd){ .fd = fd, .events = POLLIN };
			coroutines[count++] = new_coroutine(serve, (void *)(intptr_t)fd);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: coroutines CERT KEY LIBRARY [--late]\n");
		return 2;
	}
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx || SSL_CTX_use_certificate_chain_file(ctx, argv[1]) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, argv[2], SSL_FILETYPE_PEM) != 1)
		die("SSL_CTX_new");
	make_bio_method();
	bool late = argc > 4;
	if (!late)
		load_coroutines(argv[3]);
	int listener = listen_anywhere();
	if (late) {
		getchar();
		load_coroutines(argv[3]);
	}
	run(listener);
}
