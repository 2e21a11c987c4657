// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/page_assets.h"

#include "report/asset.h"

namespace sealane::report {

// NOLINTBEGIN(hicpp-no-assembler)
SEALANE_ASSET(page_template, SEALANE_PAGE_DIR "/page.html")
SEALANE_ASSET(page_style, SEALANE_PAGE_DIR "/page.css")
SEALANE_ASSET(page_study_script, SEALANE_PAGE_DIR "/study.js")
SEALANE_ASSET(page_script, SEALANE_PAGE_DIR "/page.js")
SEALANE_ASSET(page_chart_library, SEALANE_CHART_JS)
// NOLINTEND(hicpp-no-assembler)

}  // namespace sealane::report
