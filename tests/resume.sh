#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# resume.sh COMMAND BUILD CC [KILLS]: the program of guide.md that resumes its job, killed with SIGKILL at random moments.
# Each job that ends has had each effect once, and a session without open calls. KILLS: 6 by default.
set -eu
command=$1 build=$2 CC=$3 kills=${4:-6}
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-resume-XXXXXX")
trap 'rm -rf "$work"' EXIT

awk '/^```c$/ { inside = 1; text = ""; next } /^```/ { if (inside && text ~ /annal_recovery_get/) print text; inside = 0 }
    inside { text = text $0 "\n" }' docs/guide.md >"$work/agent.c"
# shellcheck disable=SC2086 # words on purpose
"$CC" ${CFLAGS:-} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$work/agent" "$work/agent.c" -Ijournal/include \
    -Iindex/include -Isnapshot/include -Ireplay/include -L"$build" -lannal -Wl,-rpath,"$build"

# count TYPE: the events of this type.
count() {
    "$command" --store "$work/store" query job-1 --type "$1" --count
}

killed=0 jobs=0
# The first job is not killed. The others are, within a little more than its duration.
before=$(date +%s%N)
"$work/agent" "$work/store"
after=$(date +%s%N)
awk -v most=$((after - before)) \
    'BEGIN { srand(7); for (i = 0; i < 100000; i++) printf "%.4f\n", rand() * 1.2 * most / 1e9 }' >"$work/moments"
exec 3<"$work/moments"
while [ "$killed" -lt "$kills" ]; do
    rm -rf "$work/store" "$work/store.bank"
    while :; do
        read -r moment <&3
        status=0
        timeout --signal=KILL "$moment" "$work/agent" "$work/store" 2>"$work/said" || status=$?
        [ "$status" -ne 137 ] || killed=$((killed + 1))
        [ "$status" -ne 0 ] || break
        [ "$status" -eq 137 ] || {
            cat "$work/said"
            exit 1
        }
    done
    [ "$(count tool.called) $(count tool.returned) $(count session.ended)" = '5 5 1' ]
    [ "$(ls "$work/store.bank")" = "$(printf 'pay-%s\n' 0 1 2 3 4)" ]
    "$command" --store "$work/store" show job-1 --recovery --json | grep -q '"calls_without_result":\[\]'
    "$command" --store "$work/store" verify >/dev/null
    jobs=$((jobs + 1))
done
echo "$killed kills, $jobs jobs"
