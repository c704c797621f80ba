# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For a script whose work is in parts. It has list(), which prints a line for each: its name, and what it covers; and
# run_part NAME.

# choose_parts "$@": handles --list and --one PART, and exits. Else sets parts to the named parts, or all of them; exit
# status 2 if a part is unknown.
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
