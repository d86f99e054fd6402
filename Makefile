# Everything a person or a CI job does here has a target. Each makes what it needs: the virtual environment, the
# pinned Python packages, and the extension module. A second run finds them made.
#
#     make demo       a mail server's disk, from how it aged to what to do; leaves demo-report/report.html
#     make test       every test, Rust and Python
#     make lint       format, lints, types, and the rules about the files of the repository
#     make bench      the benchmark table
#     make bench-peers  agewell beside what a user would pick instead, kept in bench/runs (BENCH_PEERS=options of bench/run)
#     make bench-history  the ratios of the runs in bench/runs
#     make bench-sweep  a sweep of 200 runs by one process, by two and by a Dask cluster
#     make bench-policies  how fast a log is simulated with policies in Python
#     make bench-stores  the store beside other stores, on files (BENCH_STORES=options of bench/run-stores)
#     make bench-mounted  as root: a mounted file system by its targets (BENCH_MOUNTED=options of bench/mounted)
#     make count      instructions of the hot loops, against those that are kept in bench/counts
#     make reproduce  published figures, ours beside the paper's
#     make reorganise-torture  as root: reorganisations killed, without power, written to (RUNS=1000 of ext4 and of xfs)
#     make mount-torture  as root: a mounted file system whose server is killed (RUNS=1000 times), nothing acknowledged lost
#     make explore    every property test on new random cases (EXPLORE_ROUNDS times), EXPLORE_STATES crashes of the store and
#                     EXPLORE_FILE_STATES of file operations
#     make fuzz       every trace reader on mangled input (FUZZ_SECONDS each)
#     make wheel      wheels for Linux (WHEEL_TARGETS) and the source distribution in target/wheels, tried in an empty environment
#     make sdist      the source distribution alone, built and tried in an empty environment that has Rust
#     make check-macos  what the libraries and the extension are for macOS, as far as a compiler can say without a linker
#     make docs       the documentation as a site in target/site
#
# Needed: Rust (rust-version in Cargo.toml), Python >= 3.11 with venv, a C compiler.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
FUZZ_SECONDS ?= 60
BENCH_STORES ?=
BENCH_PEERS ?=
# For which systems `make wheel` makes wheels; both Linux ones by default.
WHEEL_TARGETS ?=
EXPLORE_ROUNDS ?= 20
# One more than processors: some tests wait for a clock or a disk.
PYTEST_PROCESSES ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# Crashes of stores, and the first of the seeds of their loads: where it was stopped it says from which to go on.
EXPLORE_STATES ?= 10000000
EXPLORE_SEED ?= 1000
# Crashes of file operations that it looks at.
EXPLORE_FILE_STATES ?= 1000000
# Where `make reorganise-torture` makes its images: it is quicker in memory, of which it takes 2 GB.
TORTURE_WORK ?= /dev/shm
TORTURE_SEED ?= 1
# A user's own pip settings (a mirror, a proxy) stay in force; only the noise is turned off.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -not -path '*/benches/*' -o -name Cargo.toml)

.PHONY: help venv extension demo test rust-tests-built test-rust test-python lint lint-rust lint-python bench bench-peers bench-history bench-policies bench-sweep bench-stores bench-mounted count wheel sdist check-macos reproduce reorganise-torture mount-torture fuzz explore docs \
	snapshots command-reference configuration-reference experiment-pages notebook-pages clean

help:
	@sed -n 's/^#     \(make .*\)/\1/p' Makefile

# --- set-up ------------------------------------------------------------------------------------------------------------

$(STAMPS)/venv: scripts/make-venv
	@scripts/make-venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/run: $(STAMPS)/venv requirements/build.txt requirements/run.txt
	@echo "installing the pinned packages of requirements/run.txt" >&2
	@$(PIP_INSTALL) -r requirements/build.txt
	@$(PIP_INSTALL) -r requirements/run.txt
	@touch $@

$(STAMPS)/develop: $(STAMPS)/run requirements/develop.txt
	@echo "installing the pinned packages of requirements/develop.txt" >&2
	@$(PIP_INSTALL) -r requirements/develop.txt
	@touch $@

# Programs of the system that tests use; without them tests skip.
$(STAMPS)/tools: $(STAMPS)/venv scripts/install-test-tools
	@scripts/install-test-tools
	@touch $@

