# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# SEALANE_SANITIZE applies to every target, so that no object is left uninstrumented. -O1, because at
# -O2 instrumented code takes half as long again to compile.
if(SEALANE_SANITIZE STREQUAL "fuzzer")
  add_compile_options(-O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(SEALANE_SANITIZE)
  add_compile_options(-O1 -fsanitize=${SEALANE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SEALANE_SANITIZE})
  # What a program must have before our preload: both define functions of libc.
  set(sanitizer_library libasan.so)
  if(SEALANE_SANITIZE MATCHES "thread")
    set(sanitizer_library libtsan.so)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${sanitizer_library}
                  OUTPUT_VARIABLE SEALANE_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
