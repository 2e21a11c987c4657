// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sealane/version.h"

#include "sealane_version.h"

namespace sealane {

std::string_view version() { return SEALANE_VERSION; }

}  // namespace sealane
