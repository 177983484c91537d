#!/usr/bin/env bash
# Installs what tlsprof's tasks need and what is missing, and nothing else.
#
#   setup.sh [GROUP...]    groups: build lint demo test bench dashboards
#                          observe packages aarch64 chart; default: all
#
# Packages come through apt (Debian 12 and 13, Ubuntu 24.04), the Rust toolchain
# through rustup, Python packages through pip. Needs root or sudo only when a package is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
readonly here repository

# Servers that packages would start at once and at every boot. We want their
# programs, not a web server on somebody's machine.
readonly units=(nginx.service haproxy.service stunnel.target stunnel4.service prometheus.service)

# Not every account has the system administrator's folders in its PATH, and
# rustup's own installer puts cargo where only a new login finds it.
PATH=${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "packages are missing and this is neither root nor is there sudo; as root run: $0"
	fi
}

# True if the thing that a check of the table names is there.
satisfied() {
	local kind=${1%%:*} what=${1#*:}
	case $kind in
	cmd) command -v "$what" >/dev/null ;;
	# Ubuntu's bpftool is a script that fails without the running kernel's tools.
	runs) "$what" version >/dev/null 2>&1 ;;
	file) compgen -G "$what" >/dev/null ;;
	clang)
		local major
		major=$(clang -dumpversion 2>/dev/null | cut -d. -f1) || return 1
		[ "${major:-0}" -ge "$what" ]
		;;
	*) die "requirements: unknown check '$1'" ;;
	esac
}

# Prints "check package without" of each requirement of the groups $@ that is
# not met, once each.
missing() {
	local group check package without
	declare -A seen=()
	while read -r group check package without; do
		[[ " $* " == *" $group "* ]] || continue
		[ -z "${seen[$check]:-}" ] || continue
		seen[$check]=1
		satisfied "$check" || printf '%s %s %s\n' "$check" "$package" "$without"
	done < <(grep -v -e '^#' -e '^$' "$here/requirements")
}

# Version that apt would install; empty if it carries no such package.
candidate() {
	LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true
}

