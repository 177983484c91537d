#!/usr/bin/env bash
# Watches this host until Ctrl-C: the agent, a Prometheus with the rules, and Grafana
# with the dashboards where it is installed. All listen on loopback. Leaves nothing
# behind, and with it goes what was recorded. `make observe` says in TLSPROF which
# program.
#
#   OBSERVE_LOAD=1           also the demo's nginx with its load, to have something to see
#   OBSERVE_AGENT_PORT, OBSERVE_PROMETHEUS_PORT, OBSERVE_GRAFANA_PORT
#                            default 9843, 9090, 3000; another one is taken if in use
#   GRAFANA_HOME             the folder of an unpacked Grafana, where none is installed
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
tlsprof=${TLSPROF:-$repository/target/release/tlsprof}
readonly here repository tlsprof
readonly what=observe demo=$here/../demo scrape_interval=5s
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# shellcheck source=deploy/shell/processes.sh
. "$here/../shell/processes.sh"

# BPF needs root.
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "observe: needs root, and there is no sudo" >&2; exit 1; }
	exec sudo --preserve-env=GRAFANA_HOME,OBSERVE_LOAD,OBSERVE_AGENT_PORT,OBSERVE_PROMETHEUS_PORT,OBSERVE_GRAFANA_PORT \
		env "PATH=$PATH" "TLSPROF=$tlsprof" "$0"
fi

[ -x "$tlsprof" ] || die '' "$tlsprof is missing; run 'make build'"
dir=$(mktemp -d "${TMPDIR:-/tmp}/tlsprof-observe.XXXXXX")
readonly dir

# Only processes started here, by their ids.
nginx_pid='' agent_pid='' prometheus_pid='' grafana_pid='' load_pid=''
clean_up() {
	local pid
	for pid in $load_pid $grafana_pid $prometheus_pid $agent_pid $nginx_pid; do
		kill -TERM "$pid" 2>/dev/null || continue
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap clean_up EXIT
# Ctrl-C is how one leaves.
trap 'exit 0' INT
trap 'exit 143' TERM

start_prometheus() {
	local url=http://127.0.0.1:$prometheus_port
	mkdir "$dir/rules"
	cp "$repository"/dashboards/rules/*.rules.yml "$dir/rules/"
	sed -e "s|127\.0\.0\.1:9843|127.0.0.1:$agent_port|" -e "s|_interval: 15s|_interval: $scrape_interval|" \
		"$here/../prometheus/prometheus.yml" >"$dir/prometheus.yml"
	# Before 3.8 this key was unknown, and the feature flag below did the same.
	promtool check config --syntax-only "$dir/prometheus.yml" >"$dir/promtool.log" 2>&1 ||
		sed -i '/scrape_native_histograms/d' "$dir/prometheus.yml"
	prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --log.level=warn \
		--web.listen-address="127.0.0.1:$prometheus_port" --enable-feature=native-histograms \
		</dev/null >"$dir/prometheus.log" 2>&1 &
	prometheus_pid=$!
	wait_until "$prometheus_pid" "$dir/prometheus.log" curl -fs --max-time 5 -o "$dir/ready" "$url/-/ready"
}

# The folder of Grafana, GRAFANA_HOME or that of its packages; fails where there is none. Its program there
# is not the one in PATH: packages put a wrapper there, which would leave Grafana behind when it is ended.
find_grafana() {
	local home
	for home in "${GRAFANA_HOME:-}" /usr/share/grafana "$(dirname "$(dirname "$(readlink -f "$(command -v grafana)")")")"; do
		[ -x "$home/bin/grafana" ] && [ -e "$home/conf/defaults.ini" ] && echo "$home" && return
	done
	return 1
}

start_grafana() {
	local home=$1
	mkdir -p "$dir/grafana/plugins"
	env GF_PATHS_DATA="$dir/grafana" GF_PATHS_LOGS="$dir/grafana/log" GF_PATHS_PLUGINS="$dir/grafana/plugins" \
		GF_PATHS_PROVISIONING="$repository/deploy/grafana/provisioning" \
		GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT="$grafana_port" \
		GF_AUTH_ANONYMOUS_ENABLED=true GF_ANALYTICS_REPORTING_ENABLED=false \
		GF_ANALYTICS_CHECK_FOR_UPDATES=false GF_PLUGINS_PREINSTALL_DISABLED=true \
		GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false GF_PLUGINS_PUBLIC_KEY_RETRIEVAL_DISABLED=true \
		GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH="$repository/dashboards/grafana/tlsprof-overview.json" \
		TLSPROF_PROMETHEUS_URL="http://127.0.0.1:$prometheus_port" TLSPROF_SCRAPE_INTERVAL="$scrape_interval" \
		TLSPROF_DASHBOARDS="$repository/dashboards/grafana" \
		"$home/bin/grafana" server --homepath "$home" </dev/null >"$dir/grafana.log" 2>&1 &
	grafana_pid=$!
	wait_until "$grafana_pid" "$dir/grafana.log" \
		curl -fs --max-time 5 -o "$dir/ready" "http://127.0.0.1:$grafana_port/api/health"
}

start_load() {
	rsa_port=$(free_port 8441)
	ecdsa_port=$(free_port 8442)
	make_certificate rsa -newkey rsa:2048
	make_certificate ecdsa -newkey ec -pkeyopt ec_paramgen_curve:P-256
	start_nginx
	"$demo/load.sh" 86400 "$dir/count" "https://127.0.0.1:$rsa_port/" "https://127.0.0.1:$ecdsa_port/" \
		</dev/null >"$dir/load.log" 2>&1 &
	load_pid=$!
}

main() {
	local grafana pid
	agent_port=$(free_port "${OBSERVE_AGENT_PORT:-9843}")
	prometheus_port=$(free_port "${OBSERVE_PROMETHEUS_PORT:-9090}")
	grafana_port=$(free_port "${OBSERVE_GRAFANA_PORT:-3000}")

	[ -z "${OBSERVE_LOAD:-}" ] || start_load
	start_agent
	start_prometheus
	step "watching this host, until Ctrl-C"
	echo "metrics     http://127.0.0.1:$agent_port/metrics"
	echo "Prometheus  http://127.0.0.1:$prometheus_port/alerts"
	if grafana=$(find_grafana); then
		start_grafana "$grafana"
		echo "Grafana     http://127.0.0.1:$grafana_port/d/tlsprof-overview?from=now-15m"
	else
		echo "Grafana     not installed; GRAFANA_HOME may name the folder of an unpacked one:"
		echo "            https://grafana.com/docs/grafana/latest/setup-grafana/installation/"
		echo "            or, with its data source, dashboards and Prometheus in containers:"
		echo "            docker compose -f deploy/observe/compose.yml up"
	fi

	# Ends with the first that ends; none of them should.
	wait -n $load_pid $agent_pid $prometheus_pid $grafana_pid || true
	for pid in agent prometheus grafana load nginx; do
		local id=${pid}_pid
		[ -z "${!id}" ] || kill -0 "${!id}" 2>/dev/null || die "$dir/$pid.log" "$pid ended"
	done
}

main