$(STAMPS)/wheel: $(STAMPS)/run requirements/wheel.txt
	@echo "installing the pinned packages of requirements/wheel.txt" >&2
	@$(PIP_INSTALL) -r requirements/wheel.txt
	@touch $@

$(STAMPS)/docs: $(STAMPS)/run requirements/docs.txt
	@echo "installing the pinned packages of requirements/docs.txt" >&2
	@$(PIP_INSTALL) -r requirements/docs.txt
	@touch $@

$(STAMPS)/extension: $(STAMPS)/run pyproject.toml $(RUST_SOURCES)
	@command -v cargo >/dev/null || { echo "make: error: cargo not found; install Rust (https://rustup.rs)" >&2; exit 1; }
	@echo "building the extension module (release)" >&2
	@cargo build --locked --release --quiet --workspace --bin agewell-fs
	@mkdir -p python/agewell/bin && cp --remove-destination target/release/agewell-fs python/agewell/bin/agewell-fs
	@PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --locked --quiet
	@touch $@

venv: $(STAMPS)/develop
extension: $(STAMPS)/extension

# --- what people run -----------------------------------------------------------------------------------------------------

demo: $(STAMPS)/extension
	@scripts/demo demo-report

reproduce: $(STAMPS)/extension
	@$(BIN)/agewell reproduce --out runs/reproduce
	@cargo build --locked --release --quiet --workspace --example catalogue
	@target/release/examples/catalogue
	@cargo test --locked --release --quiet --workspace --lib -- --ignored every_placement

