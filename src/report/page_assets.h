// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page that are files of their own, put into the program when it is built.
#pragma once

#include <string_view>

namespace sealane::report {

std::string_view page_template();
std::string_view page_style();
std::string_view page_study_script();
std::string_view page_script();
std::string_view page_chart_library();

}  // namespace sealane::report
