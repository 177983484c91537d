/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server as closed ones are, HCL Domino's task `http` for one: its TLS stack
 * linked in and stripped, a thread per connection, blocking reads, at most five
 * requests on a connection, sessions resumed by id and by ticket.
 *
 *     http CERTIFICATE KEY [OPTIONS]
 *
 * prints `port N`, and with --plain `plain N`, where it serves the same without TLS.
 * With --exec it is a server of another kind: its parent accepts, and each connection
 * is served by a program that is started for it, as inetd does.
 */
#define _GNU_SOURCE
#include "static_http.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512, STACK_BYTES = 256 * 1024 };

struct options {
	int version;
	const char *groups;
	bool no_sessions;
	bool plain;
	bool exec;
	int connection;  /* serve this descriptor, then end */
	int ticket_keys; /* file with the keys that all processes seal tickets with */
	struct service service;
};

struct accepting {
	const struct service *service;
	int listener;
};

struct accepted {
	const struct service *service;
	int fd;
};

/* A group of RFC 7919 for DHE up to TLS 1.2; OpenSSL's own choice is an older one. */
static void use_ffdhe(SSL_CTX *ctx)
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

/* With keys of their own, processes could not resume each other's sessions. */
static void use_ticket_keys(SSL_CTX *ctx, int file)
{
	unsigned char keys[TICKET_KEY_BYTES];

	if (pread(file, keys, sizeof(keys), 0) != sizeof(keys) ||
	    SSL_CTX_set_tlsext_ticket_keys(ctx, keys, sizeof(keys)) != 1)
		die("ticket keys");
}

static SSL_CTX *context(const char *certificate, const char *key, const struct options *options)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx || SSL_CTX_use_certificate_file(ctx, certificate, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		die("SSL_CTX");
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	use_version(ctx, options->version);
	if (options->groups && SSL_CTX_set1_groups_list(ctx, options->groups) != 1)
		die("groups");
	use_ffdhe(ctx);
	if (options->ticket_keys >= 0)
		use_ticket_keys(ctx, options->ticket_keys);
	if (options->no_sessions) {
		SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(ctx, 0);
	}
	return ctx;
}

static int listen_on_loopback(const char *name)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&address, &length))
		die("listen");
	printf("%s %d\n", name, ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void *serve(void *argument)
{
	struct accepted accepted = *(struct accepted *)argument;

	free(argument);
	serve_connection(accepted.service, accepted.fd);
	return NULL;
}

static void start_thread(const struct service *service, int fd)
{
	struct accepted *accepted = malloc(sizeof(*accepted));
	pthread_attr_t attributes;
	pthread_t thread;

	if (!accepted)
		die("malloc");
	*accepted = (struct accepted){ .service = service, .fd = fd };
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&thread, &attributes, serve, accepted))
		die("pthread_create");
	pthread_attr_destroy(&attributes);
}

static void *accept_in_threads(void *argument)
{
	const struct accepting *accepting = argument;

	for (;;) {
		int fd = accept4(accepting->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			start_thread(accepting->service, fd);
	}
	return NULL;
}

static void accept_forever(const struct options *options, char **argv)
{
	struct service plain = options->service;
	struct accepting with = { .service = &options->service };
	struct accepting without = { .service = &plain };
	pthread_t thread;

	plain.ctx = NULL;
	with.listener = listen_on_loopback("port");
	if (options->exec)
		accept_in_programs(with.listener, argv);
	if (options->plain) {
		without.listener = listen_on_loopback("plain");
		if (pthread_create(&thread, NULL, accept_in_threads, &without))
			die("pthread_create");
	}
	accept_in_threads(&with);
}

static _Noreturn void usage(const char *program)
{
	fprintf(stderr,
		"usage: %s CERTIFICATE KEY [--tls 1.2|1.3|any] [--groups LIST] [--requests N] "
		"[--bytes N] [--no-sessions] [--plain | --exec]\n",
		program);
	exit(2);
}

static struct options parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "tls", required_argument, NULL, 'v' },
		{ "groups", required_argument, NULL, 'g' },
		{ "requests", required_argument, NULL, 'r' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "no-sessions", no_argument, NULL, 's' },
		{ "plain", no_argument, NULL, 'p' },
		{ "exec", no_argument, NULL, 'e' },
		{ "connection", required_argument, NULL, 'c' },
		{ "ticket-keys", required_argument, NULL, 'k' },
		{ 0 },
	};
	struct options options = { .connection = -1, .ticket_keys = -1 };
	int option;

	options.service = (struct service){ .requests = 5, .bytes = 3 };
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'v':
			options.version = tls_version(optarg);
			break;
		case 'g':
			options.groups = optarg;
			break;
		case 'r':
			options.service.requests = strtoul(optarg, NULL, 10);
			break;
		case 'b':
			options.service.bytes = strtoul(optarg, NULL, 10);
			break;
		case 's':
			options.no_sessions = true;
			break;
		case 'p':
			options.plain = true;
			break;
		case 'e':
			options.exec = true;
			break;
		case 'c':
			options.connection = atoi(optarg);
			break;
		case 'k':
			options.ticket_keys = atoi(optarg);
			break;
		default:
			usage(argv[0]);
		}
	}
	if (argc - optind != 2 || argc > ARGUMENTS_MAX || !options.service.requests ||
	    !options.service.bytes)
		usage(argv[0]);
	return options;
}

int main(int argc, char **argv)
{
	char *kept[ARGUMENTS_MAX + 1] = { 0 };
	struct options options;

	for (int i = 0; i < argc && i < ARGUMENTS_MAX; i++)
		kept[i] = argv[i];
	options = parse_options(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	/* A parent that only starts programs needs no certificate. */
	if (!options.exec || options.connection >= 0)
		options.service.ctx = context(argv[optind], argv[optind + 1], &options);
	if (options.connection >= 0)
		serve_connection(&options.service, options.connection);
	else
		accept_forever(&options, kept);
	return 0;
}
