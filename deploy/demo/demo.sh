#!/usr/bin/env bash
# Profiles an nginx of its own: two TLS servers on loopback, a bounded load
# against both, a live summary while it runs, the report and the agent's metrics
# at the end. Leaves nothing behind. `make demo` says in TLSPROF which program.
#
#   DEMO_SECONDS    how long the load lasts, default 20
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tlsprof=${TLSPROF:-$here/../../target/release/tlsprof}
seconds=${DEMO_SECONDS:-20}
readonly here tlsprof seconds
readonly page_bytes=4788
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# BPF needs root, and so does nginx where it starts workers as another user.
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "demo: needs root, and there is no sudo" >&2; exit 1; }
	exec sudo env "PATH=$PATH" "TLSPROF=$tlsprof" "DEMO_SECONDS=$seconds" "$0"
fi

step() { printf '\n== %s\n' "$*"; }

# Says what went wrong, with the end of the log $1 if it has one.
die() {
	local log=$1
	shift
	printf 'demo: %s\n' "$*" >&2
	if [ -s "$log" ]; then
		printf 'demo: the end of %s:\n' "${log##*/}" >&2
		tail -n 20 "$log" >&2
	fi
	exit 1
}

[ -x "$tlsprof" ] || die '' "$tlsprof is missing; run 'make build'"
dir=$(mktemp -d "${TMPDIR:-/tmp}/tlsprof-demo.XXXXXX")
readonly dir

# Only processes started here, by their ids.
nginx_pid='' agent_pid='' report_pid=''
clean_up() {
	local pid
	for pid in $report_pid $agent_pid $nginx_pid; do
		kill -TERM "$pid" 2>/dev/null || continue
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The port $1, or a free one below the ephemeral ports if it is taken.
free_port() {
	local port
	for port in "$1" $(shuf -i 20000-32000 -n 20); do
		if ! listens "$port"; then
			echo "$port"
			return
		fi
	done
	die '' "found no free port"
}

# Waits up to 30 s until the command after process $1 and its log $2 succeeds.
wait_until() {
	local pid=$1 log=$2 deadline=$((SECONDS + 30))
	shift 2
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || die "$log" "it ended too early; its log is ${log##*/}"
		[ "$SECONDS" -lt "$deadline" ] || die "$log" "gave up after 30 s waiting for: $*"
		sleep 0.1
	done
}

# Makes the certificate and key $1, of the kind that the other arguments say.
make_certificate() {
	local name=$1
	shift
	openssl req -x509 -noenc -days 2 -subj /CN=localhost "$@" \
		-keyout "$dir/$name.key" -out "$dir/$name.crt" 2>"$dir/openssl.log" ||
		die "$dir/openssl.log" "openssl could not make the $name certificate"
}

start_nginx() {
	mkdir "$dir/html" "$dir/temp"
	head -c "$page_bytes" /dev/zero | tr '\0' x >"$dir/html/index.html"
	# The workers run as nobody and read the page.
	chmod 755 "$dir" "$dir/html"
	sed -e "s|@DIR@|$dir|; s|@RSA_PORT@|$rsa_port|; s|@ECDSA_PORT@|$ecdsa_port|" \
		-e "s|@USER@|user nobody $(id -gn nobody);|" "$here/nginx.conf.in" >"$dir/nginx.conf"
	nginx -e "$dir/nginx.log" -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.err" &
	nginx_pid=$!
	wait_until "$nginx_pid" "$dir/nginx.log" listens "$rsa_port"
	wait_until "$nginx_pid" "$dir/nginx.log" listens "$ecdsa_port"
}

start_agent() {
	"$tlsprof" agent --listen "127.0.0.1:$agent_port" </dev/null >"$dir/agent.log" 2>&1 &
	agent_pid=$!
	wait_until "$agent_pid" "$dir/agent.log" grep -qs "listening on http://" "$dir/agent.log"
}

# The agent's metrics of server handshakes, of nginx alone unless its service has
# another name (in a container, that of the container).
server_metrics() {
	local all
	all=$(curl -fsS --max-time 5 "http://127.0.0.1:$agent_port/metrics" | grep -v -e '^#' -e 'role="client"') ||
		die "$dir/agent.log" "the agent shows no metrics"
	grep 'service_name="[^"]*nginx' <<<"$all" || printf '%s\n' "$all"
}

counted_by_agent() {
	awk '/^tlsprof_handshakes_total\{/ && /outcome="completed"/ { n += $NF } END { print n + 0 }' "$dir/metrics"
}

# The report shows its progress by itself, and itself at the end.
profile_load() {
	"$tlsprof" report --port "$rsa_port" -- "$here/load.sh" "$seconds" "$dir/count" \
		"https://127.0.0.1:$rsa_port/" "https://127.0.0.1:$ecdsa_port/" </dev/null &
	report_pid=$!
	wait "$report_pid" || die '' "the profile or the load failed, see above"
	report_pid=''
	[ -s "$dir/count" ] || die '' "the load made no handshake"
}

show_metrics() {
	grep -E '^tlsprof_(handshakes_total|handshake_cpu_seconds_(sum|count)|handshake_step_cpu_seconds_total)' \
		"$dir/metrics" | sort | head -n 14
}

main() {
	rsa_port=$(free_port 8441)
	ecdsa_port=$(free_port 8442)
	agent_port=$(free_port 9843)

	step "nginx with two TLS servers"
	make_certificate rsa -newkey rsa:2048
	make_certificate ecdsa -newkey ec -pkeyopt ec_paramgen_curve:P-256
	start_nginx
	echo "RSA-2048 with P-384      https://127.0.0.1:$rsa_port/"
	echo "ECDSA P-256 with X25519  https://127.0.0.1:$ecdsa_port/"

	step "tlsprof agent --listen 127.0.0.1:$agent_port"
	start_agent
	echo "metrics                  http://127.0.0.1:$agent_port/metrics"

	step "tlsprof report --port $rsa_port -- $seconds s of load on both servers"
	profile_load
	server_metrics >"$dir/metrics"
	echo "The load itself counted $(cat "$dir/count") handshakes, the agent $(counted_by_agent)."

	step "Some of the metrics at http://127.0.0.1:$agent_port/metrics"
	show_metrics
}

main
