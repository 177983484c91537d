/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A connection of the self-timed server with GnuTLS. */
#define _GNU_SOURCE
#include "selftimed.h"

#include <gnutls/gnutls.h>
#include <unistd.h>

enum { PRIORITY_BYTES = 512 };

struct tls {
	gnutls_session_t session;
};

static gnutls_certificate_credentials_t credentials;
static gnutls_priority_t priority;
static gnutls_datum_t ticket_key;

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, gnutls_strerror(result));
	exit(1);
}

/* Adds `+PREFIX-NAME` for each of the names, which have colons between them. */
static void add_all(char *text, const char *prefix, const char *names)
{
	char copy[PRIORITY_BYTES], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strtok_r(copy, ":", &rest); name; name = strtok_r(NULL, ":", &rest)) {
		size_t length = strlen(text);

		snprintf(text + length, PRIORITY_BYTES - length, ":+%s-%s", prefix, name);
	}
}

/* `groups` are named as GnuTLS does: SECP256R1:X25519. */
static void set_priority(const struct options *options)
{
	char text[PRIORITY_BYTES] = "NORMAL:-VERS-ALL";
	const char *tls = options->tls ? options->tls : "any";

	if (strcmp(tls, "1.3"))
		add_all(text, "VERS", "TLS1.2");
	if (strcmp(tls, "1.2"))
		add_all(text, "VERS", "TLS1.3");
	if (options->groups) {
		strcat(text, ":-GROUP-ALL");
		add_all(text, "GROUP", options->groups);
	}
	check(gnutls_priority_init(&priority, text, NULL), text);
}

void connections_setup(const struct options *options)
{
	check(gnutls_certificate_allocate_credentials(&credentials), "credentials");
	check(gnutls_certificate_set_x509_key_file(credentials, options->cert, options->key,
						   GNUTLS_X509_FMT_PEM),
	      options->cert);
	if (!options->no_tickets)
		check(gnutls_session_ticket_key_generate(&ticket_key), "ticket key");
	set_priority(options);
}

/* What GnuTLS says when the peer has closed or reset the connection. All else that is fatal is a
 * failure. */
static bool peer_went_away(int error)
{
	return error == GNUTLS_E_PREMATURE_TERMINATION || error == GNUTLS_E_PULL_ERROR ||
	       error == GNUTLS_E_PUSH_ERROR;
}

static enum progress want(struct connection *conn)
{
	return gnutls_record_get_direction(conn->tls->session) ? PROGRESS_WAIT_WRITE
							       : PROGRESS_WAIT_READ;
}

enum progress tls_handshake(struct connection *conn)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int result = gnutls_handshake(conn->tls->session);

	conn->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	if (!result) {
		totals->completed_cpu_ns += conn->cpu_ns;
		totals->resumed += gnutls_session_is_resumed(conn->tls->session);
		count_handshake(conn, &totals->completed);
		return PROGRESS_WAIT_READ;
	}
	if (!gnutls_error_is_fatal(result))
		return want(conn);
	/* As servers do: the client is told why. */
	gnutls_alert_send_appropriate(conn->tls->session, result);
	count_handshake(conn, peer_went_away(result) ? &totals->abandoned : &totals->failed);
	return PROGRESS_END;
}

enum progress tls_serve(struct connection *conn)
{
	static const char text[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
	char request[4096];
	ssize_t length = gnutls_record_recv(conn->tls->session, request, sizeof(request));

	if (length < 0 && !gnutls_error_is_fatal((int)length))
		return want(conn);
	if (length > 0 && gnutls_record_send(conn->tls->session, text, sizeof(text) - 1) > 0)
		gnutls_bye(conn->tls->session, GNUTLS_SHUT_WR);
	return PROGRESS_END;
}

struct tls *tls_open(int fd)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		fail("calloc");
	check(gnutls_init(&tls->session, GNUTLS_SERVER), "gnutls_init");
	check(gnutls_priority_set(tls->session, priority), "priority");
	check(gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, credentials),
	      "credentials");
	if (ticket_key.data)
		check(gnutls_session_ticket_enable_server(tls->session, &ticket_key), "tickets");
	gnutls_certificate_server_set_request(tls->session, GNUTLS_CERT_IGNORE);
	gnutls_handshake_set_timeout(tls->session, GNUTLS_INDEFINITE_TIMEOUT);
	gnutls_transport_set_int(tls->session, fd);
	return tls;
}

void tls_close(struct tls *tls)
{
	gnutls_deinit(tls->session);
	free(tls);
}
