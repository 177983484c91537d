# The entry points, the same at a desk and in CI. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# In some environments there is neither HOME nor rustup's folder in PATH; the
# system administrator's folders (nginx, bpftool) are missing from many.
HOME ?= $(shell getent passwd "$$(id -u)" | cut -d: -f6)
export HOME
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin

# Always the pinned toolchain, whatever RUSTUP_TOOLCHAIN or another cargo in
# PATH may say.
TOOLCHAIN := $(shell sed -n 's/^channel = "\(.*\)"$$/\1/p' rust-toolchain.toml)
export CARGO := rustup run $(TOOLCHAIN) cargo

SETUP := deploy/setup/setup.sh
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

C_SOURCES = $(shell find bpf tests -name '*.[ch]' -not -path 'tests/.work/*' -not -path 'tests/fuzz/target/*')
SCRIPTS = $(shell grep -rlE '^\#!.*\b(ba)?sh\b' .ci deploy tests --exclude-dir=.work --exclude-dir=target) $(wildcard deploy/shell/*.sh)

.PHONY: help
help: ## List the entry points
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing for everything below (apt, rustup, pip)
	@$(SETUP)

.PHONY: build
build: ## Build target/release/tlsprof, the one binary
	@$(SETUP) build
	$(CARGO) build --release --locked

.PHONY: demo
demo: build ## Profile an nginx of its own under load for 20 s
	@$(SETUP) demo
	@deploy/demo/demo.sh

.PHONY: test
test: test-build ## Run what protects every commit: unit, native BPF logic, dashboards, real servers, two kernels
	@$(SETUP) test dashboards
	@.ci/tests unit bpf dashboards kernels harness e2e e2e-host e2e-apart

.PHONY: picture
picture: build ## Take the picture of the live page in README.md, from a demo of 5 minutes
	@$(SETUP) demo test
	@DEMO_SECONDS=300 DEMO_PICTURE=$(CURDIR)/docs/images/live-page.png deploy/demo/demo.sh

# Packages as they are released, but for optimisation: that takes longer than all the rest.
test-long test-deploy: MACHINES = x86_64
test-long test-deploy: export PACKAGE_PROFILE = unoptimized

.PHONY: test-long
test-long: test-build deny check-aarch64 packages ## Run the rest: statistics, endurance, scenarios, all kernels, packages, chart, aarch64 (root)
	@$(SETUP) test chart aarch64
	@deploy/packages/tools.sh chart prometheus servers load
	@.ci/tests harness-long e2e-long scenarios kernels-long packages chart grafana aarch64

# The tests and target/ci/tlsprof, the binary that they run, in one build.
.PHONY: test-build
test-build:
	@$(SETUP) build
	$(CARGO) build --profile ci --workspace --all-targets --locked

.PHONY: test-unit
test-unit: ## Run the Rust tests only
	@$(SETUP) build
	@.ci/tests unit

.PHONY: test-bpf
test-bpf: ## Run the BPF programs' logic only, compiled natively
	@$(SETUP) build
	@.ci/tests bpf

.PHONY: test-dashboards
test-dashboards: ## Check dashboards and rules only (no root)
	@$(SETUP) dashboards
	@.ci/tests dashboards

.PHONY: test-e2e
test-e2e: test-build ## Run the tests with real servers only (needs root or sudo)
	@$(SETUP) test
	@.ci/tests harness e2e e2e-host e2e-apart

.PHONY: test-scenarios
test-scenarios: test-build ## Run the field guide's scenarios: predicted savings against measured ones (root or sudo)
	@$(SETUP) test
	@.ci/tests scenarios

.PHONY: test-kernels
test-kernels: test-build ## Boot all other kernels in QEMU and profile there (no root; fetches kernels once)
	@$(SETUP) test
	@.ci/tests kernels kernels-long

.PHONY: packages
packages: ## Make .deb, .rpm and SBOM for x86-64 and aarch64 in target/packages (MACHINES=x86_64: one)
	@$(SETUP) build packages
	@deploy/packages/tools.sh packages $(if $(TARBALLS),static)
	@deploy/packages/build.sh $(TARBALLS) $(MACHINES)

# A static program is a second build of everything: too long for what CI runs, test-deploy.
test-long release: TARBALLS = --tarballs

.PHONY: release
release: packages ## Make what a release consists of: packages, static tarballs, SBOMs, checksums (MINISIGN_KEY: signed)
	@deploy/packages/sign.sh

.PHONY: test-packages
test-packages: packages ## Install, start, upgrade and remove the packages on a Debian (root)
	@.ci/tests packages

.PHONY: test-chart
test-chart: ## Check the Helm chart and the container file (no root)
	@$(SETUP) chart
	@deploy/packages/tools.sh chart
	@.ci/tests chart

.PHONY: test-deploy
test-deploy: deny check-aarch64 packages ## Test deployment: licences, aarch64, the packages for x86-64, the chart, a Grafana at hand (root)
	@$(SETUP) chart aarch64
	@deploy/packages/tools.sh chart
	@.ci/tests packages chart grafana aarch64

.PHONY: test-aarch64
test-aarch64: check-aarch64 ## Boot a kernel for aarch64 in QEMU and profile there (no root; fetches it once)
	@$(SETUP) aarch64
	@.ci/tests aarch64

# Without optimisation, nor debug information, which no guest reads. What runs on the host while it
# builds is that of the tests.
.PHONY: check-aarch64
check-aarch64: ## Compile and link the program for aarch64, BPF programs included, and start it in QEMU
	@$(SETUP) build packages
	@deploy/packages/tools.sh cross
	PATH="$(CURDIR)/target/tools/python/bin:$$PATH" CARGO_PROFILE_CI_DEBUG=none CARGO_PROFILE_CI_OPT_LEVEL=0 \
		$(CARGO) zigbuild --profile ci --locked --bin tlsprof --target aarch64-unknown-linux-gnu.2.28
	$(if $(and $(shell command -v qemu-aarch64),$(wildcard /usr/aarch64-linux-gnu/lib/libc.so.6)),qemu-aarch64 -L /usr/aarch64-linux-gnu \
		target/aarch64-unknown-linux-gnu/ci/tlsprof --version)

# By cargo, which tells it which cargo to ask: CARGO here has arguments.
DENY = PATH="$(CURDIR)/target/tools/python/bin:$$PATH" $(CARGO) deny

.PHONY: deny
deny: ## Check licences, sources and bans of all dependencies
	@$(SETUP) build packages
	@deploy/packages/tools.sh deny
	$(DENY) --all-features check --hide-inclusion-graph licenses bans sources

.PHONY: advisories
advisories: ## Check all dependencies for known vulnerabilities (fetches the RustSec database)
	@$(SETUP) build packages
	@deploy/packages/tools.sh deny
	@$(DENY) fetch db || { echo "advisories: the RustSec database cannot be \
	fetched from github.com here: nothing was checked" >&2; exit 1; }
	$(DENY) check --disable-fetch advisories

.PHONY: dashboards
dashboards: ## Write dashboards/grafana/*.json from dashboards/source
	@$(SETUP) dashboards
	cd dashboards && PYTHONDONTWRITEBYTECODE=1 ../target/python/bin/python -m source

.PHONY: observe
observe: build ## Watch this host: the agent, Prometheus, and Grafana where installed (until Ctrl-C)
	@$(SETUP) observe $(if $(OBSERVE_LOAD),demo)
	@deploy/observe/observe.sh

.PHONY: bench
bench: build ## Measure what profiling costs nginx and Redis (10 minutes, root, an idle machine)
	@$(SETUP) build bench
	$(AS_ROOT) env PATH="$$PATH" TLSPROF="$(CURDIR)/target/release/tlsprof" tests/bench/bench.py $(BENCH)

.PHONY: lint
lint: ## Check formatting, clippy, imports, sizes, C style and shell scripts
	@$(SETUP) build lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile ci --workspace --all-targets --locked -- -D warnings
	.ci/cycles.py
	.ci/sizes.py
	clang-format --dry-run --Werror $(C_SOURCES)
	shellcheck -x $(SCRIPTS)

.PHONY: fmt
fmt: ## Format the Rust and C sources
	@$(SETUP) build lint
	$(CARGO) fmt --all
	clang-format -i $(C_SOURCES)

.PHONY: clean
clean: ## Remove what was built
	rm -rf target tests/.work
