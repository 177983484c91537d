#!/usr/bin/env bash
# Profiles an nginx of its own: two TLS servers on loopback, a bounded load
# against both, a live summary while it runs, the report and the agent's metrics
# at the end. Leaves nothing behind. `make demo` says in TLSPROF which program.
#
#   DEMO_SECONDS    how long the load lasts, default 20
#   DEMO_PICTURE    a file for a picture of the live page at the end (`make picture`)
set -euo pipefail
# The load writes into a folder of root's: a report would run it as the user who called sudo.
unset SUDO_UID

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tlsprof=${TLSPROF:-$here/../../target/release/tlsprof}
seconds=${DEMO_SECONDS:-20}
readonly here tlsprof seconds
readonly what=demo demo=$here
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# shellcheck source=deploy/shell/processes.sh
. "$here/../shell/processes.sh"

# BPF needs root, and so does nginx where it starts workers as another user.
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "demo: needs root, and there is no sudo" >&2; exit 1; }
	exec sudo env "PATH=$PATH" "TLSPROF=$tlsprof" "DEMO_SECONDS=$seconds" "DEMO_PICTURE=${DEMO_PICTURE:-}" "$0"
fi

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

# The name that the agent has for the service that listens on rsa_port: this host may have another nginx.
service_name() {
	curl -fsS --max-time 5 "http://127.0.0.1:$agent_port/api/v1/state" | tr '{' '\n' |
		grep -E "\"ports\":\[([0-9]+,)*${rsa_port}[],]" | sed -n 's/^"service_name":"\([^"]*\)".*/\1/p' | grep .
}

# The agent's metrics of that service, as a server.
server_metrics() {
	curl -fsS --max-time 5 "http://127.0.0.1:$agent_port/metrics" |
		grep -F "service_name=\"$service\"" | grep -v 'role="client"' || die "$dir/agent.log" "the agent shows no metrics"
}

# Until it has read the CPU time of all of the load: it does so once a second.
settled_metrics() {
	local before=''
	server_metrics >"$dir/metrics"
	until [ "$(cpu_by_agent)" = "$before" ]; do
		before=$(cpu_by_agent)
		sleep 1.5
		server_metrics >"$dir/metrics"
	done
}

cpu_by_agent() {
	awk '/^tlsprof_service_cpu_seconds_total\{/ { cpu += $NF } END { print cpu }' "$dir/metrics"
}

# As the recording rule service:tlsprof_handshake_cpu:ratio_rate5m computes it.
share_by_agent() {
	awk '/^tlsprof_handshake_outcome_cpu_seconds_total\{/ { handshakes += $NF }
		/^tlsprof_service_cpu_seconds_total\{/ { cpu += $NF }
		END { printf "%.1f%%\n", cpu ? 100 * handshakes / cpu : 0 }' "$dir/metrics"
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

	step "tlsprof agent --listen 127.0.0.1:$agent_port, without a budget: it estimates nothing"
	start_agent
	echo "metrics                  http://127.0.0.1:$agent_port/metrics"

	step "tlsprof report --port $rsa_port -- $seconds s of load on both servers"
	profile_load
	# The live page has a point every 5 s.
	wait_until "$agent_pid" "$dir/agent.log" service_name >/dev/null
	service=$(service_name)
	settled_metrics
	echo
	echo "The load itself counted $(cat "$dir/count") handshakes, the agent $(counted_by_agent)."
	echo "According to the agent's metrics, they used $(share_by_agent) of the CPU of $service."

	step "Some of the metrics at http://127.0.0.1:$agent_port/metrics"
	show_metrics

	if [ -n "${DEMO_PICTURE:-}" ]; then
		step "A picture of the live page: $DEMO_PICTURE"
		"$here/picture.py" "http://127.0.0.1:$agent_port/" "$service" "$DEMO_PICTURE"
	fi
}

main
