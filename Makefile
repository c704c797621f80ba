# SPDX-License-Identifier: Apache-2.0
# Forwards to the CMake presets, so that the usual words work.
#
#   make test                         build with sanitizers, run the tests: README says how long it takes
#   make check                        the tests that prove more: power cuts, faults, fuzzers, importers, documents, counts of
#                                     instructions; with the compiler's optimisation, but the fuzzers with sanitizers
#   make check-long [PART='a b'] [SEED=7]  longer tests, in parts of less than 30 minutes: tests/check_long.sh --list
#   make demo [LOGS=PATH KIND=codex]  build, and show what Annal does
#   make build, make install [prefix=/usr/local] [DESTDIR=]
#   make test-python [TESTS='-k tail']  build the wheel of bindings/python, install it, run its tests
#   make node [TESTS=tests/tail.test.mjs]  build the npm package of bindings/node, run its tests on Node 22, 24 and 26
#   make bench-python                 the Python package beside its alternatives; five minutes
#   make web                          build the page of annal serve into tools/serve/web/dist; needs Node
#   make test-web [PART=long]         the same into another place, compare, and use the page in Chromium
#   make bench-serve [SPARE=2]        annal serve with 1,000 live streams: goals and measured values; a minute
#   make web-pictures                 docs/serve/*.webp, of the page in Chromium
#   make faults                       make every call of every scene fail in every way that fits it
#   make flips                        flip every bit of a journal, a commit log and a snapshot
#   make contend                      eight processes, one task, 1,000 rounds, also killed ones; a
#                                     reader that looks after each of a million answers
#   make soak ROUNDS=100000 SEED=1    kill writers with SIGKILL; acknowledged events must survive
#   make stops [ROUNDS=300 SEED=1 PAUSE=20]  stop processes; others wait for them up to a limit
#   make test-cluster [PART='a b'] [SEED=1]  make shippers, networks and servers fail; the target must equal the
#                                     journals: tests/ship/cluster.sh --list
#   make bench-ship [PART=dense]      annal ship beside a bare COPY, to Parquet, its lag, its cost for agents; goals, measurements
#   make fleet                        10,000 hosts ship to one PostgreSQL, until it is the limit; a quarter of an hour
#   make power                        cut the power after every operation, in 200 ways
#   make model                        explore the ownership of sessions with SPIN
#   make mutate                       check that the tests notice mistakes in the product, one after the other
#   make fuzz [SECONDS=60] [SEED=7]   run every fuzzer for SECONDS, with clang
#   make coverage                     the branches of journal/ that the tests take
#   make bench [PEERS=new]            Annal beside its alternatives: build/bench-results; up to an hour; PEERS=new: beside Turso,
#                                     and LMDB and SQLite newer than Debian's, build/bench-peers-results
#   make bench-quick                  the same in under three minutes, if nothing else runs
#   make bench-growth [LONG=--long]   the same with more sessions, processes, events: pictures in docs/performance
#   make bench-recall [LOCOMO=FILE LOGS=DIR]  how well annal search finds the right session; some minutes
#   make bench-parts                  the cost of single parts of Annal
#   make picture                      run the command and draw docs/terminal.svg
#   make man                          docs/annal.1, from the tables of the verbs and tools/manual/annal.1.in
#   make reference                    HTML and manual pages of the library, from its headers: build/release/reference
#   make lint                         what takes seconds: names, layers, floors, words and columns of texts, manual page, format
#   make format, make clean

# Both spellings are usual.
prefix ?= $(or $(PREFIX),/usr/local)
export DESTDIR

.PHONY: build test check test-cluster bench-ship fleet test-python bench-python node web test-web bench-serve summary check-long contend soak stops faults flips fuzz mutate power model coverage demo install bench bench-quick bench-growth bench-parts bench-recall \
	picture man reference lint lint-format format clean setup

build: setup
	cmake --preset release && cmake --build --preset release

# The last lines count the tests of each folder. Tests that belong to make check have the label check: annal_add_test() in
# tests/CMakeLists.txt.
test: setup
	cmake --preset dev
	cmake --build --preset dev --target test_programs
	ctest --preset dev -LE '^check$$'
	@$(MAKE) --no-print-directory summary

# With sanitizers these tests take three times as long: make check-long PART=sanitized. The fuzzers are short.
check: setup
	@cmake/setup.sh ci
	cmake --preset dev
	cmake --build --preset dev --target fuzzers
	ctest --preset dev -R '^fuzz_'
	cmake --preset bench
	cmake --build --preset bench
	ctest --preset bench -L '^check$$' -E '^fuzz_'
	@$(MAKE) --no-print-directory summary BUILD=bench

