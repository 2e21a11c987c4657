// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// 1. What do the results look like? In-place operators give back their arguments; the others are
//    asked of PyTorch's own shape functions, with tensors that have no memory.
// 2. Results are allocated, as the CUDA operator would.
// 3. One launch: the CPU operator on the device's memory, its results copied to where they belong.
// An operator whose results depend on its data (nonzero, a bool) is waited for instead, as CUDA
// operators of that kind wait.

#include "compute.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <memory>
#include <mutex>

#include "arguments.h"

namespace sealane::aten {
namespace {

using c10::IValue;
using Values = std::vector<IValue>;
using BelowAutograd = c10::impl::ExcludeDispatchKeyGuard;

// One operator with everything that is known before it runs.
struct Call {
  const c10::OperatorHandle op;
  const Values given;
  const c10::Device device;
  const c10::Stream stream;
  WaitingArguments waiting;
  std::optional<uint64_t> seed;  // of an operator that draws random numbers

  const c10::FunctionSchema& schema() const { return op.schema(); }
  const char* name() const { return schema().name().c_str(); }
};

c10::Device device_of(const Values& given) {
  std::optional<c10::Device> found;
  for (const IValue& value : given) {
    if (value.isDevice() && value.toDevice().is_cuda()) found = value.toDevice();
    for_each_tensor(value, [&](const at::Tensor& one) {
      if (!found && one.is_cuda()) found = one.device();
    });
  }
  TORCH_CHECK(found, "an operator of the device without a tensor of the device");
  if (found->has_index()) return *found;
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

bool takes_generator(const c10::Argument& argument) {
  return argument.type()->str().rfind("Generator", 0) == 0;
}

// The device's generator moves on as if it had been used by a kernel.
std::optional<uint64_t> draw_seed(const c10::FunctionSchema& schema, const Values& given,
                                  c10::Device device) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (!takes_generator(schema.arguments()[i])) continue;
    at::Generator generator =
        given[i].isNone() ? at::globalContext().defaultGenerator(device) : given[i].toGenerator();
    const std::lock_guard lock(generator.mutex());
    const uint64_t offset = generator.get_offset();
    generator.set_offset(offset + 4);
    uint64_t mixed = generator.current_seed() + 0x9e3779b97f4a7c15ULL * (offset + 1);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return mixed ^ (mixed >> 31);
  }
  return std::nullopt;
}

// The argument a result is, -1: the result is new.
int aliased_argument(const c10::FunctionSchema& schema, size_t result) {
  const c10::AliasInfo* alias = schema.returns()[result].alias_info();
  if (alias == nullptr) return -1;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* other = schema.arguments()[i].alias_info();
    if (other != nullptr && other->beforeSets() == alias->beforeSets()) return static_cast<int>(i);
  }
  return -1;
}

bool needs_shapes(const c10::FunctionSchema& schema) {
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    if (aliased_argument(schema, i) < 0) return true;
  }
  for (const c10::Argument& one : schema.arguments()) {
    if (one.is_out()) return true;
  }
  return false;
}

bool only_tensors(const c10::FunctionSchema& schema) {
  for (const c10::Argument& one : schema.returns()) {
    const std::string type = one.type()->str();
    if (type != "Tensor" && type != "Tensor[]") return false;
  }
  return true;
}

at::Tensor allocate_like(const at::Tensor& shape, c10::Device device) {
  return at::empty_strided(shape.sizes(), shape.strides(), shape.options().device(device));
}

// What PyTorch's shape functions say, nothing if they cannot tell.
std::optional<Values> ask_shapes(const Call& call, Values arguments) {
  try {
    call.op.callBoxed(&arguments);
    return arguments;
  } catch (const std::exception&) {
    return std::nullopt;  // also of a wrong call: the CPU operator says what is wrong with it
  }
}

// An `out=` tensor of another size is made to fit.
void fit_outputs(const Call& call) {
  const Values& shapes = call.waiting.without_memory();
  for (size_t i = 0; i < call.given.size(); ++i) {
    if (!call.schema().arguments()[i].is_out() || !call.given[i].isTensor()) continue;
    const at::Tensor& given = call.given[i].toTensor();
    const at::Tensor& shape = shapes[i].toTensor();
    if (given.sizes() != shape.sizes()) given.resize_(shape.sizes());
  }
}

// The results as the caller gets them, nothing if they are not known before the operator ran.
std::optional<Values> prepare_results(const Call& call) {
  const c10::FunctionSchema& schema = call.schema();
  Values shapes(schema.returns().size());
  if (needs_shapes(schema)) {
    auto asked = ask_shapes(call, call.waiting.without_memory());
    if (!asked) return std::nullopt;
    shapes = std::move(*asked);
    fit_outputs(call);
  }
  Values out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int argument = aliased_argument(schema, i);
    out.push_back(argument >= 0 ? call.given[static_cast<size_t>(argument)]
                                : map_tensors(shapes[i], [&](const at::Tensor& shape) {
                                    return allocate_like(shape, call.device);
                                  }));
  }
  return out;
}

