# cmake -DINPUT=… -DOUTPUT=… -DSYMBOL=… -P EmbedText.cmake: a text file as a C array with a final NUL.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "................................" "\\0\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
get_filename_component(name ${INPUT} NAME)
file(WRITE ${OUTPUT} "/* Made from ${name} at build time. */\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}0};\n")
