# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What is installed, by component (cmake/SealanePackages.cmake makes a package of each):
#   program   sealane, the preload, platform files      library   libsealane.so.0
#   dev       headers, CMake and pkg-config files       emulator  the emulated GPU and examples for it
#   nccl      the network plugin                        python    the PyTorch backend, where it is built for Debian's
# find_package(sealane) gives the target sealane::sealane; pkg-config knows it as sealane.
include(CMakePackageConfigHelpers)

install(TARGETS sealane-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY platforms DESTINATION ${CMAKE_INSTALL_DATADIR}/sealane COMPONENT program)
install(TARGETS sealane EXPORT sealane-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT library NAMELINK_COMPONENT dev)
install(DIRECTORY include/sealane DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(EXPORT sealane-targets NAMESPACE sealane:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sealane
        COMPONENT dev)
# Man pages and completions, as the program itself tells them.
install(CODE "execute_process(COMMAND $<TARGET_FILE:sealane-program> help --write
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\" COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/man/man1/sealane*.1\")
  execute_process(COMMAND gzip -9 -n -f \${pages} COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT program)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sealaneConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/sealaneConfig.cmake
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/sealane-targets.cmake\")\n")
install(FILES ${PROJECT_BINARY_DIR}/sealaneConfig.cmake
              ${PROJECT_BINARY_DIR}/sealaneConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sealane COMPONENT dev)

# Relative to itself, so that the prefix can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(WRITE ${PROJECT_BINARY_DIR}/sealane.pc "prefix=\${pcfiledir}/${up}
Name: sealane
Description: Sealed collectives
Version: ${PROJECT_VERSION}
Cflags: -I\${prefix}${CMAKE_INSTALL_INCLUDEDIR}
Libs: -L\${prefix}${CMAKE_INSTALL_LIBDIR} -lsealane
")
install(FILES ${PROJECT_BINARY_DIR}/sealane.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT dev)
