// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <iostream>

#include "sealane/comm.h"
#include "sealane/sealing.h"
#include "sealane/version.h"

int main() {
  const sealane::SealingInfo info = sealane::sealing_info();
  std::cout << sealane::version() << " " << info.engine << " " << info.problem << "\n";
  if (!info.usable) return 1;

  sealane::CommOptions alone;
  alone.rank = 0;
  alone.size = 1;
  sealane::Comm comm(alone);
  float values[] = {1, 2, 3};
  comm.all_reduce(values, values, 3, sealane::DataType::float32, sealane::ReduceOp::avg);
  return values[2] == 3 ? 0 : 1;
}
