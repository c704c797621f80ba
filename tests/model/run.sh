#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Explore tests/model/ownership.pml with SPIN: the rules hold in every state, and without any single rule
# SPIN finds a way to lose an event. Needs Debian's spin and gcc.
#   run.sh           everything; a line for each run
#   run.sh NAME      one run by its name, and for a broken rule the story that SPIN found
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/ownership.pml
only=${1:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# explore NAME DEFINES…: leaves spin's output in $scratch/NAME/out
explore() {
    mkdir "$scratch/$1"
    cd "$scratch/$1"
    shift
    spin -a "$@" "$model"
    gcc -O1 -w -DCOLLAPSE -DSAFETY -DVECTORSZ=1024 -DMEMLIM=8000 -o pan pan.c
    ./pan -m2000000 -w24 -E -n >out
}

states() {
    awk '/states, stored/ { print $1 }' "$scratch/$1/out"
}

# The rules hold: all states are seen, none is wrong.
holds() {
    [ -z "$only" ] || [ "$only" = "$1" ] || return 0
    explore "$@"
    if grep -q 'errors: 0' out && ! grep -q 'max search depth too small\|out of memory' out; then
        printf '%-30s holds in %s states\n' "$1" "$(states "$1")"
    else
        printf '%-30s FAILS:\n' "$1"
        tell "$@"
        failed=1
    fi
}

# One rule is left out: the model must be able to fail.
breaks() {
    [ -z "$only" ] || [ "$only" = "$1" ] || return 0
    explore "$@"
    if [ -f ownership.pml.trail ]; then
        printf '%-30s loses an event after %s states\n' "$1" "$(states "$1")"
        [ -z "$only" ] || tell "$@"
    else
        printf '%-30s NOTHING FOUND in %s states\n' "$1" "$(states "$1")"
        failed=1
    fi
}

tell() {
    shift
    spin -t -k ownership.pml.trail "$@" "$model" </dev/null |
        grep -E '^ *([0-9]: |kill|power|spin: .*assert)' | sed 's/^ */    /'
}

holds kills-and-cuts -DEVENTS=2 -DKILLS=1 -DCUTS=1
holds three-events-two-cuts -DEVENTS=3 -DKILLS=0 -DCUTS=2
holds level-os-and-cuts -DEVENTS=2 -DOS -DKILLS=0 -DCUTS=1
holds level-os-and-kills -DEVENTS=2 -DOS -DKILLS=1 -DCUTS=0
holds voids-and-kills -DEVENTS=2 -DSLOTS=3 -DFAILS=1 -DKILLS=1 -DCUTS=0
holds voids-and-cuts -DEVENTS=2 -DSLOTS=3 -DFAILS=1 -DKILLS=0 -DCUTS=1
holds replacement-and-kills -DEVENTS=2 -DCHANGES=1 -DKILLS=1 -DCUTS=0
holds replacement-and-cuts -DEVENTS=2 -DCHANGES=1 -DKILLS=0 -DCUTS=1

breaks holder-is-not-recovered -DEVENTS=2 -DBREAK_HOLDER_NOT_RECOVERED
breaks release-without-sync -DEVENTS=2 -DBREAK_RELEASE_WITHOUT_SYNC
breaks reuse-without-checkpoint -DEVENTS=3 -DKILLS=0 -DBREAK_REUSE_WITHOUT_CHECKPOINT
breaks loose-bytes-are-not-carried -DEVENTS=2 -DOS -DKILLS=0 -DBREAK_LOOSE_NOT_CARRIED
breaks no-mark -DEVENTS=2 -DOS -DKILLS=0 -DBREAK_NO_MARK
breaks nothing-is-cut-at-a-mark -DEVENTS=2 -DOS -DKILLS=0 -DBREAK_NO_CUT
breaks mark-outlives-checkpoint -DEVENTS=2 -DOS -DKILLS=0 -DBREAK_MARK_OUTLIVES_CHECKPOINT
breaks no-recovery-lock -DEVENTS=2 -DOS -DKILLS=0 -DBREAK_NO_RECOVERY_LOCK
breaks no-void -DEVENTS=2 -DSLOTS=3 -DFAILS=1 -DKILLS=1 -DCUTS=0 -DBREAK_NO_VOID
breaks no-tombstone -DEVENTS=2 -DCHANGES=1 -DKILLS=0 -DBREAK_NO_TOMBSTONE

exit $failed
