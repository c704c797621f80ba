# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=… -DFILES=… -DOUTPUT=… -P EmbedFiles.cmake: files below ROOT (their names, separated by ;) as the array
# web_files of tools/show/web_files.h. The assembler includes the bytes unchanged. Files that compress well are embedded
# twice, plain and as gzip; the gzip header, which contains a time, is replaced by a header without a time.
set(gzip_header "31, 139, 8, 0, 0, 0, 0, 0, 2, 3")
set(declared "")
set(rows "")
set(number 0)
foreach(name IN LISTS FILES)
    file(SHA256 ${ROOT}/${name} hash)
    file(SIZE ${ROOT}/${name} size)
    string(SUBSTRING ${hash} 0 16 hash)
    string(APPEND declared "__asm__(\".pushsection .rodata\\n.balign 16\\n.global web_file_${number}\\n.hidden web_file_${number}\\n\"
        \"web_file_${number}:\\n.incbin \\\"${ROOT}/${name}\\\"\\n.popsection\");\nextern const char web_file_${number}[];\n")
    set(zip "NULL, 0")
    if(size GREATER 1023 AND NOT name STREQUAL "share.html")
        set(zip_path ${OUTPUT}.${number}.gz)
        file(ARCHIVE_CREATE OUTPUT ${zip_path} PATHS ${ROOT}/${name} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
        file(SIZE ${zip_path} zip_size)
        string(APPEND declared "__asm__(\".pushsection .rodata\\n.global web_zip_${number}\\n.hidden web_zip_${number}\\n\"
            \"web_zip_${number}:\\n.byte ${gzip_header}\\n.incbin \\\"${zip_path}\\\", 10\\n.popsection\");\nextern const char web_zip_${number}[];\n")
        set(zip "web_zip_${number}, ${zip_size}")
    endif()
    string(APPEND rows "    {\"${name}\", \"${hash}\", web_file_${number}, ${size}, ${zip}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made at build time of the files in ${ROOT}. */
#include \"tools/show/web_files.h\"

${declared}
const struct web_file web_files[] = {
${rows}    {NULL, NULL, NULL, 0, NULL, 0}};
")
