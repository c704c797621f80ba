# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=… -DOUTPUT=… -P EmbedHelp.cmake: help texts of verbs as OUTPUT.h and OUTPUT.c. A file <verb>.txt has a line
# with its license, the text, an empty line, and the examples after a line "examples:". HELP(verb) sets both members of a
# struct command; COMMAND(word, what, verb, operands, function) also sets name, summary, fields and run.
set(license_end "0a,")
set(examples_begin "0a,0a,65,78,61,6d,70,6c,65,73,3a,0a,") # "\n\nexamples:\n"
string(LENGTH ${examples_begin} examples_begin_length)
set(declared "")
set(texts "")
foreach(file IN LISTS INPUT)
    get_filename_component(verb ${file} NAME_WE)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "\\1," bytes "${bytes}")
    string(FIND "${bytes}" ${license_end} begin)
    string(FIND "${bytes}" ${examples_begin} end)
    if(begin LESS 0 OR end LESS 0)
        message(FATAL_ERROR "${file} has no line with its license, or no line \"examples:\"")
    endif()
    math(EXPR begin "${begin} + 3")
    math(EXPR length "${end} - ${begin}")
    math(EXPR examples "${end} + ${examples_begin_length}")
    string(SUBSTRING "${bytes}" ${begin} ${length} about)
    string(SUBSTRING "${bytes}" ${examples} -1 examples)
    string(APPEND declared "extern const char help_${verb}_about[], help_${verb}_examples[];\n")
    foreach(part IN ITEMS about examples)
        string(REGEX REPLACE "([0-9a-f][0-9a-f])," "'\\\\x\\1'," ${part} "${${part}}")
        string(APPEND texts "const char help_${verb}_${part}[] = {${${part}}0};\n")
    endforeach()
endforeach()
file(WRITE ${OUTPUT}.h "/* Made at build time of the files in tools/help. */
#define HELP(verb) .about = help_##verb##_about, .examples = help_##verb##_examples
#define COMMAND(word, what, help, operands, function) .name = word, .summary = what, HELP(help), .fields = operands, .run = function
${declared}")
file(WRITE ${OUTPUT}.c "#include \"${OUTPUT}.h\"\n${texts}")
