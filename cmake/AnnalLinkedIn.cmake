# SPDX-License-Identifier: Apache-2.0
# For a package of another language: make the target annal, the library of ${root} with what it needs, all linked in.
# LIBANNAL_BUILT takes the library from a build directory instead of building it.
set(LIBANNAL_BUILT "" CACHE PATH "A build directory of the library, whose libannal.a to take")
set(ANNAL_TESTS OFF)
set(ANNAL_COMMAND OFF)
# Of SQLite, zstd, xxHash, libmd and utf8proc the archives: the package depends on the C library alone.
set(suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
if(LIBANNAL_BUILT)
    find_package(PkgConfig REQUIRED)
    find_package(Threads REQUIRED)
    pkg_check_modules(BELOW REQUIRED IMPORTED_TARGET sqlite3 libzstd libmd libutf8proc)
    # That libannal.a was compiled for the shared library, which has more functions.
    set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
    pkg_check_modules(SHARED REQUIRED IMPORTED_TARGET libxxhash)
    add_library(annal INTERFACE)
    target_link_libraries(annal INTERFACE ${LIBANNAL_BUILT}/libannal.a PkgConfig::BELOW PkgConfig::SHARED
        Threads::Threads)
    foreach(module journal index snapshot replay)
        target_include_directories(annal INTERFACE ${root}/${module}/include)
    endforeach()
else()
    add_subdirectory(${root} annal EXCLUDE_FROM_ALL)
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