summary:
	@awk '/^[0-9]+\/[0-9]+ Test: /{ folder = $$3; sub(/[.].*/, "", folder) } \
		/^[0-9]+%: Checks: /{ suites[folder]++; checks[folder] += $$3; failures[folder] += $$5 + $$7 } \
		/^run_test: .* s of processor time$$/{ seconds[folder] += $$2; all += $$2 } \
		END { for (folder in suites) printf "%-9s %3d suites, %4d tests, %d failures, %5.1f s of processor time\n", \
			folder, suites[folder], checks[folder], failures[folder], seconds[folder] | "sort"; \
			close("sort"); printf "all of them: %.1f s of processor time\n", all }' \
		build/$(or $(BUILD),dev)/Testing/Temporary/LastTest.log

# In build/node; npm gets the versions of Node.
node: setup
	@cmake/setup.sh node
	bindings/node/test.sh $(TESTS)

# In a virtual environment, build/python/venv.
test-python: setup
	@cmake/setup.sh python
	bindings/python/test.sh $(TESTS)

web:
	@cmake/setup.sh web
	tools/serve/web/build.sh

test-web: setup
	@cmake/setup.sh web
	cmake --preset release && cmake --build build/release --target annal_command
	tools/serve/web/test.sh build/release/tools/annal $(or $(PART),short)

bench-serve: setup
	cmake --preset bench && cmake --build --preset bench --target annal_command
	$(if $(SPARE),SPARE='$(SPARE)') tests/serve/load.py build/bench/tools/annal

web-pictures: setup
	@cmake/setup.sh web
	cmake --preset release && cmake --build build/release --target annal_command
	cd tools/serve/web && node test/pictures.mjs

check-long:
	@$(if $(SEED),SEED='$(SEED)') tests/check_long.sh $(PART)

# Each form of damage, also where a run of all tests takes every 29th bit. Some minutes.
flips: setup
	cmake --preset bench && cmake --build --preset bench
	ANNAL_TEST_FULL=1 build/bench/tests/crash/test_crash flips
	ANNAL_TEST_FULL=1 build/bench/tests/crash/test_crash flips_log
	ANNAL_TEST_FULL=1 build/bench/tests/snapshot/test_snapshot container

# A run of all tests takes some rounds. About five minutes.
contend: setup
	cmake --preset bench && cmake --build --preset bench --target test_packs --target test_crash
	ANNAL_TEST_FULL=1 build/bench/tests/packs/test_packs contend
	ANNAL_TEST_FULL=1 CK_DEFAULT_TIMEOUT=1200 build/bench/tests/crash/test_crash share

# Each fuzzer for SECONDS; findings are kept: tests/fuzz/run.sh.
SECONDS ?= 60
fuzz: setup
	@cmake/setup.sh ci
	cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers
	$(if $(SEED),SEED='$(SEED)') tests/fuzz/run.sh build/fuzz '$(SECONDS)'

demo: setup
	@mkdir -p build
	@echo 'Building; what the compiler says goes to build/demo.log.'
	@(cmake --preset release && cmake --build --preset release) >build/demo.log 2>&1 || { cat build/demo.log; exit 1; }
	@LOGS='$(LOGS)' KIND='$(KIND)' tools/demo.sh build/release/tools/annal

# Stores in memory: nothing is ever synced.
faults: setup
	cmake --preset dev
	cmake --build --preset dev --target test_faults
	TMPDIR=$${TMPDIR:-/dev/shm} ANNAL_FAULTS=all CK_FORK=no build/dev/tests/crash/test_faults

# Some minutes. The counts are printed at the end. SECONDS_MOST ends it earlier; the last line says how to continue: FIRST=.
soak: setup
	cmake --preset bench && cmake --build --preset bench --target soak
	build/bench/tests/crash/soak $(or $(ROUNDS),100000) $(or $(SEED),1) $(or $(FIRST),0) $(SECONDS_MOST)

# Eight stores at once, eight processes in each: with these numbers a quarter of an hour. PACE=1: the processes hardly pause
# and keep two cores busy. SPARE: how many milliseconds beyond its limit a command may be kept waiting, more where the disk
# is busy.
stops: setup
	cmake --preset bench && cmake --build --preset bench --target annal_command
	/usr/bin/python3 tests/crash/stops.py build/bench/tools/annal --rounds $(or $(ROUNDS),300) --seed $(or $(SEED),1) \
		--seconds $(or $(PAUSE),20) --spare $(or $(SPARE),100) --pace $(or $(PACE),8)

# Servers that it starts itself: PostgreSQL, a server with the protocol of S3, NATS. tests/ship/cluster.sh --list: the parts.
test-cluster: setup
	@cmake/setup.sh cluster
	@cmake/duckdb.sh || echo 'SKIPPED: the lake: npm cannot get the library of DuckDB'
	@tests/ship/install.sh
	cmake --preset bench && cmake --build --preset bench --target test_ship fleet
	@$(if $(SEED),SEED='$(SEED)') tests/ship/cluster.sh $(PART)

