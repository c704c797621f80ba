#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_long.sh [PART…]: what takes longer than make test may, in parts of less than 30 minutes each on two cores.
#
#     tests/check_long.sh --list       the parts, and what each covers
#     tests/check_long.sh power        one of them
#     SEED=7 tests/check_long.sh       all of them, with other random choices
#
# Without SEED the clock chooses one; it is printed, and the same seed makes the same choices again. The output of a
# part stays in build/check-long/PART.txt. The exit status is 1 if a part failed.
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/parts.sh

list() {
    cat <<'END'
sanitized   every test of make test and make check with the address and undefined sanitizers
threads     every suite of the library under the thread sanitizer
memory      every suite and fuzz corpus under Valgrind; every command of the tests searched for leaks
faults      every call of every scene fails in every way that fits it
flips       every bit of a journal, a commit log and a snapshot
large       what make test leaves out: real logs, logs of 100 MB, long histories, every page of every database
contend     eight processes that want the same task, 1,000 rounds; a reader behind a million appends
soak        writers are killed with SIGKILL for 20 minutes; what was acknowledged is there
stops       processes are stopped for 20 s, 300 times; others wait for them up to a limit
resume      the agent of the guide that resumes its job, killed 1,000 times: each effect once
cluster     annal ship while shippers, networks and PostgreSQL fail, 200 times
power       the power is cut after every operation of every workload, in 200 ways
model       who may write a session: every state of the model, with SPIN
fuzz_bytes  libFuzzer on what reads bytes: json, msgpack, scan, log, snapshot, data, otlp; 4 minutes each
fuzz_text   libFuzzer on what reads text of people: pack, import, document, args, mcp; 5 minutes each
mutate      small mistakes in the product, one at a time: each makes a suite of make test fail
serve       annal serve: cuts of streams, kills, random requests, clients that leave, OpenTelemetry, 1,000 streams
mcp         annal mcp: the conformance suite, the official clients, a million requests in flat memory
acp         annal acp: 100 kills, 3,000 damaged messages, the official client
streams     annal serve --streams: the conformance suite of Durable Streams, and its client
web         the page of annal serve with 100,000 events in one session and 5,000 sessions: how quick it is
python      the Python package: 500 kills in the calls of each adapter, 1,000 of an agent, a million operations, sanitizers
node        the Node package: on Node 22, 24 and 26, 10,000 kills, a million appends, address sanitizer
loaded      make test 20 times beside busy processes and a busy disk; tests in which time passes, 20 times each
systems     other systems, fresh, in roots of their own: README's commands, make install, the wheel; clang; aarch64
handoff     every log handed to every agent and imported again; the agents themselves resume what was written
git         edits of real logs replayed into a repository: annal blame and annal log name their sessions
lost        logs are cut, rewritten, moved and deleted while annal watch is killed 200 times: every content is restored
imports     ten logs made of each log of tests/data: nothing is lost; titles, failures, ends, costs counted again
END
}

fuzz() {
    cmake --preset fuzz
    cmake --build --preset fuzz --target fuzzers
    tests/fuzz/run.sh build/fuzz "$@"
}

