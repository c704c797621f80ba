# SPDX-License-Identifier: Apache-2.0
# Completion of annal for fish. The words come from the command itself: annal help --words.

# The words before the cursor without options: verbs and operands. $store holds --store DIR.
function __annal_given
    set -l words (commandline -opc)
    set -e words[1]
    set -l given
    set -l i 1
    while test $i -le (count $words)
        switch $words[$i]
            case --store
                set i (math $i + 1)
            case '-*'
            case '*'
                set -a given $words[$i]
        end
        set i (math $i + 1)
    end
    test (count $given) -gt 0
    and printf '%s\n' $given
end

function __annal_store
    set -l words (commandline -opc)
    set -l at (contains -i -- --store $words)
    and test (count $words) -gt $at
    and printf '%s\n' --store $words[(math $at + 1)]
end

# A noun's words are its verbs, a verb's its options.
function __annal_words
    set -l store (__annal_store)
    set -l given (__annal_given)
    test "$given[1]" = help
    and set -e given[1]
    set -l words (annal $store help --words $given[1] 2>/dev/null)
    if test (count $given) -ge 2; and not string match -q -- '--*' $words[1]
        set words (annal $store help --words $given[1..2] 2>/dev/null)
    end
    string replace -r '=.*' '' -- $words
end

# The choices of the option before the cursor. FILE.sql stands for any file.
function __annal_choices
    set -l given (__annal_given)
    set -l option (commandline -opc)[-1]
    set -l choices
    for verb in $given[1] "$given[1..2]"
        set -a choices (annal (__annal_store) help --words (string split ' ' -- $verb) 2>/dev/null |
            string replace -rf -- "^$option=" '')
    end
    string split '|' -- $choices[-1] | string match -v 'FILE.*'
end

# The names of the journals are the names of the sessions.
function __annal_sessions
    set -l store (__annal_store)[2]
    test -n "$store"
    or set store $ANNAL_STORE
    test -n "$store"
    or set store (set -q XDG_DATA_HOME; and echo $XDG_DATA_HOME; or echo $HOME/.local/share)/annal
    for journal in $store/events/*.jsonl $store/events/*.mpk
        string replace -r '.*/(.*)\.[a-z]+$' '$1' -- $journal
    end
end

set -l of_sessions append cat convert delete export fork show query verify repair replay diff tail
complete -c annal -f
complete -c annal -a '(__annal_words)'
complete -c annal -n "__fish_seen_subcommand_from $of_sessions" -a '(__annal_sessions)'
complete -c annal -n '__fish_seen_subcommand_from import backup restore' -F
complete -c annal -n '__fish_seen_subcommand_from import' -a 'auto claude-code codex lionagi bundle'
complete -c annal -l store -r -a '(__fish_complete_directories)' -d 'the store'
complete -c annal -l level -x -a '(__annal_choices)'
complete -c annal -l format -ra '(__annal_choices)'
complete -c annal -l to -rF
