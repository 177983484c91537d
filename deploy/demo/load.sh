#!/usr/bin/env bash
# The demo's load: batches of requests, a new connection and so a full handshake
# for each, in turn to every URL, until the time is up.
#
#   load.sh SECONDS COUNT_FILE URL...
#
# Writes to COUNT_FILE how many requests each URL has answered.
set -euo pipefail

readonly seconds=$1 count_file=$2 batch=100 concurrency=8
shift 2

batches=0
while [ "$SECONDS" -lt "$seconds" ]; do
	for url in "$@"; do
		result=$(ab -q -n "$batch" -c "$concurrency" "$url") || { echo "load: ab failed on $url" >&2; exit 1; }
		if ! grep -Eq "^Complete requests: +$batch$" <<<"$result" ||
			! grep -Eq '^Failed requests: +0$' <<<"$result" || grep -q '^Non-2xx' <<<"$result"; then
			printf 'load: requests failed on %s\n%s\n' "$url" "$result" >&2
			exit 1
		fi
	done
	batches=$((batches + 1))
	echo $((batches * batch)) >"$count_file"
done
