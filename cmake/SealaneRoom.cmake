# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# sealane_room(NAME [DEPENDS room...] [LINK target...] [APART regex])
#   A room is its folder: every x.cc below it belongs to the static library sealane-NAME, every
#   x_test.cc to the test program NAME_test. DEPENDS names the rooms it may include from. Files that
#   match APART belong to a library of their own, because they link what the rest must not; it is
#   named by sealane_part, and the test program needs it.
#
# sealane_part(NAME OF room [DEPENDS part...] [LINK target...])
#   The library sealane-NAME: what the room left APART.

add_library(sealane-flags INTERFACE)
# No path of the machine that built it in what ships, so that builds in two places are the same bits.
target_compile_options(sealane-flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(NOT SEALANE_BUILD_TESTS)  # what ships
  target_compile_options(sealane-flags INTERFACE -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
endif()
target_compile_options(sealane-flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                       $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# Nothing is bound at its first call: the loader would save all registers on the stack then, key bytes in them too.
target_link_options(sealane-flags INTERFACE -Wl,-z,relro -Wl,-z,now)
target_include_directories(sealane-flags INTERFACE ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)

function(sealane_room name)
  cmake_parse_arguments(ROOM "" "APART" "DEPENDS;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cc")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")  # main.cc belongs to a program
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(ROOM_APART)
    set(apart ${sources})
    list(FILTER apart INCLUDE REGEX "${ROOM_APART}")
    list(FILTER sources EXCLUDE REGEX "${ROOM_APART}")
    set_property(GLOBAL PROPERTY sealane_apart_${name} ${apart})
  endif()

  add_library(sealane-${name} STATIC ${sources})
  target_link_libraries(sealane-${name} PUBLIC sealane-flags ${ROOM_LINK})
  foreach(room IN LISTS ROOM_DEPENDS)
    target_link_libraries(sealane-${name} PUBLIC sealane-${room})
  endforeach()
  if(SEALANE_BUILD_TESTS AND tests)
    sealane_test(${name}_test SOURCES ${tests} LINK sealane-${name})
  endif()
endfunction()

function(sealane_part name)
  cmake_parse_arguments(PART "" "OF" "DEPENDS;LINK" ${ARGN})
  get_property(sources GLOBAL PROPERTY sealane_apart_${PART_OF})
  add_library(sealane-${name} STATIC ${sources})
  target_link_libraries(sealane-${name} PUBLIC sealane-${PART_OF} ${PART_LINK})
  foreach(part IN LISTS PART_DEPENDS)
    target_link_libraries(sealane-${name} PUBLIC sealane-${part})
  endforeach()
  if(TARGET ${PART_OF}_test)
    target_link_libraries(${PART_OF}_test PRIVATE sealane-${name})
  endif()
endfunction()

# Tests are compiled once and run once: GoogleTest and RapidCheck are parsed for all of them together,
# and optimising for longer than the test runs buys nothing.
function(sealane_test_headers)
  if(TARGET sealane-test-headers)
    return()
  endif()
  # A program, because the headers must be compiled with the flags of the programs that use them.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_headers.cc CONTENT "int main() {}\n")
  add_executable(sealane-test-headers EXCLUDE_FROM_ALL
                 ${PROJECT_BINARY_DIR}/generated/test_headers.cc)
  set_target_properties(sealane-test-headers PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(sealane-test-headers PRIVATE sealane-flags GTest::gtest rapidcheck
                        Threads::Threads)
  target_compile_options(sealane-test-headers PRIVATE -O1)
  target_precompile_headers(sealane-test-headers PRIVATE <gtest/gtest.h> <rapidcheck/gtest.h>)
endfunction()

# sealane_test_program(NAME SOURCES... [LINK target...]): a program of tests, and nobody who runs it.
function(sealane_test_program name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINK" ${ARGN})
  sealane_test_headers()
  add_executable(${name} ${TEST_SOURCES})
  # Files of tests are compiled one by one: their helpers have short names, and many the same.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_compile_options(${name} PRIVATE -O1)
  target_link_libraries(${name} PRIVATE ${TEST_LINK} GTest::gtest_main rapidcheck Threads::Threads)
  target_precompile_headers(${name} REUSE_FROM sealane-test-headers)
endfunction()

# sealane_test(NAME SOURCES... [LINK target...] [LABELS...] [TIMEOUT seconds]): and each test in CTest.
function(sealane_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  sealane_test_program(${name} SOURCES ${TEST_SOURCES} LINK ${TEST_LINK})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
endfunction()
