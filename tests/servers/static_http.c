/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server as closed ones are, HCL Domino's task `http` for one: its TLS stack
 * linked in and stripped, a thread per connection, blocking reads.
 *
 *     http CERTIFICATE KEY [1.2|1.3|any]
 *
 * prints `port N` and answers one request per connection: see answer.h.
 */
#define _GNU_SOURCE
#include "answer.h"
#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512, STACK_BYTES = 256 * 1024 };

static SSL_CTX *ctx;

/* A group of RFC 7919 for DHE up to TLS 1.2; OpenSSL's own choice is an older one. */
static void use_ffdhe(void)
{
	EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
	EVP_PKEY *parameters = NULL;

	if (!maker || EVP_PKEY_paramgen_init(maker) != 1 ||
	    EVP_PKEY_CTX_set_group_name(maker, "ffdhe2048") != 1 ||
	    EVP_PKEY_generate(maker, &parameters) != 1 ||
	    SSL_CTX_set0_tmp_dh_pkey(ctx, parameters) != 1)
		die("DH parameters");
	EVP_PKEY_CTX_free(maker);
}

static void make_context(char **argv, const char *version)
{
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx || SSL_CTX_use_certificate_file(ctx, argv[1], SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, argv[2], SSL_FILETYPE_PEM) != 1)
		die("SSL_CTX");
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	use_version(ctx, tls_version(version));
	use_ffdhe();
}

static int listen_on_loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&address, &length))
		die("listen");
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void *serve(void *argument)
{
	static const char answer[] = "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok\n";
	int fd = (int)(intptr_t)argument;
	SSL *ssl = SSL_new(ctx);
	char request[4096] = { 0 };

	if (!ssl || !SSL_set_fd(ssl, fd))
		die("SSL_new");
	if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof(request) - 1) > 0) {
		long length = asked_length(request);

		if (length)
			send_long_answer(ssl, length);
		else
			SSL_write(ssl, answer, sizeof(answer) - 1);
		SSL_shutdown(ssl);
	}
	ERR_clear_error();
	SSL_free(ssl);
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	int listener;

	if (argc < 3) {
		fprintf(stderr, "usage: %s CERTIFICATE KEY [1.2|1.3|any]\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	make_context(argv, argc > 3 ? argv[3] : "any");
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	listener = listen_on_loopback();
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pthread_t thread;

		if (fd >= 0 && pthread_create(&thread, &attributes, serve, (void *)(intptr_t)fd))
			die("pthread_create");
	}
}
