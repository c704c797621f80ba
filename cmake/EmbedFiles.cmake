# cmake -DROOT=… -DFILES=… -DOUTPUT=… -P EmbedFiles.cmake: files below ROOT (their names, separated by ;) as the array
# web_files of tools/show/web_files.h. The assembler takes the bytes as they are.
set(declared "")
set(rows "")
set(number 0)
foreach(name IN LISTS FILES)
    file(SHA256 ${ROOT}/${name} hash)
    file(SIZE ${ROOT}/${name} size)
    string(SUBSTRING ${hash} 0 16 hash)
    string(APPEND declared "__asm__(\".pushsection .rodata\\n.balign 16\\n.global web_file_${number}\\n.hidden web_file_${number}\\n\"
        \"web_file_${number}:\\n.incbin \\\"${ROOT}/${name}\\\"\\n.popsection\");\nextern const char web_file_${number}[];\n")
    string(APPEND rows "    {\"${name}\", \"${hash}\", web_file_${number}, ${size}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made at build time of the files in ${ROOT}. */
#include \"tools/show/web_files.h\"

${declared}
const struct web_file web_files[] = {
${rows}    {NULL, NULL, NULL, 0}};
")
