// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The build says where the files are.

#include "report/page_assets.h"

// NOLINTBEGIN(hicpp-no-assembler): the assembler reads a file as it is, at any size.
#define SEALANE_ASSET(name, path)                                      \
  asm(".pushsection .rodata\n"                                         \
      ".global sealane_" #name "_begin\n.global sealane_" #name        \
      "_end\n"                                                         \
      "sealane_" #name "_begin:\n.incbin \"" path "\"\nsealane_" #name \
      "_end:\n"                                                        \
      ".popsection\n");                                                \
  extern "C" const char sealane_##name##_begin[];                      \
  extern "C" const char sealane_##name##_end[]

SEALANE_ASSET(page_template, SEALANE_PAGE_DIR "/page.html");
SEALANE_ASSET(page_style, SEALANE_PAGE_DIR "/page.css");
SEALANE_ASSET(page_study, SEALANE_PAGE_DIR "/study.js");
SEALANE_ASSET(page_script, SEALANE_PAGE_DIR "/page.js");
SEALANE_ASSET(page_chart, SEALANE_CHART_JS);
// NOLINTEND(hicpp-no-assembler)

namespace sealane::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view page_template() {
  return between(sealane_page_template_begin, sealane_page_template_end);
}
std::string_view page_style() { return between(sealane_page_style_begin, sealane_page_style_end); }
std::string_view page_study_script() {
  return between(sealane_page_study_begin, sealane_page_study_end);
}
std::string_view page_script() {
  return between(sealane_page_script_begin, sealane_page_script_end);
}
std::string_view page_chart_library() {
  return between(sealane_page_chart_begin, sealane_page_chart_end);
}

}  // namespace sealane::report
