# Completion of annal for bash.
_annal()
{
    local verbs="append import cat ls show query sql replay tail snapshot stats verify repair doctor reindex convert delete help version"
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local verb="" store="" i
    COMPREPLY=()

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --store) store=${COMP_WORDS[++i]} ;;
        -*) ;;
        *) verb=${verb:-${COMP_WORDS[i]}} ;;
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
        [[ $verb == append || $verb == import ]] && formats="jsonl msgpack"
        mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
        return
        ;;
    --type | --since | --until | --seq | --limit | --from | --expect-seq | --wait | --status | --at | --sql | --to | --jobs)
        return
        ;;
    esac

    local options="--store --json --help"
    case $verb in
    "") options+=" --version" ;;
    append) options+=" --type --level --expect-seq --wait --format" ;;
    import) options+=" --format" ;;
    cat) options+=" --from" ;;
    convert) options+=" --format" ;;
    delete) options+=" --yes --wait" ;;
    ls) options+=" --status --limit" ;;
    query) options+=" --type --since --until --seq --limit --count --format" ;;
    sql) options+=" --format" ;;
    replay) options+=" --at --sql --format --events --no-snapshots" ;;
    tail) options+=" --from --follow" ;;
    doctor) options+=" --disk" ;;
    repair) options+=" --to --format --dry-run" ;;
    verify) options+=" --replay --jobs" ;;
    esac

    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    case $verb in
    "" | help)
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$word")
        ;;
    import)
        mapfile -t COMPREPLY < <(compgen -W "claude-code codex" -f -- "$word")
        ;;
    append | cat | convert | delete | show | query | verify | repair | replay | tail | snapshot)
        # The names of the journals are the names of the sessions.
        store=${store:-${ANNAL_STORE:-${XDG_DATA_HOME:-$HOME/.local/share}/annal}}
        mapfile -t COMPREPLY < <(compgen -W "$(
            cd -- "$store/events" 2>/dev/null && for i in *.jsonl *.mpk; do
                [[ -e $i ]] && printf '%s\n' "${i%.*}"
            done
        )" -- "$word")
        ;;
    esac
}
complete -F _annal annal
