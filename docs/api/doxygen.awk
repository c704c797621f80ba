# SPDX-License-Identifier: Apache-2.0
# A public header as Doxygen reads it: the comments of the headers are plain ones, for people.
#
# A comment before a declaration belongs to it, and so does one behind it on the same line. The first comment is about the
# file. Blocks that are indented are code; lines that begin with a status are what a function returns.
function text(line) {
    gsub(/[\\@<>&#%$]/, "\\\\&", line)
    return line
}

# One line of a comment, without its frame.
function body(line) {
    if (code ? line ~ /^    |^$/ : blank && line ~ /^    /) {
        if (!code)
            print "@code{.c}"
        code = 1
        print line
        return
    }
    if (code)
        print "@endcode"
    code = 0
    blank = line == ""
    if (match(line, /^ *ANNAL_[A-Z_]+  +/)) {
        status = substr(line, 1, RLENGTH)
        gsub(/ /, "", status)
        line = "@retval " status " " text(substr(line, RLENGTH + 1))
        returns = 1
    } else {
        returns = returns && line ~ /^ /
        if (returns)
            sub(/^ +/, "", line)
        if (returns && match(line, /^[a-z ]*[a-z]   +/)) { # "any other failure   refused"
            print ""
            sub(/   +/, " is ", line)
        }
        if (match(line, /^ +<annal\/[^>]*> +/)) { # a list of headers
            sub(/^ +</, "- ", line)
            sub(/> +/, ": ", line)
        }
        line = text(line)
    }
    print line
}

function end() {
    if (code)
        print "@endcode"
    code = returns = 0
    print "*/"
    inside = 0
}

/SPDX-License-Identifier/ { next }

inside {
    last = sub(/ *\*\/ *$/, "")
    sub(/^ *\* ?/, "")
    body($0)
    if (last)
        end()
    next
}

/^ *\/\* ----/ { next }

/^ *\/\*/ {
    one = sub(/ *\*\/ *$/, "")
    sub(/^ *\/\* */, "")
    print first++ ? "/**" : FILENAME ~ /annal\/annal\.h$/ ? "/** @mainpage Annal\n" : "/** @file"
    if ($0 != "")
        body($0)
    inside = 1
    blank = 0
    if (one)
        end()
    next
}

# Behind a declaration: on this line, or going on below it.
match($0, /[^ ] *\/\* /) && !/\/\* for "/ {
    at = index($0, "/* ")
    behind = substr($0, at + 3)
    whole = sub(/ *\*\/ *$/, "", behind)
    print substr($0, 1, at - 1) "/**< " text(behind)
    if (whole)
        print "*/"
    inside = !whole
    next
}

{ print }
