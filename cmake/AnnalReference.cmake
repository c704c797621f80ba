# SPDX-License-Identifier: Apache-2.0
# The reference, which Doxygen generates from the public headers: HTML in reference/html, manual pages of functions in
# reference/man3, which are installed. Without Doxygen, nothing is generated.
option(ANNAL_REFERENCE "Make and install manual pages of the functions, if there is Doxygen" ON)

set(reference_dir ${CMAKE_CURRENT_BINARY_DIR}/reference)
find_program(DOXYGEN doxygen)
mark_as_advanced(DOXYGEN)
if(NOT DOXYGEN)
    add_custom_target(reference
        COMMAND ${CMAKE_COMMAND} -E echo "Doxygen is not installed: no reference is made"
        COMMAND ${CMAKE_COMMAND} -E false)
    return()
endif()

set(reference_inputs "")
foreach(directory IN LISTS annal_INCLUDES)
    string(APPEND reference_inputs "\"${directory}\" ")
endforeach()
configure_file(docs/api/Doxyfile.in ${reference_dir}/Doxyfile @ONLY)
file(GLOB_RECURSE reference_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*/include/annal/*.h)
add_custom_command(OUTPUT ${reference_dir}/made
    COMMAND ${DOXYGEN} Doxyfile
    COMMAND ${PROJECT_SOURCE_DIR}/docs/api/man.sh man/man3 man3
    COMMAND ${CMAKE_COMMAND} -E touch made
    WORKING_DIRECTORY ${reference_dir}
    DEPENDS ${reference_headers} ${reference_dir}/Doxyfile
        ${PROJECT_SOURCE_DIR}/docs/api/doxygen.awk ${PROJECT_SOURCE_DIR}/docs/api/man.sh
    COMMENT "Making the reference" VERBATIM)
add_custom_target(reference DEPENDS ${reference_dir}/made)
if(ANNAL_REFERENCE)
    add_custom_target(annal_manual_3 ALL DEPENDS reference)
    install(DIRECTORY ${reference_dir}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
