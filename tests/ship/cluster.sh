#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cluster.sh [PART…]: shipping to servers that it starts on this machine, while shippers, networks and servers fail.
#
#     tests/ship/cluster.sh --list        the parts, and what each covers
#     tests/ship/cluster.sh faults hosts  two of them
#     SEED=7 tests/ship/cluster.sh        all of them, with other random choices
#
# Run from the root of the source, after make test-cluster built the programs. The exit status is 1 if a part failed. Servers
# and stores are in one directory in /tmp; it is removed and they are killed however this ends.
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/parts.sh

list() {
    cat <<'END'
faults   PostgreSQL: 200 rounds with twelve kinds of faults; a standby that takes over
rows     PostgreSQL: what arrives, its schema, its rows of sessions
pull     PostgreSQL: annal pull, killed 50 times
home     PostgreSQL: who may write a session, also after the target was away
push     two servers: annal push and annal pull, killed 50 times each
lake     a directory: two shippers, killed 100 times
bucket   a bucket of S3: 100 faults
compact  a lake is compacted for a minute while shippers ship and DuckDB and ClickHouse read
fleet    1,000 hosts, one PostgreSQL with a pooler
stream   three NATS servers, current: 30 faults, a long event, a stream deleted and lost
stream2  the same with Debian's
hosts    8 hosts claim 200 tasks, 50 of one backlog, 200 of one that they share; they are frozen, a primary is killed
END
}

suite() {
    cd build/bench
    ANNAL_TEST_FULL=1 tests/ship/test_ship "$1"
}

run_part() {
    local python=build/cluster/bin/python annal=build/bench/tools/annal
    case $1 in
    faults) CK_FORK=no suite faults ;;
    rows) suite ship ;;
    pull | home | lake) suite "$1" ;;
    push) python3 tests/serve/serve.py $annal a_push_and_a_pull_that_are_killed_go_on ;;
    bucket) $python tests/ship/bucket.py $annal 100 ;;
    compact) $python tests/ship/compact.py $annal 60 ;;
    fleet) tests/ship/fleet.py build/bench --short ;;
    stream) $python tests/ship/stream.py $annal 30 build/cluster/bin/nats-server ;;
    stream2) $python tests/ship/stream.py $annal 30 /usr/sbin/nats-server ;;
    hosts) /usr/bin/python3 tests/ship/hosts.py $annal 8 200 ;;
    esac
}

parts=()
choose_parts "$@"

# The server of PostgreSQL is another user, and goes through it.
ANNAL_TEST_SERVERS=$(mktemp -d /tmp/annal-cluster-XXXXXX)
chmod 711 "$ANNAL_TEST_SERVERS"
export ANNAL_TEST_SERVERS TMPDIR=$ANNAL_TEST_SERVERS ${SEED:+ANNAL_TEST_SEED="$SEED"}
running=

# Servers and hosts end with the process that started them.
# shellcheck disable=SC2317 # the trap calls it
end_all() {
    if [ -n "$running" ]; then
        kill -TERM -- "-$running" 2>/dev/null || true
        for _ in {1..50}; do
            kill -0 -- "-$running" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$running" 2>/dev/null || true
    fi
    # A server that was killed may still be writing.
    rm -rf "$ANNAL_TEST_SERVERS" || { sleep 1 && rm -rf "$ANNAL_TEST_SERVERS"; }
}
trap end_all EXIT
# A second signal would end end_all.
trap "trap '' INT TERM HUP; exit 130" INT TERM HUP

set -m # a group of its own for each part
lines=()
failed=0
for part in "${parts[@]}"; do
    printf '== %s\n' "$(list | grep "^$part ")"
    began=$SECONDS
    "$0" --one "$part" </dev/null &
    running=$!
    outcome=passed
    wait "$running" || outcome=FAILED
    running=
    [ $outcome = passed ] || failed=1
    lines+=("$(printf '%-8s %5d s  %s' "$part" $((SECONDS - began)) $outcome)")
done
printf '%s\n' "${lines[@]}"
exit $failed
