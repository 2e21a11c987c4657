// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// The call that another rank says it waits in: nothing crashes, whatever is accepted can be put
// into words, and comes out of its own encoding as the same call.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "comm/call.h"

using namespace sealane;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto call = Call::decode(Bytes(data, size));
  if (!call) return 0;
  SEALANE_CHECK(Call::decode(call->encode()) == call, "a call changed on its way");
  const Call own{1, Collective::barrier, ElementType::none, ReduceOperator::none, 0, 0};
  SEALANE_CHECK(differ(*call, own).find(call->describe()) != std::string::npos,
                "a call that differs is not named");
  return 0;
}
