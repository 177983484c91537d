# shellcheck shell=bash
# What demo.sh and observe.sh share: saying what went wrong, ports, waiting, and an
# nginx of their own. They set `what` (their name, for messages), `dir` (a folder that
# they remove), `tlsprof` (the program) and `demo` (the folder of the nginx), and end
# the processes whose ids are set here.
# shellcheck disable=SC2034,SC2154

step() { printf '\n== %s\n' "$*"; }

# Says what went wrong, with the end of the log $1 if it has one.
die() {
	local log=$1
	shift
	printf '%s: %s\n' "$what" "$*" >&2
	if [ -s "$log" ]; then
		printf '%s: the end of %s:\n' "$what" "${log##*/}" >&2
		tail -n 20 "$log" >&2
	fi
	exit 1
}

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

# Waits up to 60 s until the command after process $1 and its log $2 succeeds.
wait_until() {
	local pid=$1 log=$2 deadline=$((SECONDS + 60))
	shift 2
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || die "$log" "it ended too early; its log is ${log##*/}"
		[ "$SECONDS" -lt "$deadline" ] || die "$log" "gave up after 60 s waiting for: $*"
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

# Starts nginx with its two TLS servers on rsa_port and ecdsa_port, and sets nginx_pid.
start_nginx() {
	mkdir "$dir/html" "$dir/temp"
	head -c 4788 /dev/zero | tr '\0' x >"$dir/html/index.html"
	# The workers run as nobody and read the page.
	chmod 755 "$dir" "$dir/html"
	sed -e "s|@DIR@|$dir|; s|@RSA_PORT@|$rsa_port|; s|@ECDSA_PORT@|$ecdsa_port|" \
		-e "s|@USER@|user nobody $(id -gn nobody);|" "$demo/nginx.conf.in" >"$dir/nginx.conf"
	nginx -e "$dir/nginx.log" -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.err" &
	nginx_pid=$!
	wait_until "$nginx_pid" "$dir/nginx.log" listens "$rsa_port"
	wait_until "$nginx_pid" "$dir/nginx.log" listens "$ecdsa_port"
}

# Starts the agent on agent_port, and sets agent_pid. Without a budget: what the load counted is
# compared with it, so that it may not estimate.
start_agent() {
	printf '[agent]\nbudget = 1.0\n' >"$dir/tlsprof.toml"
	"$tlsprof" agent --config "$dir/tlsprof.toml" --listen "127.0.0.1:$agent_port" </dev/null >"$dir/agent.log" 2>&1 &
	agent_pid=$!
	wait_until "$agent_pid" "$dir/agent.log" grep -qs "listening on http://" "$dir/agent.log"
}
