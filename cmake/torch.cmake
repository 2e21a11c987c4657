# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch as an interpreter sees it. (Torch's own CMake files want CUDA, protobuf and more than an
# extension needs.)
#
#   sealane_find_torch(NAME INTERPRETER...)
#
# takes the first interpreter that can import torch and has its headers, 1.13 or newer, and sets
# NAME_FOUND, NAME_PYTHON, NAME_VERSION and NAME_SUFFIX; the target is SealaneTorch::NAME.
function(sealane_find_torch prefix)
  set(${prefix}_FOUND FALSE PARENT_SCOPE)
  foreach(candidate IN LISTS ARGN)
    execute_process(COMMAND ${candidate} ${PROJECT_SOURCE_DIR}/cmake/find_torch.py
                    OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(python ${candidate})
      break()
    endif()
  endforeach()
  if(NOT python)
    return()
  endif()
  foreach(name VERSION INCLUDES LIBRARIES CXX11_ABI PYBIND_ABI SUFFIX)
    if(said MATCHES "(^|\n)${name}=([^\n]*)")
      set(${name} ${CMAKE_MATCH_2})
    endif()
  endforeach()
  find_library(cpu torch_cpu HINTS ${LIBRARIES} NO_CACHE)
  find_library(binding torch_python HINTS ${LIBRARIES} NO_CACHE)
  find_library(c10 c10 HINTS ${LIBRARIES} NO_CACHE)
  find_path(headers torch/csrc/distributed/c10d/Work.hpp HINTS ${INCLUDES} NO_CACHE)
  find_path(pybind pybind11/chrono.h HINTS ${INCLUDES} NO_CACHE)
  if(NOT cpu OR NOT binding OR NOT c10 OR NOT headers OR NOT pybind OR VERSION VERSION_LESS 1.13)
    return()
  endif()

  # The library under the backend has strings in its interface, too.
  if((SEALANE_OLD_ABI AND CXX11_ABI) OR NOT (SEALANE_OLD_ABI OR CXX11_ABI))
    message(STATUS "PyTorch ${VERSION} of ${python} has another C++ ABI than this build: for PyPI's wheels up to 2.6 "
                   "configure one with -DSEALANE_OLD_ABI=ON, for later ones without")
    return()
  endif()

  add_library(SealaneTorch::${prefix} INTERFACE IMPORTED)
  target_include_directories(SealaneTorch::${prefix} SYSTEM INTERFACE ${INCLUDES} ${pybind})
  target_link_libraries(SealaneTorch::${prefix} INTERFACE ${binding} ${cpu} ${c10})
  # Objects cross between two modules that pybind compiled: both must mean the same by them.
  target_compile_definitions(SealaneTorch::${prefix} INTERFACE
    _GLIBCXX_USE_CXX11_ABI=${CXX11_ABI} USE_DISTRIBUTED USE_C10D_GLOO
    SEALANE_TORCH_VERSION="${VERSION}"
    $<$<BOOL:${PYBIND_ABI}>:PYBIND11_BUILD_ABI="${PYBIND_ABI}">)
  file(STRINGS ${headers}/torch/csrc/distributed/c10d/Work.hpp numbers REGEX "virtual uint64_t getSequencenumber")
  if(numbers)
    target_compile_definitions(SealaneTorch::${prefix} INTERFACE SEALANE_TORCH_NUMBERS_WORK)
  endif()
  set(${prefix}_FOUND TRUE PARENT_SCOPE)
  set(${prefix}_PYTHON ${python} PARENT_SCOPE)
  set(${prefix}_VERSION ${VERSION} PARENT_SCOPE)
  set(${prefix}_SUFFIX ${SUFFIX} PARENT_SCOPE)
endfunction()
