// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A file that is put into the program when it is built, at any size and as it is: SEALANE_ASSET
// defines the function that gives its content (by the assembler: tell clang-tidy). Whoever builds
// says where the file is.
#pragma once

#include <cstddef>
#include <string_view>

#define SEALANE_ASSET(name, path)                                                \
  asm(".pushsection .rodata\n"                                                   \
      ".global sealane_" #name "_begin\n.global sealane_" #name                  \
      "_end\n"                                                                   \
      "sealane_" #name "_begin:\n.incbin \"" path "\"\nsealane_" #name           \
      "_end:\n"                                                                  \
      ".popsection\n");                                                          \
  extern "C" const char sealane_##name##_begin[];                                \
  extern "C" const char sealane_##name##_end[];                                  \
  std::string_view name() {                                                      \
    return {sealane_##name##_begin,                                              \
            static_cast<size_t>(sealane_##name##_end - sealane_##name##_begin)}; \
  }