# One file system after the other, a few runs of xfs without reflink, which is refused; goes on after a run that fails, and then ends
# with an error.
reorganise-torture: $(STAMPS)/extension $(STAMPS)/develop
	@runs=$(or $(RUNS),1000); failed=0; \
	for each in ext4:$$runs xfs:$$runs xfs-plain:5 btrfs:$$runs; do \
		$(BIN)/python tests/reorganise_torture.py $${each%:*} --runs $${each#*:} --seed $(TORTURE_SEED) \
			--work $(TORTURE_WORK) --keep runs/torture || failed=1; \
	done; exit $$failed

mount-torture: $(STAMPS)/extension $(STAMPS)/develop
	@mkdir -p $(TORTURE_WORK)/mount-torture
	@$(BIN)/python tests/mounted_soak.py --rounds $(or $(RUNS),1000) --seed $(TORTURE_SEED) --work $(TORTURE_WORK)/mount-torture

bench:
	@cargo bench --locked --workspace
	@bench/table

# A peer that has no package for this machine is left out, with the reason.
$(STAMPS)/bench: $(STAMPS)/run requirements/bench.txt
	@$(PIP_INSTALL) --no-deps -r requirements/bench.txt || echo "make: libCacheSim has no package for this machine; it is left out" >&2
	@touch $@

bench-peers: $(STAMPS)/extension $(STAMPS)/bench
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python bench/run $(BENCH_PEERS)

bench-history: $(STAMPS)/run
	@$(BIN)/python bench/history

# Where valgrind is installed; the counts are those of one version of the compiler (bench/counts says which).
count:
	@bench/count

bench-policies: $(STAMPS)/extension
	@$(BIN)/python bench/policies

bench-sweep: $(STAMPS)/extension $(STAMPS)/develop
	@$(BIN)/python bench/sweep

# Their crates are fetched when it is first built; nothing else needs them.
bench-stores:
	@bench/run-stores $(BENCH_STORES)

bench-mounted: $(STAMPS)/extension
	@cargo build --locked --release --quiet --package agewell-fuse --examples
	@$(BIN)/python bench/mounted $(BENCH_MOUNTED)

fuzz:
	@scripts/fuzz $(FUZZ_SECONDS)

wheel: $(STAMPS)/wheel
	@scripts/wheel $(VENV) $(WHEEL_TARGETS)

sdist: $(STAMPS)/wheel
	@scripts/wheel $(VENV) sdist

check-macos: $(STAMPS)/wheel
	@for target in aarch64-apple-darwin x86_64-apple-darwin; do \
		rustup target add $$target >/dev/null 2>&1 || { echo "make check-macos: error: no standard library of Rust for $$target" >&2; exit 1; }; \
		PATH="$(CURDIR)/$(BIN):$$PATH" RUSTFLAGS="-D warnings" cargo-zigbuild check --locked --quiet --workspace --lib --bins --target $$target; \
	done

docs: $(STAMPS)/extension $(STAMPS)/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir target/site

# --- tests and lints -----------------------------------------------------------------------------------------------------

# Both halves at once, once the tests of Rust are built: in either of them processors wait for the longest test, or tests for
# a clock or a disk. Packages are installed while Rust is compiled.
test:
	@$(MAKE) --no-print-directory -j2 rust-tests-built $(STAMPS)/develop $(STAMPS)/tools
	@$(MAKE) --no-print-directory --keep-going -j2 SAYS=1 test-rust test-python

# Each line says which half it is of where there are two.
says = $(if $(SAYS),2>&1 | awk '{ print "$(1) | " $$0; fflush() }')

# Without examples: tests/ builds those that it runs, and lints see all of them.
RUST_TESTS := --locked --release --workspace --tests

rust-tests-built:
	cargo test $(RUST_TESTS) --no-run

# The binding crate has no Rust tests of its own: tests/ exercises it from Python. Property tests draw the same cases
# every time here, so that a change is judged by what it changed; `make explore` draws others.
test-rust: $(STAMPS)/tools
	PROPTEST_RNG_SEED=1 cargo test $(RUST_TESTS) $(call says,rust)
	cargo test --locked --release --workspace --doc $(call says,rust)
	cargo test --locked --release --workspace --features agewell-store/seeded-faults,agewell-fs/seeded-faults --test seeded $(call says,rust)
	cargo test --locked --release --workspace --features agewell-store/model-checked --test model $(call says,rust)

# Tests of Rust are optimised here, for they run for hours.
explore: export RUSTC_WORKSPACE_WRAPPER :=
explore:
	@scripts/explore $(EXPLORE_ROUNDS)
	@STATES=$(EXPLORE_STATES) SEED=$(EXPLORE_SEED) cargo test --locked --release --quiet --workspace --test store -- --ignored --nocapture many_crashes
	@STATES=$$(( $(EXPLORE_STATES) / 10 )) SEED=$(EXPLORE_SEED) cargo test --locked --release --quiet --workspace --test fs -- --ignored --nocapture many_crashes
	@STATES=$(EXPLORE_FILE_STATES) SEED=$(EXPLORE_SEED) cargo test --locked --release --quiet --workspace --test fs -- --ignored --nocapture many_

test-python: $(STAMPS)/extension $(STAMPS)/develop $(STAMPS)/tools
	$(BIN)/python -m pytest -n $(PYTEST_PROCESSES) --dist loadgroup -m "not tidy" $(call says,python)

lint: lint-rust lint-python

lint-rust:
	@cargo fmt --version >/dev/null 2>&1 || { echo "make lint: error: rustfmt is missing; rustup component add rustfmt" >&2; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo "make lint: error: clippy is missing; rustup component add clippy" >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

lint-python: $(STAMPS)/extension $(STAMPS)/develop $(STAMPS)/docs $(STAMPS)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest agewell._agewell
	$(BIN)/python -m pytest -q -m tidy

# Accept what the commands print now as what they are to print; look at the difference before committing it.
snapshots: $(STAMPS)/extension $(STAMPS)/develop
	AGEWELL_ACCEPT_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests

# Write the pages of commands and of JSON documents, and the manual pages, again from what declares them.
command-reference: $(STAMPS)/extension $(STAMPS)/develop
	@cd tests && ../$(BIN)/python command_reference.py > ../docs/reference/command-line.md
	@cd tests && ../$(BIN)/python json_reference.py > ../docs/reference/json.md
	@cd tests && ../$(BIN)/python man_pages.py

# Write the tables of keys of the pages of configurations and devices again from the declarations.
configuration-reference: $(STAMPS)/extension $(STAMPS)/develop
	@cd tests && ../$(BIN)/python configuration_reference.py

# Write the pages of published figures again; RUNS is what `make reproduce` has left, or empty for the rows that are kept.
RUNS ?=
experiment-pages: $(STAMPS)/extension $(STAMPS)/develop
	@cd tests && ../$(BIN)/python experiment_pages.py $(if $(RUNS),"$(abspath $(RUNS))")

# Run the notebooks and write their pages again.
notebook-pages: $(STAMPS)/extension $(STAMPS)/develop
	@cd tests && ../$(BIN)/python notebook_pages.py

clean:
	rm -rf $(VENV) target demo-report runs
