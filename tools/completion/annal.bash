# SPDX-License-Identifier: Apache-2.0
# Completion of annal for bash. The words come from the command itself: annal help --words.

# Offer the lines of the input that begin with $1. compgen -W would run the commands in them: choices are written by the
# author of a pack, and names of sessions are names of files.
_annal_offer()
{
    local line
    while IFS= read -r line; do
        [[ -n $line && $line == "$1"* && $line != FILE.* ]] || continue
        printf -v line %q "$line"
        COMPREPLY+=("$line")
    done
}

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
    # An option with a value: its choices follow the =. FILE.sql stands for any file.
    if [[ $before == --* && $'\n'$words =~ $'\n'"$before"=([^$'\n']*) ]]; then
        local choices=${BASH_REMATCH[1]}
        [[ $choices == *FILE.* ]] && mapfile -t COMPREPLY < <(compgen -f -- "$word")
        _annal_offer "$word" <<<"${choices//[|]/$'\n'}"
        return
    fi
    words=$(sed 's/=.*//' <<<"$words")
    if [[ $word == -* ]]; then
        [[ -z $verb ]] && words=$'--store\n--json\n--help\n--version'
        _annal_offer "$word" <<<"$words"
        return
    fi
    if [[ $words != --* ]]; then
        _annal_offer "$word" <<<"$words"
        return
    fi

    case $verb in
    import)
        mapfile -t COMPREPLY < <(compgen -W "claude-code codex lionagi bundle" -f -- "$word")
        ;;
    append | cat | convert | delete | export | fork | show | query | verify | repair | replay | diff | tail | snapshot)
        # The names of the journals are the names of the sessions.
        store=${store:-${ANNAL_STORE:-${XDG_DATA_HOME:-$HOME/.local/share}/annal}}
        _annal_offer "$word" < <(
            cd -- "$store/events" 2>/dev/null && for i in *.jsonl *.mpk; do
                [[ -e $i ]] && printf '%s\n' "${i%.*}"
            done
        )
        ;;
    *)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    esac
}
complete -F _annal annal
