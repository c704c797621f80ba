#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# count_tokens.sh KIND FILE: the tokens that a log says were used, counted by hand with jq and without our importers:
# input (cache included), output, read from cache, written to cache.
set -eu
case $1 in
claude-code)
    # Usage stands on every line of a message: the line with the most output tokens counts, the first of equals.
    jq -R -n -r '[inputs | fromjson? | select(type == "object" and (.message | type) == "object" and .message.usage)]
        | reduce .[] as $line ({};
            ([$line.sessionId, $line.agentId, $line.message.id, $line.requestId] | tostring) as $key
            | if .[$key] == null or .[$key].output_tokens < $line.message.usage.output_tokens
              then .[$key] = $line.message.usage else . end)
        | [.[] | {i: .input_tokens, o: .output_tokens, r: (.cache_read_input_tokens // 0),
                  w: (.cache_creation_input_tokens // 0)}]
        | [(map(.i + .r + .w) | add // 0), (map(.o) | add // 0), (map(.r) | add // 0), (map(.w) | add // 0)]
        | map(tostring) | join(" ")' "$2"
    ;;
codex)
    # Totals grow until they are begun anew: each largest one counts.
    jq -R -n -r '[inputs | fromjson? | select(type == "object" and .payload.type? == "token_count" and .payload.info)
            | .payload.info.total_token_usage]
        | . as $all
        | [range(0; length) | select(. + 1 == ($all | length) or $all[. + 1].total_tokens < $all[.].total_tokens)
            | $all[.]]
        | [(map(.input_tokens) | add // 0), (map(.output_tokens) | add // 0),
           (map(.cached_input_tokens // 0) | add // 0), (map(.cache_write_input_tokens // 0) | add // 0)]
        | map(tostring) | join(" ")' "$2"
    ;;
*)
    echo "count_tokens.sh: no kind '$1'" >&2
    exit 2
    ;;
esac
