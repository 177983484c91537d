/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Times the libcrypto calls of one handshake, as libssl makes them.
 *
 * `openssl speed` times a bare derivation or signature. A handshake also makes
 * an ephemeral key and checks the peer's: this program times each by itself.
 * Prints one line of JSON: median seconds of thread CPU time per operation.
 */
#include "common.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum { ROUNDS = 15, SECRET_LIMIT = 256, SIGNATURE_LIMIT = 1024, TRANSCRIPT = 130 };

struct bench {
	EVP_PKEY *own;
	EVP_PKEY *peer;
	EVP_PKEY_CTX *generation;
	EVP_PKEY_CTX *derivation;
	EVP_PKEY *signer;
	const EVP_MD *digest;
};

static EVP_PKEY_CTX *generation(const char *group)
{
	/* X25519 is an algorithm of its own, the others are curves of EC. */
	int is_curve = strcmp(group, "X25519") != 0;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, is_curve ? "EC" : group, NULL);

	if (!ctx || EVP_PKEY_keygen_init(ctx) != 1 ||
	    (is_curve && EVP_PKEY_CTX_set_group_name(ctx, group) != 1))
		die("keygen_init");
	return ctx;
}

static EVP_PKEY *generate(struct bench *bench)
{
	EVP_PKEY *key = NULL;

	if (EVP_PKEY_keygen(bench->generation, &key) != 1)
		die("keygen");
	return key;
}

static void keygen(struct bench *bench)
{
	EVP_PKEY_free(generate(bench));
}

static void check_peer(struct bench *bench)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(bench->own, NULL);

	if (!ctx || EVP_PKEY_derive_init(ctx) != 1 ||
	    EVP_PKEY_derive_set_peer(ctx, bench->peer) != 1)
		die("derive_set_peer");
	EVP_PKEY_CTX_free(ctx);
}

static void derive(struct bench *bench)
{
	unsigned char secret[SECRET_LIMIT];
	size_t length = sizeof(secret);

	if (EVP_PKEY_derive(bench->derivation, secret, &length) != 1)
		die("derive");
}

static void sign(struct bench *bench)
{
	unsigned char transcript[TRANSCRIPT] = { 0 }, signature[SIGNATURE_LIMIT];
	size_t length = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *options;

	if (!ctx || EVP_DigestSignInit(ctx, &options, bench->digest, NULL, bench->signer) != 1)
		die("sign");
	if (EVP_PKEY_is_a(bench->signer, "RSA") &&
	    (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
	     EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1))
		die("PSS");
	if (EVP_DigestSign(ctx, signature, &length, transcript, sizeof(transcript)) != 1)
		die("sign");
	EVP_MD_CTX_free(ctx);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_seconds(void (*operation)(struct bench *), struct bench *bench, int repeats)
{
	double seconds[ROUNDS];

	operation(bench); /* fills caches that a running server has filled */
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (int i = 0; i < repeats; i++)
			operation(bench);
		seconds[round] =
			(double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9 / repeats;
	}
	qsort(seconds, ROUNDS, sizeof(*seconds), by_value);
	return seconds[ROUNDS / 2];
}

static EVP_PKEY *read_key(const char *path)
{
	FILE *file = fopen(path, "r");
	EVP_PKEY *key = file ? PEM_read_PrivateKey(file, NULL, NULL, NULL) : NULL;

	if (!key)
		die(path);
	fclose(file);
	return key;
}

int main(int argc, char **argv)
{
	struct bench bench = { 0 };
	int repeats;

	if (argc != 4 || (repeats = atoi(argv[3])) < 1) {
		fprintf(stderr, "usage: %s GROUP KEYFILE REPEATS\n", argv[0]);
		return 2;
	}
	bench.generation = generation(argv[1]);
	bench.own = generate(&bench);
	bench.peer = generate(&bench);
	bench.signer = read_key(argv[2]);
	bench.digest = EVP_PKEY_is_a(bench.signer, "ED25519") ? NULL : EVP_sha256();
	bench.derivation = EVP_PKEY_CTX_new(bench.own, NULL);
	if (!bench.derivation || EVP_PKEY_derive_init(bench.derivation) != 1 ||
	    EVP_PKEY_derive_set_peer(bench.derivation, bench.peer) != 1)
		die("key exchange");
	printf("{\"keygen\":%.9f,\"check_peer\":%.9f,\"derive\":%.9f,\"sign\":%.9f}\n",
	       median_seconds(keygen, &bench, repeats), median_seconds(check_peer, &bench, repeats),
	       median_seconds(derive, &bench, repeats), median_seconds(sign, &bench, repeats));
	return 0;
}
