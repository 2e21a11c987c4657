# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# find_package(sealane) gives the target sealane::sealane; pkg-config knows it as sealane.
include(CMakePackageConfigHelpers)

install(TARGETS sealane-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sealane EXPORT sealane-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY platforms DESTINATION ${CMAKE_INSTALL_DATADIR}/sealane)
install(DIRECTORY include/sealane DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sealane-targets NAMESPACE sealane:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sealane)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sealaneConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/sealaneConfig.cmake
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/sealane-targets.cmake\")\n")
install(FILES ${PROJECT_BINARY_DIR}/sealaneConfig.cmake
              ${PROJECT_BINARY_DIR}/sealaneConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sealane)

# Relative to itself, so that the prefix can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(WRITE ${PROJECT_BINARY_DIR}/sealane.pc "prefix=\${pcfiledir}/${up}
Name: sealane
Description: Sealed collectives
Version: ${PROJECT_VERSION}
Cflags: -I\${prefix}${CMAKE_INSTALL_INCLUDEDIR}
Libs: -L\${prefix}${CMAKE_INSTALL_LIBDIR} -lsealane
")
install(FILES ${PROJECT_BINARY_DIR}/sealane.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