# The first of the alternatives $1 (a|b) that apt carries; empty if none.
choose() {
	local alternatives=${1//KERNEL/$(uname -r)} package major
	if [[ $alternatives == *CLANG* ]]; then
		# 1:14.0-55.7 -> 14
		major=$(candidate clang | sed -E 's/^[0-9]+://; s/[^0-9].*//')
		alternatives=${alternatives//CLANG/$major}
	fi
	for package in ${alternatives//|/ }; do
		if [ -n "$(candidate "$package")" ]; then
			echo "$package"
			return
		fi
	done
}

# True if this machine has a unit $1 or an init script of that name.
unit_exists() {
	compgen -G "/*/systemd/system/$1" >/dev/null || [ -e "/etc/init.d/${1%.*}" ]
}

# Keeps the servers among the packages of apt_install from starting, now and at
# boot: units that do not exist yet are masked while apt runs and disabled
# afterwards. A unit that exists already belongs to somebody else and is not
# touched. Not policy-rc.d: the machine may have its own.
new_units=()
mask_units() {
	local unit
	for unit in "${units[@]}"; do
		unit_exists "$unit" || new_units+=("$unit")
	done
	# Where systemd does not run, invoke-rc.d starts nothing.
	if [ -d /run/systemd/system ] && [ ${#new_units[@]} -gt 0 ]; then
		as_root systemctl --quiet --runtime mask "${new_units[@]}"
	fi
}

unmask_units() {
	local unit
	command -v systemctl >/dev/null || return 0
	if [ -d /run/systemd/system ] && [ ${#new_units[@]} -gt 0 ]; then
		as_root systemctl --quiet --runtime unmask "${new_units[@]}"
	fi
	for unit in "${new_units[@]}"; do
		unit_exists "$unit" || continue
		as_root systemctl --quiet disable "$unit" >&2 || say "could not disable $unit: it starts at boot"
	done
	new_units=()
}

# --no-remove: a machine's own choice of packages comes first; then apt fails
# and says why. NEEDRESTART_MODE=l: no restart of services that run.
apt_install() {
	trap unmask_units EXIT
	mask_units
	as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l \
		apt-get install --yes --quiet --no-install-recommends --no-remove \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >&2 ||
		die "apt could not install: $*"
	unmask_units
	trap - EXIT
}

# Installs what is missing of the groups $@.
install_packages() {
	local list check alternatives without package packages=()
	list=$(missing "$@")
	[ -n "$list" ] || return 0
	command -v apt-get >/dev/null ||
		die "no apt here; install by hand what brings: $(cut -d' ' -f1 <<<"$list" | tr '\n' ' ')"

	# What is optional and cannot be had shall not cost an update each time.
	if [[ $list == *" required"* ]] || ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
		say "reading the package lists"
		as_root apt-get update --quiet=2 -o DPkg::Lock::Timeout=300 >&2 ||
			say "some package lists could not be read; going on with the others"
	fi
	while read -r check alternatives without; do
		package=$(choose "$alternatives")
		if [ -n "$package" ]; then
			packages+=("$package")
		elif [ "$without" = required ]; then
			die "this distribution carries no package ${alternatives//|/ or } ($check); install it by hand"
		else
			say "skipped: no package ${alternatives//|/ or } here: $without"
		fi
	done <<<"$list"
	[ ${#packages[@]} -eq 0 ] && return
	say "installing ${packages[*]}"
	apt_install "${packages[@]}"
	report_unmet "$@"
}

# Says what is still missing after the installation, and fails if it matters.
report_unmet() {
	local check package without fatal=
	while read -r check package without; do
		if [ "$without" = required ]; then
			say "$package is installed, but $check is still not met"
			fatal=1
		else
			say "skipped: $check is not met: $without"
		fi
	done < <(missing "$@")
	[ -z "$fatal" ] || exit 1
}

# True if the pinned toolchain $1 is installed with what `make lint` needs.
has_toolchain() {
	local root
	root=$(rustup run "$1" rustc --print sysroot 2>/dev/null) &&
		[ -x "$root/bin/cargo" ] && [ -x "$root/bin/cargo-clippy" ] && [ -x "$root/bin/rustfmt" ]
}

install_rustup() {
	if command -v apt-get >/dev/null && [ -n "$(candidate rustup)" ]; then
		say "installing rustup"
		apt_install rustup
		return
	fi
	cat >&2 <<-END
		setup: rustup is missing and this distribution has no package of it.
		Install it as https://rustup.rs tells, for example:
		    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain none
		as the user who runs make (plain make uses sudo where it must), and run the same command again.
	END
	exit 1
}

# Automatic installs may be switched off in rustup, so this one is explicit.
install_toolchain() {
	local channel
	channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' "$repository/rust-toolchain.toml")
	[ -n "$channel" ] || die "rust-toolchain.toml names no channel"
	command -v rustup >/dev/null || install_rustup
	has_toolchain "$channel" && return
	say "installing Rust $channel"
	# Outside the repository, where no rust-toolchain.toml asks for anything.
	(cd / && rustup toolchain install "$channel" --profile minimal \
		--component rustfmt,clippy --no-self-update >&2) ||
		die "rustup could not install Rust $channel"
	has_toolchain "$channel" || die "Rust $channel is installed, but not complete"
}

# The Python packages that the file $1 lists, each by its hash, in a folder of their own, target/$2.
# What the distribution has (pytest) is seen there, too.
install_python_packages() {
	local wanted=$repository/$1 folder=$repository/target/$2
	cmp -s "$wanted" "$folder/installed.txt" && "$folder/bin/python" -c '' 2>/dev/null && return
	say "installing Python packages in target/$2"
	rm -rf "$folder"
	/usr/bin/python3 -m venv --system-site-packages "$folder" >&2 ||
		die "could not make $folder"
	"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
		--require-hashes --no-deps -r "$wanted" >&2 ||
		die "could not install the Python packages of $1"
	cp "$wanted" "$folder/installed.txt"
}

main() {
	local groups=("$@") group
	[ $# -gt 0 ] || groups=(build lint demo test bench dashboards observe packages aarch64 chart)
	for group in "${groups[@]}"; do
		case $group in
		build | lint | demo | test | bench | dashboards | observe | packages | aarch64 | chart) ;;
		*)
			say "unknown group '$group'; there are: build lint demo test bench dashboards observe packages aarch64 chart"
			exit 2
			;;
		esac
	done
	install_packages "${groups[@]}"
	if [[ " ${groups[*]} " == *" dashboards "* ]]; then
		install_python_packages dashboards/requirements.txt python
		install_python_packages dashboards/requirements-grafana-11.txt grafana-11
		install_python_packages dashboards/requirements-grafana-13.txt grafana-13
	fi
	[[ " ${groups[*]} " != *" test "* ]] || install_python_packages tests/e2e/requirements.txt browser
	install_toolchain
}

main "$@"
