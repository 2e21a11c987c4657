// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of PyTorch's CUDA operators are computed by us: those that launch kernels and that the CPU
// has, too. Allocation, views and copies stay PyTorch's own: they are what is looked at here.

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/ops/copy_compositeexplicitautograd_dispatch.h>
#include <torch/library.h>

#include <array>
#include <string_view>

#include "compute.h"
#include "device.h"
#include "host_cpu.h"

namespace sealane::aten {
namespace {

// Registered for CUDA, but no kernel behind them, or one that only copies.
bool is_kept(std::string_view name) {
  constexpr std::array kKept = {
      "aten::copy_",         "aten::_local_scalar_dense", "aten::record_stream",
      "aten::resize_",       "aten::_resize_output_",     "aten::set_",
      "aten::is_set_to",     "aten::is_pinned",           "aten::_pin_memory",
      "aten::empty",         "aten::empty_strided",       "aten::_efficientzerotensor",
      "aten::native_dropout"};
  for (const char* one : kKept) {
    if (name == one) return true;
  }
  return name.rfind("aten::_cudnn", 0) == 0 || name.rfind("aten::cudnn", 0) == 0;
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& one : schema.returns()) {
    if (one.alias_info() != nullptr && !one.alias_info()->isWrite()) return true;
  }
  return false;
}

bool is_ours(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.rfind("aten::", 0) == 0 && !is_kept(name) && !returns_view(op.schema()) &&
         op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Whether CUDA would move it by a plain copy.
bool is_plain_copy(const at::Tensor& to, const at::Tensor& from) {
  return to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes() &&
         to.strides() == from.strides() && to.is_non_overlapping_and_dense();
}

void compute_copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  torch::jit::Stack stack{to, from, non_blocking};
  compute(op, {}, &stack);
}

// Copies that are kernels are computed; all others are PyTorch's. Between devices strides and types
// are changed on either side, never across.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (to.numel() == 0) return to;
  const bool both = to.is_cuda() && from.is_cuda();
  if (!both || is_plain_copy(to, from)) {
    return at::compositeexplicitautograd::copy_(to, from, non_blocking);
  }
  if (to.device() == from.device()) {
    compute_copy(to, from, non_blocking);
    return to;
  }
  const at::Tensor sent = from.to(to.scalar_type()).expand_as(to).contiguous();
  at::Tensor arrived = to.is_contiguous() ? to : at::empty_like(to, at::MemoryFormat::Contiguous);
  at::compositeexplicitautograd::copy_(arrived, sent, non_blocking);
  if (!arrived.is_same(to)) compute_copy(to, arrived, non_blocking);
  return to;
}

// The CPU's would draw from the generator of the program's CPU tensors.
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p,
                                           std::optional<bool> train) {
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const at::Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  return {input.mul(mask).mul(p < 1 ? 1 / (1 - p) : 0), mask};
}

// PyTorch says once that somebody took an operator over; that is what is meant here.
class Silence : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

int64_t take_over() {
  TORCH_CHECK(device_is_emulated(), "this is not the emulated GPU");
  avoid_matrix_unit_without_tiles();
  static Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  auto& library =
      *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  int64_t taken = 0;
  for (const auto& name : dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA)) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !is_ours(*op)) continue;
    library.impl(c10::toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&compute>());
    ++taken;
  }
  library.impl("copy_", copy);
  library.impl("native_dropout", dropout);
  // Attention and convolutions that exist as machine code only are not chosen.
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setSDPUseMemEfficient(false);
  at::globalContext().setSDPUseCuDNN(false);
  at::globalContext().setUserEnabledCuDNN(false);
  return taken;
}

}  // namespace

TORCH_LIBRARY(sealane_emulated, library) { library.def("take_over() -> int", take_over); }

}  // namespace sealane::aten
