/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A provider for OpenSSL 3 whose random numbers are read from a file, as those of hardware
 * sources and daemons do: each RAND_bytes of the TLS library is a read. It is put before a
 * server by its OpenSSL configuration:
 *
 *     [provider section]
 *     module = librandompipe.so
 *     activate = 1
 *     source = FILE  what to read
 *     waited = FILE  eight bytes, to which the nanoseconds in reads are added
 *
 *     [random section]
 *     random = PIPE
 *
 * Both files are opened when the provider is loaded, and shared with the processes that a
 * server forks afterwards.
 */
#define _GNU_SOURCE
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { STRENGTH = 256, MOST = 1 << 16 };

static int source = -1;
static uint64_t *waited;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int generate(void *context, unsigned char *out, size_t length, unsigned int strength,
		    int predict, const unsigned char *added, size_t added_length)
{
	uint64_t began = now_ns();

	(void)context, (void)strength, (void)predict, (void)added, (void)added_length;
	while (length) {
		ssize_t got = read(source, out, length);

		/* Also where a signal asks the server to end. */
		if (got <= 0)
			return 0;
		out += got;
		length -= (size_t)got;
	}
	__atomic_fetch_add(waited, now_ns() - began, __ATOMIC_RELAXED);
	return 1;
}

static void *new_context(void *provider, void *parent, const OSSL_DISPATCH *calls)
{
	(void)parent, (void)calls;
	return provider;
}

static void free_context(void *context)
{
	(void)context;
}

static int instantiate(void *context, unsigned int strength, int predict, const unsigned char *name,
		       size_t length, const OSSL_PARAM params[])
{
	(void)context, (void)strength, (void)predict, (void)name, (void)length, (void)params;
	return 1;
}

/* Also enable_locking: reads of a file need none. */
static int done(void *context)
{
	(void)context;
	return 1;
}

static int get_params(void *context, OSSL_PARAM params[])
{
	OSSL_PARAM *state = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STATE);
	OSSL_PARAM *strength = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STRENGTH);
	OSSL_PARAM *most = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_MAX_REQUEST);

	(void)context;
	return (!state || OSSL_PARAM_set_int(state, EVP_RAND_STATE_READY)) &&
	       (!strength || OSSL_PARAM_set_uint(strength, STRENGTH)) &&
	       (!most || OSSL_PARAM_set_size_t(most, MOST));
}

static const OSSL_DISPATCH functions[] = {
	{ OSSL_FUNC_RAND_NEWCTX, (void (*)(void))new_context },
	{ OSSL_FUNC_RAND_FREECTX, (void (*)(void))free_context },
	{ OSSL_FUNC_RAND_INSTANTIATE, (void (*)(void))instantiate },
	{ OSSL_FUNC_RAND_UNINSTANTIATE, (void (*)(void))done },
	{ OSSL_FUNC_RAND_ENABLE_LOCKING, (void (*)(void))done },
	{ OSSL_FUNC_RAND_GENERATE, (void (*)(void))generate },
	{ OSSL_FUNC_RAND_GET_CTX_PARAMS, (void (*)(void))get_params },
	{ 0, NULL },
};

static const OSSL_ALGORITHM *algorithms(void *provider, int operation, int *no_cache)
{
	static const OSSL_ALGORITHM random[] = {
		{ "PIPE", "provider=pipe", functions, "reads of a file" },
		{ NULL, NULL, NULL, NULL },
	};

	(void)provider;
	*no_cache = 0;
	return operation == OSSL_OP_RAND ? random : NULL;
}

static const OSSL_DISPATCH provided[] = {
	{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))algorithms },
	{ 0, NULL },
};

/* The files that the configuration names. */
static int open_files(const char *from, const char *time)
{
	int file;

	source = open(from, O_RDONLY | O_CLOEXEC);
	file = open(time, O_RDWR | O_CLOEXEC);
	if (source < 0 || file < 0)
		return 0;
	waited = mmap(NULL, sizeof(*waited), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return waited != MAP_FAILED;
}

int OSSL_provider_init(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *calls,
		       const OSSL_DISPATCH **out, void **provider)
{
	OSSL_FUNC_core_get_params_fn *get = NULL;
	char *from = NULL, *time = NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_utf8_ptr("source", &from, 0),
		OSSL_PARAM_utf8_ptr("waited", &time, 0),
		OSSL_PARAM_END,
	};

	for (; calls->function_id; calls++)
		if (calls->function_id == OSSL_FUNC_CORE_GET_PARAMS)
			get = OSSL_FUNC_core_get_params(calls);
	if (!get || !get(core, params) || !from || !time || !open_files(from, time))
		return 0;
	*out = provided;
	*provider = &source;
	return 1;
}
