# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch as an interpreter sees it: the target SealaneTorch::SealaneTorch, SealaneTorch_PYTHON and
# SealaneTorch_SUFFIX. -DSEALANE_PYTHON=... chooses the interpreter; else the first python3 that can
# import torch. (Torch's own CMake files want CUDA, protobuf and more than an extension needs.)
set(SEALANE_PYTHON "" CACHE FILEPATH "The interpreter whose PyTorch the adapter is built for")

set(candidates ${SEALANE_PYTHON})
if(NOT candidates)
  find_program(SealaneTorch_python3 python3)
  set(candidates ${SealaneTorch_python3} /usr/bin/python3)
endif()
foreach(candidate IN LISTS candidates)
  execute_process(COMMAND ${candidate} ${CMAKE_CURRENT_LIST_DIR}/find_torch.py
                  OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(SealaneTorch_PYTHON ${candidate})
    break()
  endif()
endforeach()

foreach(name VERSION INCLUDES LIBRARIES CXX11_ABI PYBIND_ABI SUFFIX)
  if(said MATCHES "(^|\n)${name}=([^\n]*)")
    set(SealaneTorch_${name} ${CMAKE_MATCH_2})
  endif()
endforeach()
find_library(SealaneTorch_CPU torch_cpu HINTS ${SealaneTorch_LIBRARIES})
find_library(SealaneTorch_BINDING torch_python HINTS ${SealaneTorch_LIBRARIES})
find_library(SealaneTorch_C10 c10 HINTS ${SealaneTorch_LIBRARIES})
find_path(SealaneTorch_HEADERS torch/csrc/distributed/c10d/Work.hpp HINTS ${SealaneTorch_INCLUDES})
find_path(SealaneTorch_PYBIND pybind11/chrono.h HINTS ${SealaneTorch_INCLUDES})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SealaneTorch
  REQUIRED_VARS SealaneTorch_PYTHON SealaneTorch_CPU SealaneTorch_BINDING SealaneTorch_C10
                SealaneTorch_HEADERS SealaneTorch_PYBIND
  VERSION_VAR SealaneTorch_VERSION)

if(SealaneTorch_FOUND AND NOT TARGET SealaneTorch::SealaneTorch)
  add_library(SealaneTorch::SealaneTorch INTERFACE IMPORTED)
  target_include_directories(SealaneTorch::SealaneTorch SYSTEM INTERFACE ${SealaneTorch_INCLUDES}
                             ${SealaneTorch_PYBIND})
  target_link_libraries(SealaneTorch::SealaneTorch INTERFACE ${SealaneTorch_BINDING}
                        ${SealaneTorch_CPU} ${SealaneTorch_C10})
  # Objects cross between two modules that pybind compiled: both must mean the same by them.
  target_compile_definitions(SealaneTorch::SealaneTorch INTERFACE
    _GLIBCXX_USE_CXX11_ABI=${SealaneTorch_CXX11_ABI} USE_DISTRIBUTED USE_C10D_GLOO
    $<$<BOOL:${SealaneTorch_PYBIND_ABI}>:PYBIND11_BUILD_ABI="${SealaneTorch_PYBIND_ABI}">)
endif()
