// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An ATen operator whose tensors are on the emulated GPU: it becomes one launch, which runs
// PyTorch's own CPU operator on the device's memory. Safe from any thread.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace sealane::aten {

// Takes the arguments from the stack and puts the results there, as any boxed kernel does.
void compute(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sealane::aten
