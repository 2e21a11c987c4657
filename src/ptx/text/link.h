// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Several texts become one module, as a device linker makes it of objects: what one declares
// another defines, what is local to a text stays its own.
//
// Stateless; may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/text/module.h"

namespace sealane::ptx {

// At least one text. Lines in later errors are those of the text a function came from. What no text
// defines is an error when a kernel that needs it is decoded.
Result<std::shared_ptr<const Module>> link_modules(std::vector<std::string> texts);

}  // namespace sealane::ptx
