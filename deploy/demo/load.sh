#!/usr/bin/env bash
# The demo's load: rounds of requests, a new connection and so a full handshake
# for each, the same number to every URL, until the time is up.
#
#   load.sh SECONDS COUNT_FILE URL...
#
# Writes to COUNT_FILE how many requests have been answered, of all URLs.
set -euo pipefail

readonly seconds=$1 count_file=$2
shift 2
# Clients for each URL. Several of them with one connection each: an ab of more
# opens some that it never uses, and the count would not be that of handshakes.
readonly clients=2 requests=25

client() {
	local result
	result=$(ab -q -n "$requests" -c 1 "$1") || { echo "load: ab failed on $1" >&2; return 1; }
	if ! grep -Eq "^Complete requests: +$requests$" <<<"$result" ||
		! grep -Eq '^Failed requests: +0$' <<<"$result" || grep -q '^Non-2xx' <<<"$result"; then
		printf 'load: requests failed on %s\n%s\n' "$1" "$result" >&2
		return 1
	fi
}

answered=0
while [ "$SECONDS" -lt "$seconds" ]; do
	running=()
	for url in "$@"; do
		for ((i = 0; i < clients; i++)); do
			client "$url" &
			running+=($!)
		done
	done
	for pid in "${running[@]}"; do
		wait "$pid" || exit 1
		answered=$((answered + requests))
	done
	echo "$answered" >"$count_file"
done
