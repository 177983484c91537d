/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a handshake of loadgen negotiated. */
#include "loadgen.h"

/* The group of the server's key in TLS 1.2's DHE, which has no negotiated group:
 * one of RFC 7919 by its name, another by the length of its prime. */
static void name_dhe(SSL *ssl, char *name, size_t size)
{
	char group[24];
	EVP_PKEY *key;
	size_t length;

	if (SSL_get_peer_tmp_key(ssl, &key) != 1)
		return;
	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_DH) {
		if (EVP_PKEY_get_group_name(key, group, sizeof(group), &length) == 1 &&
		    strncmp(group, "ffdhe", 5) == 0)
			snprintf(name, size, "%s", group);
		else
			snprintf(name, size, "dhe_%d", EVP_PKEY_get_bits(key));
	}
	EVP_PKEY_free(key);
}

static const char *registry_version(int version)
{
	switch (version) {
	case TLS1_2_VERSION:
		return "TLS1.2";
	case TLS1_3_VERSION:
		return "TLS1.3";
	default:
		return "other";
	}
}

static const char *resumption(SSL *ssl)
{
	if (!SSL_session_reused(ssl))
		return "none";
	if (SSL_version(ssl) == TLS1_3_VERSION)
		return "psk";
	/* With a ticket, OpenSSL's session id is one that it made up (RFC 5077, 3.4):
	 * no server can have resumed by it. */
	return SSL_SESSION_has_ticket(SSL_get0_session(ssl)) ? "ticket" : "session_id";
}

void note_negotiated(SSL *ssl, struct result *result)
{
	int nid = SSL_get_negotiated_group(ssl);
	const char *group = nid ? SSL_group_to_name(ssl, nid) : NULL;
	bool no_exchange = SSL_session_reused(ssl) && SSL_version(ssl) != TLS1_3_VERSION;

	result->resumed = SSL_session_reused(ssl);
	snprintf(result->version, sizeof(result->version), "%s", SSL_get_version(ssl));
	snprintf(result->cipher, sizeof(result->cipher), "%s", SSL_get_cipher_name(ssl));
	snprintf(result->group, sizeof(result->group), "%s", group ? group : "none");

	result->registry_version = registry_version(SSL_version(ssl));
	result->registry_cipher = SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl));
	result->resumption = resumption(ssl);
	snprintf(result->registry_group, sizeof(result->registry_group), "%s",
		 group && !no_exchange ? group : "none");
	if (!group && !no_exchange)
		name_dhe(ssl, result->registry_group, sizeof(result->registry_group));
}
