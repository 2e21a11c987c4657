# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# sealane_emulated_test(NAME name CC on|off [GPUS n] [TIMEOUT seconds] [ENVIRONMENT var=value...]
#                       COMMAND program [argument...])
#   A test that runs a program on the emulated GPU, as fast as it goes.
function(sealane_emulated_test)
  cmake_parse_arguments(RUN "" "NAME;CC;GPUS;TIMEOUT" "COMMAND;ENVIRONMENT" ${ARGN})
  if(NOT RUN_GPUS)
    set(RUN_GPUS 1)
  endif()
  if(NOT RUN_TIMEOUT)
    set(RUN_TIMEOUT 600)
  endif()
  add_test(NAME ${RUN_NAME} COMMAND ${RUN_COMMAND})
  set_tests_properties(${RUN_NAME} PROPERTIES TIMEOUT ${RUN_TIMEOUT} LABELS emulated ENVIRONMENT
    "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/emu;SEALANE_EMU_CC=${RUN_CC};SEALANE_EMU_GPUS=${RUN_GPUS};${RUN_ENVIRONMENT}")
endfunction()
