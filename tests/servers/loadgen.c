/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A TLS client that makes an exact number of handshakes of each kind and
 * prints what it saw as one line of JSON.
 *
 * The first full handshake comes first, by itself; its session is what the
 * resumed ones take up. The others follow in a fixed shuffled order, taken by
 * the threads one by one. Exit status 1 if any went otherwise than planned.
 */
#include "loadgen.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS_MAX = 64, OPTION_KIND = 256 };

static const char *const kind_names[KIND_COUNT] = {
	"full",     "resume",     "abort-hello", "abort-flight", "reset",   "garbage",
	"no-group", "no-version", "reject",      "plain",        "dribble",
};

static struct plan plan = { .foreign_group = "X448", .foreign_version = TLS1_1_VERSION };
static enum kind *jobs;
static unsigned long job_count;
static atomic_ulong next_job;
static double rate; /* connections begun a second; 0: as fast as they go */
static uint64_t started;
static FILE *begun_log; /* gets the monotonic time at which each connection begins */

static void run_job(enum kind kind)
{
	struct result result = { .outcome = OUTCOME_ABANDONED };
	int status;

	if (begun_log)
		fprintf(begun_log, "%.6f\n", (double)clock_ns(CLOCK_MONOTONIC) / 1e9);
	status = run_connection(&plan, kind, &result);
	if (status)
		fprintf(stderr, "a connection of kind %s went otherwise than planned\n",
			kind_names[kind]);
	results_add(&result, status);
	if (kind == KIND_FULL && !plan.session)
		plan.session = result.session;
	else
		SSL_SESSION_free(result.session);
}

/* By the clock, not after the last one: a connection that is late delays no other. */
static void await_turn(unsigned long job)
{
	uint64_t at = started + (uint64_t)((double)job * 1e9 / rate);
	struct timespec when = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static void *run_jobs(void *unused)
{
	unsigned long job;

	while ((job = next_job++) < job_count) {
		if (rate > 0)
			await_turn(job);
		run_job(jobs[job]);
	}
	return unused;
}

/* The same order in every run: Fisher and Yates with a fixed sequence. */
static void make_jobs(const unsigned long counts[KIND_COUNT])
{
	uint64_t state = 1;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		job_count += counts[kind];
	jobs = calloc(job_count + 1, sizeof(*jobs));
	if (!jobs)
		die("calloc");
	for (unsigned long kind = 0, job = 0; kind < KIND_COUNT; kind++)
		for (unsigned long i = 0; i < counts[kind]; i++)
			jobs[job++] = (enum kind)kind;
	for (unsigned long i = job_count; i > 1; i--) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		unsigned long j = (state >> 33) % i;
		enum kind kept = jobs[i - 1];

		jobs[i - 1] = jobs[j];
		jobs[j] = kept;
	}
}

static void run_threads(int count)
{
	pthread_t threads[THREADS_MAX];

	started = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run_jobs, NULL))
			die("pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

struct options {
	int port;
	int threads;
	int version;
	bool no_ticket;
	const char *groups;
	const char *ciphers;
	const char *ciphersuites;
	unsigned long counts[KIND_COUNT];
};

static void usage(const char *program)
{
	fprintf(stderr,
		"usage: %s --port N [--threads N] [--rate N] [--log FILE] [--tls 1.2|1.3|any] "
		"[--groups LIST] "
		"[--ciphers LIST] [--ciphersuites LIST] [--server-name NAME] [--foreign-group "
		"NAME] [--no-ticket] "
		"[--prelude proxy1|proxy2|smtp|imap|pop3]",
		program);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		fprintf(stderr, " [--%s N]", kind_names[kind]);
	fprintf(stderr, "\n");
	exit(2);
}

static void set_option(struct options *options, int option, const char *program)
{
	switch (option) {
	case 'p':
		options->port = atoi(optarg);
		break;
	case 't':
		options->threads = atoi(optarg);
		break;
	case 'v':
		options->version = tls_version(optarg);
		break;
	case 'g':
		options->groups = optarg;
		break;
	case 'c':
		options->ciphers = optarg;
		break;
	case 'n':
		plan.server_name = optarg;
		break;
	case 'f':
		plan.foreign_group = optarg;
		break;
	case 's':
		options->ciphersuites = optarg;
		break;
	case 'i':
		options->no_ticket = true;
		break;
	case 'o':
		plan.prelude = prelude_named(optarg);
		break;
	case 'r':
		rate = strtod(optarg, NULL);
		break;
	case 'l':
		begun_log = fopen(optarg, "w");
		if (!begun_log)
			die(optarg);
		setvbuf(begun_log, NULL, _IOLBF, 0);
		break;
	case '?':
		usage(program);
		break;
	default:
		options->counts[option - OPTION_KIND] = strtoul(optarg, NULL, 10);
	}
}

static void parse_options(int argc, char **argv, struct options *options)
{
	struct option names[KIND_COUNT + 13] = {
		{ "port", required_argument, NULL, 'p' },
		{ "threads", required_argument, NULL, 't' },
		{ "tls", required_argument, NULL, 'v' },
		{ "groups", required_argument, NULL, 'g' },
		{ "ciphers", required_argument, NULL, 'c' },
		{ "server-name", required_argument, NULL, 'n' },
		{ "foreign-group", required_argument, NULL, 'f' },
		{ "ciphersuites", required_argument, NULL, 's' },
		{ "no-ticket", no_argument, NULL, 'i' },
		{ "prelude", required_argument, NULL, 'o' },
		{ "rate", required_argument, NULL, 'r' },
		{ "log", required_argument, NULL, 'l' },
	};
	int option;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		names[12 + kind] = (struct option){ kind_names[kind], required_argument, NULL,
						    OPTION_KIND + kind };
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		set_option(options, option, argv[0]);
	if (!options->port || plan.prelude == PRELUDE_COUNT || options->threads < 1 ||
	    options->threads > THREADS_MAX ||
	    (options->counts[KIND_RESUME] && !options->counts[KIND_FULL]))
		usage(argv[0]);
}

static SSL_CTX *context(const struct options *options)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx)
		die("SSL_CTX_new");
	/* TLS 1.1 must be offered at all before a server can refuse it. */
	SSL_CTX_set_security_level(ctx, 0);
	use_version(ctx, options->version);
	if (options->no_ticket)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	if ((options->groups && SSL_CTX_set1_groups_list(ctx, options->groups) != 1) ||
	    (options->ciphers && SSL_CTX_set_cipher_list(ctx, options->ciphers) != 1) ||
	    (options->ciphersuites && SSL_CTX_set_ciphersuites(ctx, options->ciphersuites) != 1))
		die("TLS options");
	return ctx;
}

int main(int argc, char **argv)
{
	struct options options = { .threads = 1 };

	signal(SIGPIPE, SIG_IGN);
	parse_options(argc, argv, &options);
	plan.ctx = context(&options);
	plan.server = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)options.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (options.counts[KIND_FULL]) {
		options.counts[KIND_FULL]--;
		run_job(KIND_FULL);
	}
	if (options.counts[KIND_RESUME] && !plan.session) {
		fprintf(stderr, "the server gave no session to resume\n");
		return 1;
	}
	make_jobs(options.counts);
	run_threads(options.threads);
	return results_print() ? 1 : 0;
}