run_part() {
    case $1 in
    sanitized)
        cmake --preset dev
        cmake --build --preset dev
        ctest --preset dev
        ;;
    threads)
        cmake --preset tsan
        cmake --build --preset tsan
        ctest --preset tsan-all
        ;;
    memory)
        cmake --preset bench
        cmake --build --preset bench
        tests/valgrind.sh build/bench
        cmake --preset dev
        cmake --build --preset dev
        ANNAL_TEST_FULL=1 ctest --preset dev -R '^(tools|commands)[.]'
        ;;
    large)
        cmake --preset bench
        cmake --build --preset bench
        ANNAL_TEST_FULL=1 ctest --preset bench -R '^(replay(_logs)?[.]|journal[.](commit|json_msgpack)|packs[.](prose|linear)|extension|ship[.]hostile|tools[.]((im|ex)port|planted|sweep|plot|chain|forged))'
        ;;
    resume)
        cmake --preset bench
        cmake --build --preset bench --target annal_command annal_shared
        tests/resume.sh "$PWD/build/bench/tools/annal" "$PWD/build/bench" cc 1000
        ;;
    cluster) make test-cluster SEED="$SEED" ;;
    faults | flips | contend | model | mutate) make "$1" ;;
    soak) make soak ROUNDS=1000000 SEED="$SEED" SECONDS_MOST=1200 ;;
    stops) make stops SEED="$SEED" ;;
    power)
        cmake --preset bench
        cmake --build --preset bench --target test_power
        printf '%s/4\n' 1 2 3 4 | xargs -n 1 -P 2 build/bench/tests/crash/test_power full
        ;;
    fuzz_bytes) fuzz 240 json msgpack scan log snapshot data otlp ;;
    fuzz_text) fuzz 300 pack import document args mcp ;;
    serve)
        cmake --preset dev
        cmake --build --preset dev --target annal_command
        tests/serve/cuts.py build/dev/tools/annal 1000
        tests/serve/attack.py build/dev/tools/annal 600 "$SEED"
        cmake/setup.sh web
        (cd tests/serve/otel && npm ci --ignore-scripts --no-audit --no-fund --silent)
        node tests/serve/otel/exporters.mjs build/dev/tools/annal
        tests/serve/leave.py build/dev/tools/annal 300 "$SEED"
        make bench-serve
        ;;
    mcp)
        cmake --preset bench
        cmake --build --preset bench --target annal_command
        tests/mcp/run.sh build/bench/tools/annal
        [ -z "${ANNAL_TEST_DATA:-}" ] || tests/mcp/questions.py build/bench/tools/annal tests/mcp/questions.tsv \
            "$ANNAL_TEST_DATA"/{claude-code,codex,gemini-cli,opencode,pi}
        ;;
    streams)
        cmake --preset dev
        cmake --build --preset dev --target annal_command
        tests/streams/run.sh build/dev/tools/annal
        ;;
    acp)
        cmake --preset dev
        cmake --build --preset dev --target annal_command
        tests/acp/run.sh build/dev/tools/annal "$SEED"
        ;;
    systems) tests/systems.sh ;;
    web) make test-web PART=long ;;
    python)
        LIBANNAL_FULL=1 SEED="$SEED" make test-python TESTS=tests/test_loads.py
        LIBANNAL_FULL=1 make test-python TESTS=tests/test_async.py
        bindings/python/sanitize.sh
        ;;
    node)
        LIBANNAL_FULL=1 make node
        bindings/node/workflow4.sh || [ $? = 77 ]
        bindings/node/mastra.sh || [ $? = 77 ]
        bindings/node/cross.sh || [ $? = 77 ]
        for machine in x64 arm64; do
            bindings/node/musl.sh "$machine" || [ $? = 77 ]
        done
        bindings/node/sanitize.sh
        ;;
    loaded)
        cmake --preset dev
        cmake --build --preset dev
        tests/loaded.sh 20
        ;;
    handoff)
        cmake --preset bench
        cmake --build --preset bench --target annal_command
        logs=() names=()
        for kind in claude-code codex gemini-cli opencode pi; do
            logs+=("$kind=tests/data/$kind")
            [ -z "${ANNAL_TEST_DATA:-}" ] || logs+=("$kind=$ANNAL_TEST_DATA/$kind")
            names+=("$kind=tests/data/$kind")
        done
        python3 tests/handoff/roundtrip.py build/bench/tools/annal "${logs[@]}"
        mkdir -p build/handoff && cp tests/handoff/package.json build/handoff
        npm install --prefix build/handoff --ignore-scripts --no-audit --no-fund
        python3 tests/handoff/resume.py build/bench/tools/annal build/handoff/node_modules "${names[@]}"
        ;;
    git)
        cmake --preset bench
        cmake --build --preset bench --target annal_command
        logs=(jsonl=tests/git/edits.jsonl)
        for kind in claude-code codex gemini-cli pi; do
            [ -z "${ANNAL_TEST_DATA:-}" ] || logs+=("$kind=$ANNAL_TEST_DATA/$kind")
        done
        python3 tests/git/replay.py build/bench/tools/annal 400 "${logs[@]}"
        ;;
    lost)
        cmake --preset bench
        cmake --build --preset bench --target annal_command
        python3 tests/tools/import/lose_logs.py build/bench/tools/annal 200 "$SEED" tests/data ${ANNAL_TEST_DATA:+"$ANNAL_TEST_DATA"}
        ;;
    imports)
        cmake --preset bench
        cmake --build --preset bench --target annal_command
        python3 tests/tools/import/audit_import.py build/bench/tools/annal tests/data --mutants 10
        python3 tests/tools/import/count_logs.py build/bench/tools/annal tests/data ${ANNAL_TEST_DATA:+"$ANNAL_TEST_DATA"}
        ;;
    esac
}

parts=()
choose_parts "$@"
export SEED="${SEED:-$(date +%s)}"
export ANNAL_TEST_SEED="$SEED"
cmake/setup.sh ci
mkdir -p build/check-long

echo "SEED=$SEED"
failed=0
for part in "${parts[@]}"; do
    list | grep "^$part "
    began=$SECONDS
    # In a shell of its own, since set -e does nothing within a condition.
    if "$0" --one "$part" >"build/check-long/$part.txt" 2>&1 </dev/null; then
        outcome=passed
    else
        outcome="FAILED, see build/check-long/$part.txt; again with: SEED=$SEED tests/check_long.sh $part"
        failed=1
    fi
    printf '%-11s %5d s  %s\n' "" $((SECONDS - began)) "$outcome"
done
exit $failed
