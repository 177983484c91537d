/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"
#include "gnutls.h"

/* Of the installed library (gnutls/gnutls.h); its macros have the names of our enumerators. */
int gnutls_error_is_fatal(int error);

static void the_program_calls_again_after_what_gnutls_says_is_not_fatal(void)
{
	for (int error = -1; error > -2000; error--)
		CHECK_EQUAL(gnutls_result(error) != CALL_RETRY, gnutls_error_is_fatal(error));
}

static void a_peer_that_is_gone_is_no_failure(void)
{
	CHECK_EQUAL(gnutls_result(0), TLSPROF_OUTCOME_COMPLETED);
	CHECK_EQUAL(gnutls_result(GNUTLS_E_PREMATURE_TERMINATION), TLSPROF_OUTCOME_ABANDONED);
	CHECK_EQUAL(gnutls_result(GNUTLS_E_PULL_ERROR), TLSPROF_OUTCOME_ABANDONED);
	CHECK_EQUAL(gnutls_result(GNUTLS_E_PUSH_ERROR), TLSPROF_OUTCOME_ABANDONED);
	CHECK_EQUAL(gnutls_result(GNUTLS_E_TIMEDOUT), TLSPROF_OUTCOME_ABANDONED);
	CHECK_EQUAL(gnutls_result(-12), TLSPROF_OUTCOME_FAILED);
	CHECK_EQUAL(gnutls_result(-9), TLSPROF_OUTCOME_FAILED);
}

static void a_session_without_the_flag_of_servers_is_a_clients(void)
{
	CHECK_EQUAL(gnutls_role(GNUTLS_SERVER), TLSPROF_ROLE_SERVER);
	CHECK_EQUAL(gnutls_role(GNUTLS_SERVER | 1 << 3), TLSPROF_ROLE_SERVER);
	CHECK_EQUAL(gnutls_role(2), TLSPROF_ROLE_CLIENT);
	CHECK_EQUAL(gnutls_role(0), TLSPROF_ROLE_CLIENT);
}

int main(void)
{
	RUN(the_program_calls_again_after_what_gnutls_says_is_not_fatal);
	RUN(a_peer_that_is_gone_is_no_failure);
	RUN(a_session_without_the_flag_of_servers_is_a_clients);
	return summary();
}
