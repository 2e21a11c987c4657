// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A platform as a file: what reader.h reads. Pure, any thread.
#pragma once

#include <string>

#include "platform/platform.h"

namespace sealane {

// Its parameters in the order of the format, each with source and spread; what is read back is
// equal but for the order.
std::string platform_text(const Platform& platform);

}  // namespace sealane
