# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=… -DOUTPUT=… -DSYMBOL=… -P EmbedText.cmake: a text file as a C array with a final NUL; several files
# (separated by ;) as one text, with an empty line between them.
foreach(file IN LISTS INPUT)
    file(READ ${file} bytes HEX)
    list(APPEND texts "${bytes}")
    get_filename_component(name ${file} NAME)
    list(APPEND names ${name})
endforeach()
list(JOIN texts 0a bytes)
list(JOIN names ", " names)
string(REGEX REPLACE "................................" "\\0\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made from ${names} at build time. */\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}0};\n")
