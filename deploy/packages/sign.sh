#!/usr/bin/env bash
# Lists the checksums of target/packages in SHA256SUMS, and signs that list where a key is given.
#
#   MINISIGN_KEY   a secret key of minisign, which asks for its password on the terminal: makes
#                  SHA256SUMS.minisig
set -euo pipefail
key=${MINISIGN_KEY:+$(realpath "$MINISIGN_KEY")}
readonly key
cd "$(dirname "${BASH_SOURCE[0]}")/../../target/packages"

say() { printf 'release: %s\n' "$*" >&2; }

shopt -s nullglob
files=(*.deb *.rpm *.tar.gz *.cdx.json)
[ ${#files[@]} -gt 0 ] || { say "target/packages is empty: run 'make packages'"; exit 1; }
rm -f SHA256SUMS*
sha256sum "${files[@]}" >SHA256SUMS
if [ -n "$key" ]; then
	minisign -S -s "$key" -t "tlsprof $(git describe --always --dirty)" -m SHA256SUMS
else
	say "not signed: MINISIGN_KEY is not set"
fi
ls -lh >&2