bench-ship: setup
	@cmake/setup.sh cluster
	@cmake/duckdb.sh
	cmake --preset bench && cmake --build --preset bench --target annal_command
	tests/ship/speed.py build/bench/tools/annal $(PART)

fleet: setup
	@cmake/setup.sh cluster
	cmake --preset bench && cmake --build --preset bench --target annal_command fleet draw
	tests/ship/fleet.py build/bench --to build/fleet.json
	tests/ship/fleet.py build/bench --hosts 50 --sessions 10000 --seconds 20 --rates 100,500,2000,4000,8000 --to build/fleet-50.json
	tests/ship/fleet.py build/bench --draw docs/scale --from build/fleet.json,build/fleet-50.json

power: setup
	cmake --preset bench && cmake --build --preset bench --target test_power
	build/bench/tests/crash/test_power full

# Every state of a model of the ownership rules; and that it is able to fail.
model:
	@cmake/setup.sh model
	tests/model/run.sh

# In a copy of the tree, build/mutate/tree.
mutate: setup
	tests/mutate/mutate.py

coverage:
	@cmake/setup.sh coverage
	cmake --preset coverage
	cmake --build --preset coverage
	tests/coverage.sh build/coverage

# The cache of the loader knows a new library only after ldconfig.
install: build
	cmake --install build/release --prefix '$(prefix)'
	@[ -n "$$DESTDIR" ] || ldconfig 2>/dev/null || true

# PEERS=new: Turso, and LMDB and SQLite newer than Debian's, which Annal then uses too, in a build of its own. Its cache is removed
# because it remembers what pkg-config said when one of them was missing.
bench_to = build/bench$(if $(PEERS),-peers)
bench_setup = cmake/setup.sh bench$(if $(PEERS), && tests/bench/peers.sh build/peers && rm -f $(bench_to)/CMakeCache.txt)
bench_build = $(if $(PEERS),PKG_CONFIG_PATH="$(CURDIR)/build/peers/lib/pkgconfig:$$PKG_CONFIG_PATH" )cmake --preset bench \
	-B $(bench_to) && cmake --build $(bench_to) --target annal-bench

# DIR is on the disk to measure.
bench:
	@$(bench_setup)
	$(bench_build)
	$(bench_to)/tests/bench/annal-bench --dir '$(or $(DIR),build)' --out $(bench_to)-results

bench-quick:
	@$(bench_setup)
	$(bench_build)
	$(bench_to)/tests/bench/annal-bench --quick --dir '$(or $(DIR),build)' --out $(bench_to)-results
	@cat $(bench_to)-results/results.md

bench-growth:
	@$(bench_setup)
	$(bench_build)
	$(bench_to)/tests/bench/annal-bench --growth $(LONG) --dir '$(or $(DIR),build)' --out build/bench-growth
	mkdir -p docs/performance && cp build/bench-growth/*.svg docs/performance/

# LOCOMO is data/locomo10.json of github.com/snap-research/locomo, fetched if it is not given: its
# licence forbids commercial use, so it is not part of the repository.
bench-recall: setup
	cmake --preset bench && cmake --build --preset bench --target annal_command
	$(if $(LOCOMO),,@[ -s build/locomo10.json ] || { echo 'LoCoMo: CC BY-NC 4.0, not for commercial use' && \
		curl -fsSL -o build/locomo10.json https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json; })
	tests/bench/recall.py build/bench/tools/annal --locomo '$(or $(LOCOMO),build/locomo10.json)' --logs tests/data $(LOGS)

bench-parts: setup
	cmake --preset bench && cmake --build --preset bench
	cmake --build build/bench --target bench

picture: build
	/usr/bin/python3 docs/terminal.py build/release/tools/annal

# In the build of make test if it exists, else in the build of make.
man: preset = $(if $(wildcard build/dev/CMakeCache.txt),dev,release)
man: setup
	cmake --preset $(preset) && cmake --build build/$(preset) --target annal_manual
	build/$(preset)/tools/annal_manual <tools/manual/annal.1.in >build/annal.1
	mv build/annal.1 docs/annal.1

reference:
	@cmake/setup.sh reference
	cmake --preset release && cmake --build build/release --target reference
	@echo build/release/reference/html/index.html

lint: setup lint-format
	cmake --preset dev
	cmake --build --preset dev --target annal_command annal_manual run_test
	ctest --preset dev -R '^(docs_functions|docs_manual|event_fields|floors|layers|prefixes|requirements|words)$$'

# clang-format does not change comments.
lint-format:
	git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
	@! git ls-files '*.c' '*.h' | LC_ALL=C.UTF-8 xargs grep -nP '^.{101,}|^\s+\* \*/$$' || \
		{ echo "lines of more than 100 columns, and ends of comments that are torn off"; exit 1; }
	git ls-files '*.sh' .ci/run | xargs shellcheck

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build

setup:
	@cmake/setup.sh
