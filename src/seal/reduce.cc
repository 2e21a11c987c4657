// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The bodies of element_vectors.h, inlined into one function per instruction set; which of them
// runs is decided once, by asking the CPU.

#include "seal/reduce.h"

#include <cstring>

#include "base/check.h"
#include "base/cpu.h"
#include "seal/element_vectors.h"

namespace sealane {
namespace {

using namespace element_vectors;

using Kernel = ReduceKernel;

template <typename Body>
void on_any_cpu(const uint8_t* first, const uint8_t* second, uint8_t* out, size_t bytes) {
  Body::run(first, second, out, bytes);
}
#if defined(__x86_64__)
template <typename Body>
[[gnu::target("avx2")]] void on_avx2(const uint8_t* first, const uint8_t* second, uint8_t* out,
                                     size_t bytes) {
  Body::run(first, second, out, bytes);
}
template <typename Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void on_avx512(const uint8_t* first,
                                                                     const uint8_t* second,
                                                                     uint8_t* out, size_t bytes) {
  Body::run(first, second, out, bytes);
}

enum class InstructionSet { any, avx2, avx512 };

InstructionSet instruction_set() {
  static const InstructionSet best = [] {
    if (cpu_has(CpuFeature::avx512)) return InstructionSet::avx512;
    return cpu_has(CpuFeature::avx2) ? InstructionSet::avx2 : InstructionSet::any;
  }();
  return best;
}
#endif

template <typename Body>
Kernel dispatch() {
#if defined(__x86_64__)
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return on_avx512<Body>;
    case InstructionSet::avx2:
      return on_avx2<Body>;
    case InstructionSet::any:
      break;
  }
#endif
  return on_any_cpu<Body>;
}

// Signed integers are added as unsigned ones: they wrap instead of being undefined.
template <typename Summed, typename Compared = Summed>
Kernel kernel_of(ReduceOperator op) {
  switch (op) {
    case ReduceOperator::min:
      return dispatch<Combine<Compared, Min>>();
    case ReduceOperator::max:
      return dispatch<Combine<Compared, Max>>();
    default:
      return dispatch<Combine<Summed, Sum>>();
  }
}

Kernel kernel_of(ElementType type, ReduceOperator op) {
  switch (type) {
    case ElementType::float32:
      return kernel_of<Native<float>>(op);
    case ElementType::float64:
      return kernel_of<Native<double>>(op);
    case ElementType::float16:
      return kernel_of<HalfFloat>(op);
    case ElementType::bfloat16:
      return kernel_of<BrainFloat>(op);
    case ElementType::int32:
      return kernel_of<Native<uint32_t>, Native<int32_t>>(op);
    case ElementType::int64:
      return kernel_of<Native<uint64_t>, Native<int64_t>>(op);
    default:
      return kernel_of<Native<uint8_t>>(op);
  }
}

// Division runs once per element of a whole collective; the compiler's own vectors will do.
template <typename Format>
void divide_all(MutableBytes data, uint32_t count) {
  using Scalar = typename Format::Scalar;
  const auto divisor = static_cast<Scalar>(count);
  typename Format::Lanes lanes;
  const auto step = [&](uint8_t* at) {
    Format::load(lanes, at);
    for (size_t i = 0; i < sizeof lanes / sizeof(Scalar); ++i) lanes[i] = lanes[i] / divisor;
    Format::store(at, lanes);
  };
  size_t at = 0;
  for (; at + Format::kStep <= data.size(); at += Format::kStep) step(data.data() + at);
  if (at == data.size()) return;
  uint8_t rest[Format::kStep] = {};
  std::memcpy(rest, data.data() + at, data.size() - at);
  step(rest);
  std::memcpy(data.data() + at, rest, data.size() - at);
}

}  // namespace

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::float64:
    case ElementType::int64:
      return 8;
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::uint8:
      return 1;
    case ElementType::none:
      break;
  }
  SEALANE_CHECK(false, "element type none has no size");
  return 0;
}

ReduceKernel reduce_kernel(ElementType type, ReduceOperator op) {
  SEALANE_CHECK(type != ElementType::none && op != ReduceOperator::none, "nothing to compute");
  return kernel_of(type, op);
}

void reduce(ElementType type, ReduceOperator op, Bytes first, Bytes second, MutableBytes out) {
  SEALANE_CHECK(first.size() == second.size() && first.size() == out.size(), "sizes differ");
  reduce_kernel(type, op)(first.data(), second.data(), out.data(), out.size());
}

void divide(ElementType type, MutableBytes data, uint32_t count) {
  SEALANE_CHECK(count > 0, "average of nothing");
  switch (type) {
    case ElementType::float32:
      return divide_all<Native<float>>(data, count);
    case ElementType::float64:
      return divide_all<Native<double>>(data, count);
    case ElementType::float16:
      return divide_all<HalfFloat>(data, count);
    case ElementType::bfloat16:
      return divide_all<BrainFloat>(data, count);
    case ElementType::int32:
      return divide_all<Native<int32_t>>(data, count);
    case ElementType::int64:
      return divide_all<Native<int64_t>>(data, count);
    default:
      // A count above 255 cannot be a uint8 divisor, and no uint8 sum can reach it.
      return count <= 255 ? divide_all<Native<uint8_t>>(data, count)
                          : static_cast<void>(std::memset(data.data(), 0, data.size()));
  }
}

}  // namespace sealane
