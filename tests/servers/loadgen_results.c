/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What came of loadgen's connections: counts, and their one line of JSON. */
#include "loadgen.h"

#include <pthread.h>

enum { NAMES = 32, NAME_LEN = 192 };

/* Counts by name; few names, so a list. */
struct tally {
	struct {
		char name[NAME_LEN];
		unsigned long count;
	} rows[NAMES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally versions, ciphers, groups, handshakes;
static unsigned long completed, resumed, failed, abandoned, plain, unplanned;
static uint64_t cpu_ns;

static void tally_add(struct tally *tally, const char *name)
{
	for (int i = 0; i < NAMES; i++) {
		if (!tally->rows[i].count)
			snprintf(tally->rows[i].name, NAME_LEN, "%s", name);
		if (strcmp(tally->rows[i].name, name) == 0) {
			tally->rows[i].count++;
			return;
		}
	}
	die("more names than expected");
}

static void tally_print(const char *key, const struct tally *tally)
{
	printf(",\"%s\":{", key);
	for (int i = 0; i < NAMES && tally->rows[i].count; i++)
		printf("%s\"%s\":%lu", i ? "," : "", tally->rows[i].name, tally->rows[i].count);
	printf("}");
}

/* The whole combination is the name, as members of a JSON object. */
static void count_combination(const struct result *result)
{
	char name[NAME_LEN];

	snprintf(name, sizeof(name),
		 "\"version\":\"%s\",\"cipher\":\"%s\",\"group\":\"%s\",\"resumption\":\"%s\"",
		 result->registry_version, result->registry_cipher, result->registry_group,
		 result->resumption);
	tally_add(&handshakes, name);
}

static void print_combinations(void)
{
	printf(",\"handshakes\":[");
	for (int i = 0; i < NAMES && handshakes.rows[i].count; i++)
		printf("%s{%s,\"count\":%lu}", i ? "," : "", handshakes.rows[i].name,
		       handshakes.rows[i].count);
	printf("]");
}

void results_add(const struct result *result, int status)
{
	pthread_mutex_lock(&lock);
	unplanned += status != 0;
	cpu_ns += result->cpu_ns;
	failed += result->outcome == OUTCOME_FAILED;
	abandoned += result->outcome == OUTCOME_ABANDONED;
	plain += result->outcome == OUTCOME_PLAIN;
	if (result->outcome == OUTCOME_COMPLETED && result->version[0]) {
		completed++;
		resumed += (unsigned long)result->resumed;
		tally_add(&versions, result->version);
		tally_add(&ciphers, result->cipher);
		tally_add(&groups, result->group);
		count_combination(result);
	}
	pthread_mutex_unlock(&lock);
}

unsigned long results_print(void)
{
	printf("{\"completed\":%lu,\"resumed\":%lu,\"failed\":%lu,\"abandoned\":%lu,"
	       "\"plain\":%lu,\"unplanned\":%lu,\"cpu_seconds\":%.9f",
	       completed, resumed, failed, abandoned, plain, unplanned, (double)cpu_ns / 1e9);
	tally_print("versions", &versions);
	tally_print("ciphers", &ciphers);
	tally_print("groups", &groups);
	print_combinations();
	printf("}\n");
	return unplanned;
}
