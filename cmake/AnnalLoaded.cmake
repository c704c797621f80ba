# SPDX-License-Identifier: Apache-2.0
# annal_loaded_library(TARGET NAME PACKAGE HEADERS FUNCTION…)
#
# TARGET loads the library of a pkg-config module itself, when a verb needs it: tools/load/library.h. Its sources include
# <loaded/NAME.h>, which this function writes, in place of HEADERS. A function that is not listed is not found by the linker.
function(annal_loaded_library target name package headers)
    # The name under which the loader knows it.
    list(GET ${package}_LINK_LIBRARIES 0 path)
    execute_process(COMMAND ${CMAKE_READELF} -d ${path} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "\\(SONAME\\)[^[]*\\[([^]]*)\\]" found "${dynamic}")
    set(file ${CMAKE_MATCH_1})
    foreach(header IN LISTS headers)
        string(APPEND includes "#include <${header}>\n")
    endforeach()
    foreach(function IN LISTS ARGN)
        string(APPEND undefined "#undef ${function}\n")
        string(APPEND members "    __typeof__(${function}) *${function};\n")
        string(APPEND calls "#define ${function} loaded_${name}.${function}\n")
        string(APPEND names "    \"${function}\",\n")
    endforeach()
    file(CONFIGURE OUTPUT loaded/${name}.h CONTENT "/* Made from the list in tools/CMakeLists.txt. */
#pragma once

#include \"tools/load/library.h\"

@includes@
/* Some are macros that call the function. */
@undefined@
struct loaded_@name@ {
@members@};

extern struct loaded_@name@ loaded_@name@;
extern struct library library_@name@;

@calls@
" @ONLY)
    file(CONFIGURE OUTPUT loaded/${name}.c CONTENT "/* Made from the list in tools/CMakeLists.txt. */
#include <loaded/@name@.h>

struct loaded_@name@ loaded_@name@;

static const char *const names[] = {
@names@    NULL,
};

struct library library_@name@ = {.file = \"@file@\", .names = names, .table = &loaded_@name@};
" @ONLY)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/loaded/${name}.c)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}
        $<TARGET_PROPERTY:PkgConfig::${package},INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_options(${target} PRIVATE ${${package}_CFLAGS_OTHER})
endfunction()
