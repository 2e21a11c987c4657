# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Packages by CPack (`make packages`): one .deb and one .rpm per component, and a tarball of everything
# that can be unpacked anywhere. The same sources in the same place give the same bits: times come from
# SOURCE_DATE_EPOCH.
set(CPACK_PACKAGE_NAME sealane)
set(CPACK_PACKAGE_VENDOR "The Sealane authors")
set(CPACK_PACKAGE_CONTACT "The Sealane authors <sealane@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each component has its own
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)  # the order of a parallel compressor's blocks is not always the same
set(CPACK_COMPONENTS_ALL program library dev emulator)
if(TARGET sealane-nccl-plugin)
  list(APPEND CPACK_COMPONENTS_ALL nccl)
endif()
# Debian's own Python and PyTorch: for others there is the wheel (tools/wheel.sh).
if(TARGET sealane-torch AND SealaneTorch_PYTHON STREQUAL "/usr/bin/python3" AND EXISTS /etc/debian_version)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/SealanePackagesBy.cmake)

# What packages are made of, and nothing else.
add_custom_target(sealane-packed)
foreach(part sealane-program sealane-preload sealane sealane-emu-all sealane-nccl-plugin sealane-torch
        layer_swap kv_swap decode_loop mini_llm)
  if(TARGET ${part})
    add_dependencies(sealane-packed ${part})
  endif()
endforeach()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_AUTOREQ ON)

# The date of a package is that of the sources.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE SEALANE_DATE
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT SEALANE_DATE)
  set(SEALANE_DATE "Thu, 01 Jan 1970 00:00:00 +0000")
endif()

# name of the package, section, what it is (first line, then more)
function(sealane_package component name section summary description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${summary}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION "${description}" PARENT_SCOPE)
  # What Debian wants of every package: whose it is, and what changed.
  set(documents ${PROJECT_BINARY_DIR}/packaging/${name})
  configure_file(${PROJECT_SOURCE_DIR}/packaging/copyright ${documents}/copyright COPYONLY)
  file(WRITE ${documents}/changelog "${name} (${PROJECT_VERSION}) unstable; urgency=medium

  * See /usr/share/doc/${name}/NEWS.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${SEALANE_DATE}
")
  configure_file(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${documents}/NEWS COPYONLY)
  foreach(text changelog NEWS)
    execute_process(COMMAND gzip -9 -n -c ${documents}/${text} OUTPUT_FILE ${documents}/${text}.gz
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  install(FILES ${documents}/copyright ${documents}/changelog.gz ${documents}/NEWS.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endfunction()

sealane_package(program sealane admin "speed for GPUs in confidential-computing mode"
"The program sealane and the runtime it preloads: copies between CPU and GPU
stay asynchronous and are sealed by all cores.")
sealane_package(library libsealane0 libs "sealed collectives between ranks (library)"
"All-reduce and other collectives whose bytes are encrypted and authenticated
wherever they leave a process.")
sealane_package(dev libsealane-dev libdevel "sealed collectives between ranks (headers)"
"Headers, CMake and pkg-config files of libsealane.")
sealane_package(emulator sealane-emulator admin "emulated confidential GPU for machines without one"
"CUDA's driver and runtime libraries as an emulation of a GPU in
confidential mode, for testing. It protects nothing.")
sealane_package(nccl libnccl-net-sealane libs "sealed network plugin for NCCL"
"What NCCL sends from one machine to another is encrypted and authenticated.")

# The Python package, as Debian wants it: byte code is made when it is installed and goes when it does.
if(python IN_LIST CPACK_COMPONENTS_ALL)
  sealane_package(python python3-sealane python "sealed collectives for PyTorch"
"import sealane.torch adds a backend to torch.distributed whose bytes are
encrypted and authenticated wherever they leave a process.")
  string(REGEX MATCH "cpython-([0-9])([0-9]+)" _ "${SealaneTorch_SUFFIX}")
  set(python_major ${CMAKE_MATCH_1})
  set(python_here ${python_major}.${CMAKE_MATCH_2})
  math(EXPR python_next "${CMAKE_MATCH_2} + 1")
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_here ${SealaneTorch_VERSION})
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "libsealane0 (= ${PROJECT_VERSION}), python3 (>= ${python_here}~), \
python3 (<< ${python_major}.${python_next}), python3-torch (>= ${torch_here}), python3-torch (<< ${torch_here}.99)")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS sealane)  # keygen
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)  # libsealane, named above
  set(package lib/python3/dist-packages/sealane)
  install(TARGETS sealane-torch LIBRARY DESTINATION ${package} COMPONENT python EXCLUDE_FROM_ALL)
  install(CODE "file(RPATH_REMOVE
    FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${package}/_torch${SealaneTorch_SUFFIX}\")"
          COMPONENT python EXCLUDE_FROM_ALL)
  file(GLOB modules CONFIGURE_DEPENDS python/sealane/*.py python/sealane/*.pyi python/sealane/py.typed)
  install(FILES ${modules} ${PROJECT_BINARY_DIR}/python/sealane/_build.py DESTINATION ${package} COMPONENT python
          EXCLUDE_FROM_ALL)
  configure_file(packaging/python3-sealane.postinst packaging/python/postinst COPYONLY FILE_PERMISSIONS
                 OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  configure_file(packaging/python3-sealane.prerm packaging/python/prerm COPYONLY FILE_PERMISSIONS
                 OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/python/postinst
      ${PROJECT_BINARY_DIR}/packaging/python/prerm)
endif()

# Who links libsealane depends on its package; the loader's cache follows what is put into lib.
set(control ${PROJECT_BINARY_DIR}/packaging/control)
file(WRITE ${control}/shlibs "libsealane 0 libsealane0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)
set(CPACK_DEBIAN_NCCL_PACKAGE_CONTROL_EXTRA ${control}/triggers)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libsealane0 (= ${PROJECT_VERSION})")
set(CPACK_RPM_DEV_PACKAGE_REQUIRES "libsealane0 = ${PROJECT_VERSION}")
set(CPACK_DEBIAN_EMULATOR_PACKAGE_RECOMMENDS "sealane, liblz4-1, libzstd1")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS sealane-emulator)

include(CPack)
