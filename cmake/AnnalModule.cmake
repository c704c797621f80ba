# SPDX-License-Identifier: Apache-2.0
# The functions that every folder's CMakeLists.txt uses.

# Warnings and sanitizers, for all targets.
set(ANNAL_SANITIZE "" CACHE STRING "Sanitizers to build with, for instance address,undefined")
add_library(annal_flags INTERFACE)
target_compile_features(annal_flags INTERFACE c_std_11)
target_compile_definitions(annal_flags INTERFACE _GNU_SOURCE)
target_compile_options(annal_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wformat=2 -fno-common)
if(CMAKE_COMPILE_WARNING_AS_ERROR AND CMAKE_VERSION VERSION_LESS 3.24) # later ones know the variable
    target_compile_options(annal_flags INTERFACE -Werror)
endif()
if(ANNAL_SANITIZE)
    target_compile_options(annal_flags INTERFACE
        -fsanitize=${ANNAL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(annal_flags INTERFACE -fsanitize=${ANNAL_SANITIZE})
    # The data of UndefinedBehaviorSanitizer is 12 MB of pointers, which a program at no fixed address relocates at
    # each start: 10 ms and 3,000 page faults.
    if(NOT ANNAL_SANITIZE MATCHES thread)
        target_link_options(annal_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
endif()
option(ANNAL_FUZZ "Build the fuzzers with libFuzzer (clang)" OFF)
if(ANNAL_FUZZ)
    target_compile_options(annal_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# annal_module(NAME SOURCES a.c … USES other-module … LIBS target … SQL x.sql …)
#
# One folder of the library, as an object library. It sees its own headers, journal/base, and the
# public headers of what it USES; nothing else is on its include path. Each SQL file becomes the string
# constant annal__sql_<name> (declared by its users).
function(annal_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;LIBS;SQL")
    foreach(sql IN LISTS arg_SQL)
        get_filename_component(stem ${sql} NAME_WE)
        annal_embed_sql(${stem} embedded ${sql})
        list(APPEND arg_SOURCES ${embedded})
    endforeach()
    add_library(${name} OBJECT ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_include_directories(${name}
        PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include
        PRIVATE ${PROJECT_SOURCE_DIR})
    foreach(used IN LISTS arg_USES)
        target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/${used}/include)
    endforeach()
    target_link_libraries(${name} PRIVATE annal_flags ${arg_LIBS})
    set_property(GLOBAL APPEND PROPERTY ANNAL_LIBS ${arg_LIBS})
endfunction()

# annal_embed_sql(NAME OUT FILE…): a C file with the text of these files as the string constant annal__sql_NAME; OUT
# is set to its path.
function(annal_embed_sql name out)
    string(MAKE_C_IDENTIFIER ${name} symbol)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.sql.c)
    set(files)
    foreach(file IN LISTS ARGN)
        get_filename_component(file ${file} ABSOLUTE)
        list(APPEND files ${file})
    endforeach()
    add_custom_command(
        OUTPUT ${c_file}
        COMMAND ${CMAKE_COMMAND} "-DINPUT=${files}" -DOUTPUT=${c_file} -DSYMBOL=annal__sql_${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()

# annal_library(NAME MODULES …): libNAME.a (target NAME) and libNAME.so (target NAME_shared).
# Users of the installed static library must link the libraries below it; the shared library links them itself.
function(annal_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "MODULES")
    get_property(libs GLOBAL PROPERTY ANNAL_LIBS)
    list(REMOVE_DUPLICATES libs)
    foreach(module IN LISTS arg_MODULES)
        list(APPEND objects $<TARGET_OBJECTS:${module}>)
        list(APPEND includes ${PROJECT_SOURCE_DIR}/${module}/include)
    endforeach()
    add_library(${name} STATIC ${objects})
    add_library(${name}_shared SHARED ${objects})
    # docs/versions.md: before 1.0 each minor version is an ABI of its own.
    set(so_version ${PROJECT_VERSION_MAJOR})
    if(so_version EQUAL 0)
        set(so_version 0.${PROJECT_VERSION_MINOR})
    endif()
    set_target_properties(${name}_shared PROPERTIES
        OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${so_version})
    target_link_libraries(${name}_shared PRIVATE annal_flags)
    foreach(target ${name} ${name}_shared)
        target_link_libraries(${target} PRIVATE ${libs} Threads::Threads)
        foreach(include IN LISTS includes)
            target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${include}>)
        endforeach()
    endforeach()
    set(${name}_INCLUDES ${includes} PARENT_SCOPE)
endfunction()
