/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The clock of record protection, preloaded into the self-timed server: it stands between
 * libssl and libcrypto and times the calls by which libssl encrypts and authenticates records.
 *
 * By the thread's CPU clock, as the kernel accounts the thread: a call that loses its CPU counts
 * what it used, and time that a hypervisor takes is in the part as it is in the whole. Reading
 * that clock is a system call, and takes up to a fifth of the server's time; what of it falls
 * between the two readings is taken off.
 */
#define _GNU_SOURCE
#include "record_clock.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { CALIBRATIONS = 1001 };

/* One function that this library stands in front of. */
struct timed {
	const char *name;
	void *real;
};

static __thread uint64_t thread_ns;
/* A call that libcrypto makes to itself is in the time of the one around it. */
static __thread bool inside;
static uint64_t reading_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* What an interval shows in which nothing is done: the median. */
__attribute__((constructor)) static void calibrate(void)
{
	static uint64_t empty[CALIBRATIONS];

	for (int i = 0; i < CALIBRATIONS; i++) {
		uint64_t began = now_ns();

		empty[i] = now_ns() - began;
	}
	qsort(empty, CALIBRATIONS, sizeof(empty[0]), ascending);
	reading_ns = empty[CALIBRATIONS / 2];
}

uint64_t record_clock_ns(void)
{
	return thread_ns;
}

static void *real(struct timed *timed)
{
	if (!timed->real)
		timed->real = dlsym(RTLD_NEXT, timed->name);
	if (!timed->real)
		abort();
	return timed->real;
}

static void add(uint64_t ns)
{
	thread_ns += ns - (ns < reading_ns ? ns : reading_ns);
}

#define TIMED(function, parameters, ...)                                    \
	int function parameters                                             \
	{                                                                   \
		static __thread struct timed timed = { .name = #function }; \
		int(*next) parameters = (int(*) parameters)real(&timed);    \
		uint64_t began;                                             \
		int ret;                                                    \
                                                                            \
		if (inside)                                                 \
			return next(__VA_ARGS__);                           \
		inside = true;                                              \
		began = now_ns();                                           \
		ret = next(__VA_ARGS__);                                    \
		add(now_ns() - began);                                      \
		inside = false;                                             \
		return ret;                                                 \
	}

/* What libssl 1.1.1 to 3.5 calls for a record. */
TIMED(EVP_CipherInit_ex,
      (EVP_CIPHER_CTX * ctx, const EVP_CIPHER *cipher, ENGINE *engine, const unsigned char *key,
       const unsigned char *iv, int encrypt),
      ctx, cipher, engine, key, iv, encrypt)
TIMED(EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX * ctx, int type, int argument, void *pointer), ctx, type,
      argument, pointer)
TIMED(EVP_Cipher,
      (EVP_CIPHER_CTX * ctx, unsigned char *out, const unsigned char *in, unsigned int length), ctx,
      out, in, length)
TIMED(EVP_CipherUpdate,
      (EVP_CIPHER_CTX * ctx, unsigned char *out, int *written, const unsigned char *in, int length),
      ctx, out, written, in, length)
TIMED(EVP_CipherFinal_ex, (EVP_CIPHER_CTX * ctx, unsigned char *out, int *written), ctx, out,
      written)
TIMED(EVP_MD_CTX_copy, (EVP_MD_CTX * out, const EVP_MD_CTX *in), out, in)
TIMED(EVP_DigestSignUpdate, (EVP_MD_CTX * ctx, const void *data, size_t length), ctx, data, length)
TIMED(EVP_DigestSignFinal, (EVP_MD_CTX * ctx, unsigned char *out, size_t *length), ctx, out, length)
