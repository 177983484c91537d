/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A TLS server that measures its own handshakes: the ground truth for tlsprof. It is built with
 * OpenSSL (selftimed) and with GnuTLS (selftimed_gnutls).
 *
 * Around every call of the handshake function (SSL_accept, gnutls_handshake) it reads the thread's
 * CPU clock, and adds up the calls of one connection. Three forms: a thread per connection (blocking),
 * one thread with epoll (non-blocking), and a process per connection. With
 * librecordclock.so preloaded it also says what the records of answers took.
 *
 * It prints "port N" when it listens. When stdin closes or SIGTERM comes it
 * lets its connections end and prints one line of JSON.
 */
#define _GNU_SOURCE
#include "selftimed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 1024, EVENTS = 64, CLIENT_TIMEOUT_SECONDS = 60, THREAD_STACK = 256 * 1024 };

struct totals *totals;

static struct connection *connection_open(int fd)
{
	struct connection *conn = calloc(1, sizeof(*conn));

	if (!conn)
		fail("calloc");
	conn->fd = fd;
	conn->tls = tls_open(fd);
	conn->began_ns = clock_ns(CLOCK_MONOTONIC);
	return conn;
}

/* Goes on with the handshake, then with the one request, as far as it can. */
static enum progress connection_advance(struct connection *conn)
{
	if (!conn->handshake_ended) {
		enum progress next = tls_handshake(conn);

		if (!conn->handshake_ended || next == PROGRESS_END)
			return next;
	}
	return tls_serve(conn);
}

/* A handshake still under way counts as abandoned. */
static void connection_close(struct connection *conn)
{
	if (!conn->handshake_ended)
		count_handshake(conn, &totals->abandoned);
	tls_close(conn->tls);
	/* Last: the client takes the close as a sign that all is counted. */
	close(conn->fd);
	free(conn);
	totals->connections--;
}

/* On a blocking socket a wait means that the client's time was up. */
static void *serve_blocking(void *argument)
{
	struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_SECONDS };
	struct connection *conn = connection_open((int)(intptr_t)argument);

	setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	connection_advance(conn);
	connection_close(conn);
	return NULL;
}

static void start_thread(int fd)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	if (pthread_create(&thread, &attributes, serve_blocking, (void *)(intptr_t)fd))
		fail("pthread_create");
	pthread_attr_destroy(&attributes);
}

static void start_process(int fd)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		serve_blocking((void *)(intptr_t)fd);
		_exit(0);
	}
	close(fd);
}

static void wait_until_idle(void)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + CLIENT_TIMEOUT_SECONDS * 1000000000ull;

	while (totals->connections && clock_ns(CLOCK_MONOTONIC) < end)
		poll(NULL, 0, 1);
}

static void run_blocking(int listener, int stop_signal, void (*start)(int fd))
{
	struct pollfd fds[] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = stop_signal, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			fail("poll");
		if (fds[1].revents || fds[2].revents)
			break;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		totals->connections++;
		start(fd);
	}
	wait_until_idle();
}

static void accept_all(int epoll, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct connection *conn = connection_open(fd);
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

		totals->connections++;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			fail("epoll_ctl");
	}
}

static void advance_polled(int epoll, struct connection *conn)
{
	enum progress next = connection_advance(conn);
	struct epoll_event event = { .data.ptr = conn };

	if (next == PROGRESS_END) {
		connection_close(conn);
		return;
	}
	event.events = next == PROGRESS_WAIT_READ ? EPOLLIN : EPOLLOUT;
	epoll_ctl(epoll, EPOLL_CTL_MOD, conn->fd, &event);
}

static void run_epoll(int listener, int stop_signal)
{
	static char listener_mark, stop_mark;
	struct epoll_event listening = { .events = EPOLLIN, .data.ptr = &listener_mark };
	struct epoll_event stopping = { .events = EPOLLIN, .data.ptr = &stop_mark };
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, stop_signal, &stopping) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &stopping))
		fail("epoll_ctl");
	for (;;) {
		int ready = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < ready; i++) {
			if (events[i].data.ptr == &stop_mark)
				return;
			if (events[i].data.ptr == &listener_mark)
				accept_all(epoll, listener);
			else
				advance_polled(epoll, events[i].data.ptr);
		}
	}
}

static int listen_on(int port, bool nonblocking)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&address, &length))
		fail("listen");
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void print_totals(void)
{
	printf("{\"completed\":%lu,\"resumed\":%lu,\"failed\":%lu,\"abandoned\":%lu,"
	       "\"cpu_seconds\":%.9f,\"completed_cpu_seconds\":%.9f,\"wall_seconds\":%.9f,"
	       "\"record_seconds\":%.9f}\n",
	       totals->completed, totals->resumed, totals->failed, totals->abandoned,
	       (double)totals->cpu_ns / 1e9, (double)totals->completed_cpu_ns / 1e9,
	       (double)totals->wall_ns / 1e9, (double)totals->record_ns / 1e9);
}

static void set_option(struct options *options, int option)
{
	switch (option) {
	case 't':
		options->form = FORM_THREADS;
		break;
	case 'e':
		options->form = FORM_EPOLL;
		break;
	case 'f':
		options->form = FORM_FORK;
		break;
	case 'p':
		options->port = atoi(optarg);
		break;
	case 'c':
		options->cert = optarg;
		break;
	case 'k':
		options->key = optarg;
		break;
	case 'g':
		options->groups = optarg;
		break;
	case 'v':
		options->tls = optarg;
		break;
	case 'C':
		options->ciphers = optarg;
		break;
	case 'S':
		options->ciphersuites = optarg;
		break;
	case 'n':
		options->no_tickets = true;
		break;
	default:
		exit(2);
	}
}

static struct options parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "threads", no_argument, NULL, 't' },
		{ "epoll", no_argument, NULL, 'e' },
		{ "fork", no_argument, NULL, 'f' },
		{ "port", required_argument, NULL, 'p' },
		{ "cert", required_argument, NULL, 'c' },
		{ "key", required_argument, NULL, 'k' },
		{ "groups", required_argument, NULL, 'g' },
		{ "tls", required_argument, NULL, 'v' },
		{ "ciphers", required_argument, NULL, 'C' },
		{ "ciphersuites", required_argument, NULL, 'S' },
		{ "no-tickets", no_argument, NULL, 'n' },
		{ 0 },
	};
	struct options options = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		set_option(&options, option);
	if (!options.form || !options.cert || !options.key) {
		fprintf(stderr,
			"usage: %s --threads|--epoll|--fork --cert FILE --key FILE "
			"[--port N] [--tls 1.2|1.3|any] [--groups LIST] [--ciphers LIST] "
			"[--ciphersuites LIST] [--no-tickets]\n",
			argv[0]);
		exit(2);
	}
	return options;
}

static int block_stop_signal(void)
{
	sigset_t stop;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	return signalfd(-1, &stop, SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	int stop_signal = block_stop_signal();
	int listener;

	totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (totals == MAP_FAILED)
		fail("mmap");
	connections_setup(&options);
	listener = listen_on(options.port, options.form == FORM_EPOLL);
	if (options.form == FORM_EPOLL)
		run_epoll(listener, stop_signal);
	else
		run_blocking(listener, stop_signal,
			     options.form == FORM_FORK ? start_process : start_thread);
	print_totals();
	return 0;
}
