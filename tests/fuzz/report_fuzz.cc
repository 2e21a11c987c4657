// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Results from anywhere: drawn, or refused in one line that names the file; and whatever is in
// them, the page's script stays the page's.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "report/page.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto page =
      report::make_page({{"x.json", std::string(reinterpret_cast<const char*>(data), size)}}, "1");
  if (!page) {
    const std::string& message = page.error().message;
    SEALANE_CHECK(message.starts_with("x.json:"), "an error without its file");
    SEALANE_CHECK(message.find('\n') == std::string::npos, "an error of several lines");
    return 0;
  }
  const size_t begin = page->html.find("id=\"data\">");
  const size_t end = page->html.find('<', begin);
  SEALANE_CHECK(page->html.compare(end, 9, "</script>") == 0, "data that ends its script");
  return 0;
}
