/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The smallest test runner that counts. */
#ifndef TLSPROF_CHECK_H
#define TLSPROF_CHECK_H

#include <stdio.h>

static int failures_in_test, passed, failed;

#define CHECK_EQUAL(actual, expected)                                                      \
	do {                                                                               \
		long long a_ = (long long)(actual), e_ = (long long)(expected);            \
		if (a_ != e_) {                                                            \
			printf("# %s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, \
			       #actual, a_, e_);                                           \
			failures_in_test++;                                                \
		}                                                                          \
	} while (0)

#define RUN(test)                                                             \
	do {                                                                  \
		failures_in_test = 0;                                         \
		test();                                                       \
		printf("%s %s\n", failures_in_test ? "not ok" : "ok", #test); \
		failures_in_test ? failed++ : passed++;                       \
	} while (0)

static int summary(void)
{
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}

#endif
