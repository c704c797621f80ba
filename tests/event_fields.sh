#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# event_fields.sh: docs/events.md and index/packs/core/type_fields.json name the same fields of the same types, and the same
# ones as required (marked * and !).
set -eu
cd "$(dirname "$0")/.."
awk '
    function fault(what) { print what; failed = 1 }
    function learn(section, text, is_cell,    word, star) {
        while (match(text, /`[a-z_0-9.]+`[*]?/)) {
            word = substr(text, RSTART + 1, RLENGTH - 1)
            star = word ~ /[*]$/
            sub(/`[*]?$/, "", word)
            text = substr(text, RSTART + RLENGTH)
            named[section, word] = 1
            if (star) starred[section, word] = 1
            if (is_cell && word !~ /[.]/) cell[section, word] = 1
        }
    }
    FNR == NR && /^"[a-z_*.]+":/ {
        split($0, part, "\"")
        type = part[2]
        is_type[type] = 1
        if ($2 !~ /^{/) { same[type] = part[4]; next }
        rest = substr($0, index($0, "{") + 1)
        while (match(rest, /"[a-z_0-9]+":"[a-z|!]+"/)) {
            split(substr(rest, RSTART, RLENGTH), part, "\"")
            field[type, part[2]] = part[4] ~ /!$/ ? 2 : 1
            rest = substr(rest, RSTART + RLENGTH)
        }
        next
    }
    FNR == NR { next }
    /^```/ { fenced = !fenced }
    /^##/ { section = $0; if (section ~ /^## What importers/) common = section }
    /^###/ { gsub(/[#,]/, " "); for (i = 1; i <= NF; i++) if ($i in is_type) in_section[section, $i] = 1 }
    /^`/ && section ~ /^### / { for (t in is_type) if (index($0, "`" t "`")) in_section[section, t] = 1 }
    !fenced { split($0, part, "|"); if (/^[|]/) learn(section, part[2], section ~ /^### /); learn(section, $0, 0) }
    END {
        for (t in is_type) for (u in same) if (u == t) for (k in field) {
            split(k, part, SUBSEP)
            if (part[1] == same[t]) copy[t, part[2]] = field[k]
        }
        for (k in copy) field[k] = copy[k]
        for (k in field) {
            split(k, part, SUBSEP); type = part[1]; name = part[2]; known = type == "*"
            for (s in in_section) {
                split(s, at, SUBSEP)
                if (at[2] != type) continue
                known = 1
                if (!((at[1], name) in named) && !((common, name) in named))
                    fault(type ": docs/events.md does not name " name)
                if (field[k] == 2 && !((at[1], name) in starred))
                    fault(type ": docs/events.md does not mark " name " as required")
            }
            if (!known && type !~ /_/) fault("docs/events.md has no section of " type)
        }
        for (k in starred) { split(k, part, SUBSEP); found = 0
            for (s in in_section) { split(s, at, SUBSEP); if (at[1] == part[1] && field[at[2], part[2]] == 2) found = 1 }
            if (part[1] ~ /^###/ && !found) fault(part[1] ": type_fields.json does not require " part[2])
        }
        for (k in cell) { split(k, part, SUBSEP); found = 0; any = 0
            for (s in in_section) { split(s, at, SUBSEP); if (at[1] != part[1]) continue
                any = 1; if ((at[2], part[2]) in field || ("*", part[2]) in field) found = 1 }
            if (any && !found) fault(part[1] ": type_fields.json does not have " part[2])
        }
        exit failed
    }' index/packs/core/type_fields.json docs/events.md