// On the device's thread.
Values run_on(const Device& device, const c10::OperatorHandle& op, const WaitingArguments& waiting,
              std::optional<uint64_t> seed) {
  Values stack = waiting.on(device);
  for (size_t i = 0; seed && i < stack.size(); ++i) {
    if (takes_generator(op.schema().arguments()[i])) {
      stack[i] = at::detail::createCPUGenerator(*seed);
    }
  }
  op.callBoxed(&stack);
  return stack;
}

// Operations of a matrix product; of everything else one for each element of the results.
double count_operations(const Call& call, const Values& results) {
  double elements = 0;
  for (const IValue& value : results) {
    for_each_tensor(value,
                    [&](const at::Tensor& one) { elements += static_cast<double>(one.numel()); });
  }
  for (size_t i = 0; i < call.given.size(); ++i) {
    const std::string& name = call.schema().arguments()[i].name();
    if ((name != "mat2" && name != "batch2") || !call.given[i].isTensor()) continue;
    const at::Tensor& matrix = call.given[i].toTensor();
    if (matrix.dim() >= 2) return 2 * elements * static_cast<double>(matrix.size(-2));
  }
  return elements;
}

void launch_with_results(const Call& call, const Values& results) {
  std::vector<DeviceView> fresh;
  double bytes = call.waiting.bytes();
  for (size_t i = 0; i < results.size(); ++i) {
    if (aliased_argument(call.schema(), i) >= 0) continue;
    for_each_tensor(results[i], [&](const at::Tensor& one) {
      fresh.emplace_back(one);
      bytes += static_cast<double>(fresh.back().bytes());
    });
  }
  const double operations = count_operations(call, results);
  launch(call.stream, call.name(),
         [op = call.op, waiting = call.waiting, seed = call.seed, fresh = std::move(fresh),
          operations, bytes](const Device& device) {
           const BelowAutograd guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
           const Values computed = run_on(device, op, waiting, seed);
           size_t next = 0;
           for (size_t i = 0; i < computed.size(); ++i) {
             if (aliased_argument(op.schema(), i) >= 0) continue;
             for_each_tensor(computed[i],
                             [&](const at::Tensor& one) { fresh[next++].on(device).copy_(one); });
           }
           device.charge(operations, bytes);
         });
}

// A result that is known only now: it is on the device from the beginning, nothing crosses.
at::Tensor place_on_device(const Call& call, const at::Tensor& computed) {
  at::Tensor out = allocate_like(computed, call.device);
  launch(call.stream, call.name(), [view = DeviceView(out), computed](const Device& device) {
    const BelowAutograd guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    view.on(device).copy_(computed);
    device.charge(0, 0);
  });
  return out;
}

Values compute_and_wait(const Call& call) {
  struct Outcome {
    Values values;
    std::exception_ptr failure;
  };
  const auto outcome = std::make_shared<Outcome>();
  launch(call.stream, call.name(),
         [op = call.op, waiting = call.waiting, seed = call.seed, outcome](const Device& device) {
           const BelowAutograd guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
           try {
             outcome->values = run_on(device, op, waiting, seed);
           } catch (...) {
             outcome->failure = std::current_exception();  // the caller's, not the device's
           }
           device.charge(0, 2 * waiting.bytes());
         });
  call.stream.synchronize();
  if (outcome->failure) std::rethrow_exception(outcome->failure);
  Values out;
  for (size_t i = 0; i < outcome->values.size(); ++i) {
    const int argument = aliased_argument(call.schema(), i);
    out.push_back(argument >= 0 ? call.given[static_cast<size_t>(argument)]
                                : map_tensors(outcome->values[i], [&](const at::Tensor& one) {
                                    return place_on_device(call, one);
                                  }));
  }
  return out;
}

}  // namespace

void compute(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const BelowAutograd guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  const size_t count = op.schema().arguments().size();
  Values given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const c10::Device device = device_of(given);
  const c10::DeviceGuard on_device(device);
  const auto seed = draw_seed(op.schema(), given, device);
  WaitingArguments waiting(given);
  const Call call{op,
                  std::move(given),
                  device,
                  c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device),
                  std::move(waiting),
                  seed};
  std::optional<Values> results;
  if (only_tensors(op.schema())) results = prepare_results(call);
  if (results) {
    // fit_outputs() may have moved an argument's memory.
    const Call fitted{call.op,  call.given, call.device, call.stream, WaitingArguments(call.given),
                      call.seed};
    launch_with_results(fitted, *results);
  } else {
    results = compute_and_wait(call);
  }
  torch::jit::drop(*stack, count);
  for (IValue& one : *results) stack->push_back(std::move(one));
}

}  // namespace sealane::aten
