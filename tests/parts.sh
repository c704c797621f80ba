# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For a script whose work is in parts. It has list(), which prints a line for each: its name, and what it covers; and
# run_part NAME.

# choose_parts "$@": does what --list and --one PART ask for, and exits. Else parts are those that were named, or all; exit
# status 2 if one is unknown.
choose_parts() {
    case ${1:-} in
    --list)
        list
        exit
        ;;
    --one)
        run_part "$2"
        exit
        ;;
    esac
    local known part
    mapfile -t known < <(list | cut -d ' ' -f 1)
    parts=("$@")
    [ $# -gt 0 ] || parts=("${known[@]}")
    for part in "${parts[@]}"; do
        [[ " ${known[*]} " == *" $part "* ]] || {
            echo "${0##*/}: there is no part '$part'; $0 --list says which there are" >&2
            exit 2
        }
    done
}
