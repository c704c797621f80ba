# SPDX-License-Identifier: Apache-2.0
# The first sentence about each public function, header by header, as a page.
function sentence(text) {
    gsub(/ +/, " ", text)
    sub(/^ /, "", text)
    if (match(text, /\.( |$)/))
        text = substr(text, 1, RSTART)
    sub(/[ :.]*$/, ".", text)
    gsub(/[*|<]/, "\\\\&", text)
    return text
}

# The text in lines of at most 100 columns.
function wrapped(text,    words, count, i, line, lines) {
    count = split(text, words, " ")
    for (i = 1; i <= count; i++) {
        if (line != "" && length(line) + 1 + length(words[i]) > 100) {
            lines = lines line "\n"
            line = ""
        }
        line = line (line == "" ? "" : " ") words[i]
    }
    return lines line
}

FNR == 1 {
    header = FILENAME
    sub(/.*\/include\//, "", header)
    count = 0
    about = comment = ""
    inside = declaring = 0
}

/SPDX-License-Identifier/ { next }

inside || /^ *\/\*/ {
    line = $0
    if (!inside)
        comment = ""
    inside = line !~ /\*\//
    sub(/ *\*\/ *$/, "", line)
    sub(/^ *\/?\* ?/, "", line)
    if (line ~ /^---- /)
        line = ""
    if (line == "" && comment != "")
        line = "." # a paragraph ends
    comment = comment " " line
    if (!inside && about == "")
        about = comment
    next
}

/^ANNAL_API/ { declaring = 1 }

# A declaration may continue in the next line, and have its comment after it.
declaring && match($0, /annal_[a-z0-9_]+\(/) {
    name = substr($0, RSTART, RLENGTH - 1)
    declaring = 0
    named = 1
}

named && /;/ {
    if (match($0, /\/\* .*/)) {
        comment = substr($0, RSTART + 3)
        sub(/ *\*\/ *$/, "", comment)
    }
    if (comment == "") {
        print header ": " name "() has no comment" | "cat >&2"
        failed = 1
    }
    if (++count == 1)
        printf "\n## `<%s>`\n\n%s\n\n| | |\n| --- | --- |\n", header, wrapped(sentence(about))
    printf "| `%s()` | %s |\n", name, sentence(comment)
    named = 0
    comment = ""
    functions++
    next
}

/^[^ \/]/ && !declaring && !named { comment = "" }

END {
    printf "\n%d functions.\n", functions
    exit failed
}
