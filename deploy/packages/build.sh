#!/usr/bin/env bash
# Makes target/packages: a .deb, an .rpm and a bill of materials (SBOM) for each kind of machine.
#
#   build.sh [--tarballs] [MACHINE...]    machines: x86_64 aarch64; default: both
#
# The program is linked against the C library of RHEL 8 and Debian 10, by zig, whatever this host
# has. It stays dynamic: a static one could not load a service's libcrypto to calibrate it.
#
# PACKAGE_PROFILE names another profile of cargo than that of a release: for the tests.
#
# With --tarballs also tlsprof-VERSION-MACHINE.tar.gz, with a static program for hosts whose C
# library is older, or that take no packages. That is a second build of everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly glibc=2.28
readonly profile=${PACKAGE_PROFILE:-distribution}
declare -rA debian=([x86_64]=amd64 [aarch64]=arm64)
out=$PWD/target/packages
common=$out/common
channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
readonly out common channel version
export RUSTUP_TOOLCHAIN=$channel
export PATH=$PWD/target/tools/python/bin:$PWD/target/tools/bin:$PATH
# Packages of one commit are the same, whenever they are made.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
readonly epoch

# Messages shall not tell where somebody built it.
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
RUSTFLAGS="--remap-path-prefix=$registry=/crates --remap-path-prefix=$PWD=/tlsprof"
readonly registry

say() { printf 'packages: %s\n' "$*" >&2; }

# Not for builds: cargo would compile ring, and all that needs it, anew for each commit.
dated() { SOURCE_DATE_EPOCH=$epoch "$@"; }

# What Debian's changelog must be; the one for people is CHANGELOG.md, packaged as well.
debian_changelog() {
	cat <<-END
		tlsprof ($version-1) unstable; urgency=medium

		  * Release $version, see changelog.gz.

		 -- tlsprof maintainers <tlsprof@users.noreply.github.com>  $(date -uR -d "@$epoch")
	END
}

# Man pages, completions and documents, the same for all machines.
make_common() {
	rm -rf "$common"
	mkdir -p "$common/doc"
	cargo run --profile ci --quiet --locked --example documents -- "$common"
	debian_changelog >"$common/changelog"
	gzip -9n <CHANGELOG.md >"$common/doc/changelog.gz"
	cp LICENSE-APACHE LICENSE-MIT "$common/doc"
	deploy/packages/notices.py >"$common/doc/THIRD-PARTY"
	# The standard library's own notices, which come with the compiler.
	cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$common/doc/rust-library.html"
}

# The program and its packages for machine $1.
make_packages() {
	local target=$1-unknown-linux-gnu messages=$common/$1.messages
	say "building for $1 with glibc $glibc"
	RUSTFLAGS=$RUSTFLAGS cargo zigbuild --profile "$profile" --locked --target "$target.$glibc" \
		--message-format=json-render-diagnostics >"$messages"
	dated cargo deb --quiet --no-build --no-strip --locked --package tlsprof --profile "$profile" \
		--target "$target" --compress-system --output "$out"
	make_rpm "$1"
	make_bill "$1" "$target" "$messages"
}

# The .rpm of machine $1, of what its .deb installs.
make_rpm() {
	local work=$common/rpm-$1 debs
	debs=("$out"/tlsprof_*_"${debian[$1]}".deb)
	mkdir "$work"
	dpkg-deb --extract "${debs[0]}" "$work/staged"
	# A version's suffix (-rc.1) sorts before the version itself.
	dated rpmbuild -bb --quiet --target "$1-linux" --define "_topdir $work" --define "_rpmdir $out" \
		--define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
		--define "release_version ${version/-/\~}" --define "staged $work/staged" \
		--define "licence $PWD/LICENSE" deploy/packages/tlsprof.spec
	rm -r "$work"
}

# What the program for $2 is made of, in CycloneDX's form, in a file named after machine $1; $3 has
# cargo's messages of its build.
make_bill() {
	local name=tlsprof_${version}_$1.cdx target=$2
	cargo cyclonedx --quiet --no-build-deps --format json --spec-version 1.5 --target "$target" \
		--manifest-path agent/Cargo.toml --override-filename "$name"
	dated deploy/packages/bill.py "agent/$name.json" "$3" "$target" >"$out/$name.json"
	# It writes one for each crate of the workspace.
	find agent -name "$name.json" -delete
	# Of cargo's resolver, for the tests: what the build was to be made of.
	cargo tree --locked --package tlsprof --edges normal,no-proc-macro --target "$target" \
		--prefix none --format '{p}' >"$common/$1.tree"
}

# A .tar.gz for machine $1: a static program, and documents in the folders that their links expect.
make_tarball() {
	local target=$1-unknown-linux-musl name=tlsprof-$version-$1
	local messages=$common/$1-static.messages stage=$common/$name
	say "building for $1, static"
	RUSTFLAGS=$RUSTFLAGS cargo zigbuild --profile "$profile" --locked --bin tlsprof \
		--target "$target" --message-format=json-render-diagnostics >"$messages"
	mkdir -p "$stage"/{dashboards,examples,licences}
	cp "target/$target/$profile/tlsprof" README.md CHANGELOG.md LICENSE "$stage"
	cp -r docs "$common/man" "$common/completions" "$stage"
	cp -r dashboards/{README.md,rules,grafana} "$stage/dashboards"
	cp deploy/packages/tlsprof.toml "$stage/examples"
	cp deploy/domino/tlsprof.toml "$stage/examples/domino.toml"
	cp deploy/prometheus/prometheus.yml "$stage/examples"
	cp LICENSE-APACHE LICENSE-MIT "$common"/doc/{THIRD-PARTY,rust-library.html} "$stage/licences"
	# The C library that is linked in.
	cp target/tools/python/lib/python3*/site-packages/ziglang/lib/libc/musl/COPYRIGHT "$stage/licences/musl"
	chmod -R u=rwX,go=rX "$stage"
	tar --create --directory "$common" --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="@$epoch" "$name" | gzip -9n >"$out/$name.tar.gz"
	make_bill "$1-static" "$target" "$messages"
	rm -r "$stage"
}

tarballs=''
if [ "${1:-}" = --tarballs ]; then
	tarballs=1
	shift
fi
machines=("$@")
[ $# -gt 0 ] || machines=(x86_64 aarch64)
mkdir -p "$out"
rm -f "$out"/*.{deb,rpm,json,tar.gz} "$out"/SHA256SUMS*
make_common
for machine in "${machines[@]}"; do
	make_packages "$machine"
	[ -z "$tarballs" ] || make_tarball "$machine"
done
ls -lh "$out" >&2
