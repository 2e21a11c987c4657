// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which Sealane this is.
#pragma once

#include <string_view>

#include "sealane/export.h"

namespace sealane {

// "0.1.0": the version of the library that was loaded.
SEALANE_API std::string_view version();

}  // namespace sealane
