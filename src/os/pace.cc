// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/pace.h"

namespace sealane {
namespace {

Pace current;  // written once, before there are threads of ours

}  // namespace

const Pace& pace() { return current; }
void set_pace(const Pace& found) { current = found; }

}  // namespace sealane
