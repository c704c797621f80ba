#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh PATH-OF-ANNAL: the main job, step by step, in a store of its own that is removed at the end.
# LOGS=PATH KIND=codex in the environment: the same on logs of your own, which are only read.
set -eu
annal=$(cd "$(dirname "$1")" && pwd)/annal
logs=${LOGS:-tests/data/claude-code}
kind=${KIND:-claude-code}
[ -n "${LOGS:-}" ] || cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-demo-XXXXXX")
tail_pid=
finish() {
    [ -z "$tail_pid" ] || kill "$tail_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
ANNAL_STORE=$work/store COLUMNS=92
export ANNAL_STORE COLUMNS

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
else
    bold='' dim='' plain=''
fi

explain() { printf '\n%s\n' "$1"; }
prompt() { printf '%s  $ %s%s\n' "$bold" "$1" "$plain"; }

# The first lines of standard input, none wider than a terminal. Not every awk knows UTF-8: the bytes
# that continue a character are left out of the count.
trimmed() {
    LC_ALL=C awk -v most="$1" -v width="$COLUMNS" -v dim="$dim" -v plain="$plain" '
        function wide(text) { gsub(/[\200-\277]/, "", text); return length(text) > width }
        NR <= most { print "    " (wide($0) ? substr($0, 1, width - 3) "..." : $0) }
        END { if (NR > most) print dim "    ... " NR - most " more line" (NR > most + 1 ? "s" : "") plain }'
}

# run LINES WORD...: show the command, run it, show the first lines of what it prints.
run() {
    most=$1
    shift
    shown=annal
    for word in "$@"; do
        case $word in
        *' '*) shown="$shown \"$word\"" ;;
        *) shown="$shown $word" ;;
        esac
    done
    prompt "$shown"
    "$annal" "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2 && exit 1; }
    trimmed "$most" <"$work/out"
}

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

printf '%sAnnal keeps what AI agents did: every session is a journal, and any moment of it can be\n' "$bold"
printf 'asked for again.%s This demo works in %s and removes it at the end.\n' "$plain" "$work"

explain "1. Import logs that an agent left behind. Each becomes sessions of events; running it again
   would add only what is new."
run 6 import "$kind" "$logs"

explain "2. List the sessions, the last active one first. The table comes from an index that Annal keeps
   beside the journals."
run 8 ls
"$annal" ls --json >"$work/before"
# The session with the most events has the most to show.
session=$("$annal" sql "SELECT id AS session_id FROM sessions ORDER BY events DESC LIMIT 1" --json | field session_id)
events=$("$annal" query "$session" --count)
half=$(((events + 1) / 2))

explain "3. Query a range of events of one session. Their data is kept byte for byte as it came."
run 6 query "$session" --seq "$half..$((half + 4))" --format table

explain "4. Replay: what was the state of the session after event $half of $events? Tables again, and SQL
   asks them about the past."
run 3 replay "$session" --at "$half" \
    --sql "SELECT status, events, total_turns, total_tokens FROM sessions"
run 3 replay "$session" \
    --sql "SELECT status, events, total_turns, total_tokens FROM sessions"

explain "5. Live: a tail follows a session while events are appended. Each line is printed the moment
   its event is durable on disk."
prompt "annal tail live --follow &"
printf '{"agent_id":"demo","provider":"none","model":"none","title":"Written by the demo"}\n' |
    "$annal" append live --type session.created >/dev/null
"$annal" tail live --follow >"$work/tail" &
tail_pid=$!
for word in one two three; do
    prompt "echo '{\"text\":\"$word\"}' | annal append live --type note.added"
    printf '{"text":"%s"}\n' "$word" | "$annal" append live --type note.added | trimmed 1
    tries=0
    until grep -q "\"$word\"" "$work/tail" || [ $tries -gt 200 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
    printf '    %stail:%s %s\n' "$dim" "$plain" "$(tail -n 1 "$work/tail")"
done
kill "$tail_pid"
wait "$tail_pid" 2>/dev/null || true
tail_pid=
"$annal" ls --json >"$work/before"

explain "6. Packs: tables for what agents share, and tables of your own. A pack is a SQL file that says what
   each event does to its tables; the store keeps them in step with the journals."
run 1 pack enable teams
run 1 team create review --id t1 --member ada --member bob
run 1 team send t1 "the tide table is an hour late" --from ada
mkdir -p "$ANNAL_STORE/packs"
cat >"$ANNAL_STORE/packs/tools_per_day.sql" <<'END'
-- pack tools_per_day   version 1   database tools.db
CREATE TABLE tool_days (session_id TEXT, tool TEXT, day TEXT, calls INTEGER, PRIMARY KEY (session_id, tool, day));
-- on tool.called
INSERT INTO tool_days VALUES (:session, COALESCE($tool, '?'), substr(:ts, 1, 10), 1)
ON CONFLICT DO UPDATE SET calls = calls + 1;
END
prompt "cp tools_per_day.sql packs/    # 5 lines: count tool calls by day"
run 6 sql "SELECT tool, count(*) AS days, sum(calls) AS calls FROM tool_days GROUP BY tool ORDER BY calls DESC"
"$annal" ls --json >"$work/before"

explain "7. Delete the index. Only the journals are precious: the next question makes the index anew,
   and the answer is the same to the byte."
prompt "rm sessions.db*"
rm -f "$ANNAL_STORE"/sessions.db*
prompt "annal ls"
"$annal" ls --json >"$work/after"
cmp "$work/before" "$work/after"
printf '    %s sessions, identical to what stood there before\n' "$(wc -l <"$work/after" | tr -d ' ')"

explain "8. Prove that nothing is damaged: every line of every journal carries a hash that also covers the
   line before it. A journal is a text file that you can read without Annal."
run 3 verify
prompt "tail -n 1 events/live.jsonl"
tail -n 1 "$ANNAL_STORE/events/live.jsonl" | trimmed 1

printf '\n%sThat was all.%s On logs of your own: make demo LOGS=PATH KIND=claude-code or codex.\n' "$bold" "$plain"
