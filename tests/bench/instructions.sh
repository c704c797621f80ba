#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# instructions.sh BUILD ANNAL [--record]: how many instructions a unit of work takes under callgrind, and how that number
# grows when there is four times as much data. Both are compared with the bounds in instructions.txt: a number more than 5 %
# above its bound is a failure, and so is a growth more than 15 % above. --record writes the bounds again.
#
# A path of the library has hot_<path>() in instructions.c; its unit is an event. Of a command (ANNAL, the program) the whole
# process is counted; its unit is a session (ls), an event (search) or a line of a log (import).
# Exit status 77: this machine cannot count instructions.
set -euo pipefail
program=$1/tests/bench/instructions
generate=$1/tests/bench/bench_generate
annal=$2
bounds=$(dirname "$0")/instructions.txt
record=${3:-}
paths="append bulk index query read replay"
commands="ls search import"
TIMES=4

command -v valgrind >/dev/null || {
    echo "there is no valgrind"
    exit 77
}
[ "$(uname -m)" = x86_64 ] || {
    echo "the bounds are those of x86_64"
    exit 77
}

# A copy by "rep movsb" counts once a byte or so, and whether the C library copies that way depends on addresses.
export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-instructions-XXXXXX")
trap 'rm -rf "$work"' EXIT

# A session of Claude Code, too short for a snapshot, with $1 lines: prompts and answers in turn.
log() {
    awk -v lines="$1" 'BEGIN {
        for (i = 1; i <= lines; i++) {
            ids = sprintf("\"sessionId\":\"s\",\"uuid\":\"u%d\",\"parentUuid\":\"u%d\"", i, i - 1)
            time = sprintf("\"timestamp\":\"2026-01-01T%02d:%02d:%02d.000Z\"", i / 3600, i / 60 % 60, i % 60)
            if (i % 2)
                printf "{\"type\":\"user\",%s,%s,\"message\":{\"role\":\"user\",\"content\":\"prompt %d\"}}\n", ids, time, i
            else
                printf "{\"type\":\"assistant\",%s,%s,\"message\":{\"id\":\"m%d\",\"role\":\"assistant\",\"content\":" \
                    "[{\"type\":\"text\",\"text\":\"answer %d\"}],\"usage\":{\"output_tokens\":5}}}\n", ids, time, i, i
        }
    }'
}

# run COMMAND TIMES UNIT_FILE: what is counted; prints nothing, and writes the number of units.
run() {
    local store=$work/$1.$2.store
    case $1 in
        ls | search)
            "$generate" "$store" --sessions $((20 * $2)) --events $((400 * $2)) --largest 100 >"$3"
            # The first search fills its index.
            "$annal" search --store "$store" function >"$3"
            ;;
    esac
    case $1 in
        ls) set -- "$1" $((20 * $2)) "$3" ls ;;
        search) set -- "$1" $((400 * $2)) "$3" search function ;;
        import)
            log $((60 * $2)) >"$work/$1.$2.jsonl"
            set -- "$1" $((60 * $2)) "$3" import claude-code "$work/$1.$2.jsonl"
            ;;
    esac
    echo "$2" >"$3"
    local verb=$4
    shift 4
    valgrind --tool=callgrind --callgrind-out-file="${store%.store}.out" "$annal" "$verb" --store "$store" "$@"
}

# count NAME TIMES: instructions a unit, to $work/NAME.TIMES.
count() {
    local to=$work/$1.$2
    case " $paths " in
        *" $1 "*) valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no --toggle-collect="hot_$1" \
            --toggle-collect="hot_$1_sync" --callgrind-out-file="$to.out" "$program" "$to.store" "$1" "$2" >"$to.units" ;;
        *) run "$1" "$2" "$to.units" >"$to.printed" ;;
    esac 2>"$to.log" || {
        cat "$to.log"
        return 1
    }
    # Those of all threads.
    awk -v units="$(cat "$to.units")" '/^(totals|summary):/ { sum = $2 } END { printf "%d\n", sum / units }' "$to.out" >"$to"
    rm -rf "$to.store"
}
export -f count run log
export paths program generate annal work

for name in $paths $commands; do
    echo "$name 1"
    echo "$name $TIMES"
done | xargs -n 2 -P 2 bash -euo pipefail -c 'count "$@"' count

measured() {
    for name in $paths $commands; do
        awk -v name="$name" 'FNR == NR { one = $1; next } { printf "%s %d %d\n", name, one, 100 * $1 / one }' \
            "$work/$name.1" "$work/$name.$TIMES"
    done
}

if [ "$record" = --record ]; then
    {
        sed -n '/^#/p' "$bounds"
        measured
    } >"$work/new"
    cp "$work/new" "$bounds"
    cat "$bounds"
    exit 0
fi

measured | awk -v bounds="$bounds" '
    function verdict(now, bound, percent) {
        if (bound == "") { status = 1; return "has no bound" }
        if (now > bound * (100 + percent) / 100) { status = 1; return "MORE than " percent " % above" }
        if (now < bound * 0.85) return "15 % below: record it with --record"
        return "fine"
    }
    BEGIN { while ((getline <bounds) > 0) if ($1 != "#") { bound[$1] = $2; growth[$1] = $3 } }
    {
        printf "%-7s %8d instructions a unit, bound %8s: %s\n", $1, $2, bound[$1], verdict($2, bound[$1], 5)
        printf "%-7s %7d %% of that with four times the data, bound %s %%: %s\n", "", $3, growth[$1], verdict($3, growth[$1], 15)
    }
    END { exit status }'
