# SPDX-License-Identifier: Apache-2.0
# make install: libraries, headers, what pkg-config and find_package() read, the man page. The command
# is installed by tools/.
include(CMakePackageConfigHelpers)

install(TARGETS annal annal_shared EXPORT annalTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(include IN LISTS annal_INCLUDES)
    install(DIRECTORY ${include}/annal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
install(FILES docs/annal.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)

# Both kinds of package file find their prefix from where they lie, so a tree can be moved.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/annal)
configure_package_config_file(cmake/annalConfig.cmake.in annalConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(annalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT annalTargets NAMESPACE annal:: DESTINATION ${package_dir})
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/annalConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/annalConfigVersion.cmake
    DESTINATION ${package_dir})

file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/annal.pc.in annal.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/annal.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
