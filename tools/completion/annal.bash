# SPDX-License-Identifier: Apache-2.0
# Completion of annal for bash. The words come from the command itself: annal help --words.
_annal()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local verb="" second="" store="" i
    COMPREPLY=()

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --store) store=${COMP_WORDS[++i]} ;;
        -*) ;;
        *)
            [[ -n $verb && -z $second ]] && second=${COMP_WORDS[i]}
            verb=${verb:-${COMP_WORDS[i]}}
            ;;
        esac
    done

    case $before in
    --store)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --level)
        mapfile -t COMPREPLY < <(compgen -W "sync batch os" -- "$word")
        return
        ;;
    --format)
        local formats="jsonl csv table"
        [[ $verb == query || $verb == sql ]] && formats+=" parquet"
        [[ $verb == append || $verb == import || $verb == watch || $verb == convert || $verb == fork ]] && formats="jsonl msgpack"
        [[ $verb == export ]] && formats="jsonl markdown otlp bundle html atif"
        mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
        return
        ;;
    --to | --*file)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    esac

    # A noun's words are its verbs, a verb's its options; of a verb of one word, the second is an operand.
    local words
    [[ $verb == help ]] && verb=$second second=""
    words=$(annal ${store:+--store "$store"} help --words ${verb:+"$verb"} 2>/dev/null)
    if [[ -n $verb && -n $second && $words != --* ]]; then
        words=$(annal ${store:+--store "$store"} help --words "$verb" "$second" 2>/dev/null)
    fi
    [[ $before == --* && $'\n'$words$'\n' == *$'\n'$before=$'\n'* ]] && return
    words=${words//=/}
    if [[ $word == -* ]]; then
        [[ -z $verb ]] && words="--store --json --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
    fi
    if [[ $words != --* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
    fi

    case $verb in
    import)
        mapfile -t COMPREPLY < <(compgen -W "claude-code codex lionagi bundle" -f -- "$word")
        ;;
    append | cat | convert | delete | export | fork | show | query | verify | repair | replay | diff | tail | snapshot)
        # The names of the journals are the names of the sessions.
        store=${store:-${ANNAL_STORE:-${XDG_DATA_HOME:-$HOME/.local/share}/annal}}
        mapfile -t COMPREPLY < <(compgen -W "$(
            cd -- "$store/events" 2>/dev/null && for i in *.jsonl *.mpk; do
                [[ -e $i ]] && printf '%s\n' "${i%.*}"
            done
        )" -- "$word")
        ;;
    *)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    esac
}
complete -F _annal annal
