// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <iostream>

#include "sealane/sealing.h"
#include "sealane/version.h"

int main() {
  const sealane::SealingInfo info = sealane::sealing_info();
  std::cout << sealane::version() << " " << info.engine << " " << info.problem << "\n";
  return info.usable ? 0 : 1;
}
