// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "arguments.h"

#include <ATen/ATen.h>

namespace sealane::aten {

DeviceView::DeviceView(const at::Tensor& tensor)
    : address(reinterpret_cast<uint64_t>(tensor.data_ptr())),
      type(tensor.scalar_type()),
      sizes(tensor.sizes().vec()),
      strides(tensor.strides().vec()) {}

size_t DeviceView::bytes() const {
  size_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += static_cast<size_t>(sizes[i] - 1) * static_cast<size_t>(strides[i]);
  }
  return (last + 1) * c10::elementSize(type);
}

at::Tensor DeviceView::on(const Device& device) const {
  const size_t span = bytes();
  void* memory = span > 0 ? device.memory(address, span) : nullptr;
  return at::from_blob(memory, sizes, strides, at::TensorOptions().dtype(type));
}

c10::IValue map_tensors(const c10::IValue& value,
                        const std::function<at::Tensor(const at::Tensor&)>& change) {
  const auto changed = [&](const at::Tensor& one) { return one.defined() ? change(one) : one; };
  if (value.isTensor()) return changed(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& one : value.toTensorVector()) out.push_back(changed(one));
    return out;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector()) {
      out.push_back(one ? std::optional(changed(*one)) : std::nullopt);
    }
    return out;
  }
  return value;
}

void for_each_tensor(const c10::IValue& value,
                     const std::function<void(const at::Tensor&)>& visit) {
  map_tensors(value, [&](const at::Tensor& one) {
    visit(one);
    return one;
  });
}

WaitingArguments::WaitingArguments(const std::vector<c10::IValue>& given) {
  for (const c10::IValue& value : given) {
    if (value.isDevice()) {
      values_.emplace_back(c10::Device(c10::kMeta));
      continue;
    }
    values_.push_back(map_tensors(value, [&](const at::Tensor& one) {
      if (one.is_cuda()) {
        views_.emplace_back(DeviceView(one));
        return at::empty_strided(one.sizes(), one.strides(), one.options().device(c10::kMeta));
      }
      // Its owner may change it while it waits: operators take such tensors by value.
      views_.emplace_back(std::nullopt);
      return one.is_cpu() ? one.clone() : one;
    }));
  }
}

std::vector<c10::IValue> WaitingArguments::on(const Device& device) const {
  std::vector<c10::IValue> out;
  size_t next = 0;
  for (const c10::IValue& value : values_) {
    if (value.isDevice()) {
      out.emplace_back(c10::Device(c10::kCPU));
      continue;
    }
    out.push_back(map_tensors(value, [&](const at::Tensor& one) {
      const auto& view = views_[next++];
      return view ? view->on(device) : one;
    }));
  }
  return out;
}

double WaitingArguments::bytes() const {
  double sum = 0;
  for (const auto& one : views_) sum += one ? static_cast<double>(one->bytes()) : 0;
  return sum;
}

}  // namespace sealane::aten
