// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An operator's arguments, seen three ways: as given, as tensors without memory (to find out what
// the results look like), and as host tensors on the device's memory (to compute them).
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

#include "device.h"

namespace sealane::aten {

// A tensor on the device without owning it: its stream orders who uses the memory, as for kernels.
struct DeviceView {
  uint64_t address = 0;
  c10::ScalarType type = c10::ScalarType::Undefined;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  explicit DeviceView(const at::Tensor& tensor);
  size_t bytes() const;  // from the first element to the last
  at::Tensor on(const Device& device) const;
};

// `value` with every tensor in it (also in lists) replaced.
c10::IValue map_tensors(const c10::IValue& value,
                        const std::function<at::Tensor(const at::Tensor&)>& change);

// Every tensor in it.
void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);

// Arguments that wait for their turn on the device.
class WaitingArguments {
 public:
  explicit WaitingArguments(const std::vector<c10::IValue>& given);
  // Tensors of the device without memory; those of the host as they were.
  const std::vector<c10::IValue>& without_memory() const { return values_; }
  std::vector<c10::IValue> on(const Device& device) const;
  double bytes() const;

 private:
  std::vector<c10::IValue> values_;
  std::vector<std::optional<DeviceView>> views_;  // one for each tensor; none: a host tensor
};

}  // namespace sealane::aten
