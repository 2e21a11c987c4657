// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which copy is this? Copies of a range between host and device are offered to the runtime; every
// other shape is counted and passed.

#include <algorithm>
#include <cstring>

#include "asked.h"
#include "attach.h"
#include "hooks.h"
#include "serve/memory.h"

using namespace sealane::preload;
namespace serve = sealane::serve;
using sealane::Direction;
using sealane::SteadyClock;

namespace sealane::preload {

Asked by_pointers(serve::Runtime& runtime, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const bool to_device = runtime.device_memory().find(to).has_value();
  const bool from_device = runtime.device_memory().find(from).has_value();
  const bool unknown = !to_device && !from_device;  // from a pool to the host, it may be
  if (to_device == from_device) {
    return {std::nullopt, 0, unknown ? reinterpret_cast<void*>(to) : nullptr, bytes, false};
  }
  if (to_device) return {Direction::to_device, to, reinterpret_cast<void*>(from), bytes};
  return {Direction::to_host, from, reinterpret_cast<void*>(to), bytes};
}

namespace {

bool is_delivered(const Asked& one) {
  return one.direction ? one.whole && *one.direction == Direction::to_host : one.host != nullptr;
}

}  // namespace

void wipe_forged(std::span<const Asked> copies) {
  for (const Asked& one : copies) {
    // Another copy may have failed meanwhile, and the address be none, or a device's.
    if (is_delivered(one) && serve::is_usable(one.host, one.bytes, serve::Access::write)) {
      std::memset(one.host, 0, one.bytes);
    }
  }
}

// The driver is asked, and not whether an opening was refused during the call: it may open where
// nobody sees it. While something is captured the question could break the capture.
CUresult forged_before(const serve::Runtime& runtime, serve::StreamHandle stream,
                       std::span<const Asked> copies) {
  const auto query = SEALANE_REAL(cuStreamQuery);
  if (query == nullptr || runtime.any_capturing()) return CUDA_SUCCESS;
  if (std::none_of(copies.begin(), copies.end(), is_delivered)) return CUDA_SUCCESS;
  const CUresult code = query(reinterpret_cast<CUstream>(stream));
  return code == CUDA_ERROR_ECC_UNCORRECTABLE ? code : CUDA_SUCCESS;
}

void tell_copy(serve::Runtime& runtime, const Asked& asked, serve::StreamHandle stream, bool async,
               serve::Route route, CUresult code, Instant begin, Instant end) {
  if (!asked.direction) return;
  serve::Event event;
  event.kind = serve::EventKind::copy;
  event.direction = *asked.direction;
  event.route = route;
  event.asynchronous = async;
  event.pinned = runtime.host_memory().find(reinterpret_cast<uint64_t>(asked.host)).has_value();
  event.code = code;
  event.id = asked.id;
  event.bytes = asked.bytes;
  event.host = reinterpret_cast<uint64_t>(asked.host);
  event.device_address = asked.device;
  event.stream = reinterpret_cast<uint64_t>(stream);
  event.begin = begin;
  event.end = end;
  serve::ContextHandle context = nullptr;
  if (port().context_of(stream, context) == serve::kSuccess) {
    event.context = reinterpret_cast<uint64_t>(context);
  }
  const auto block = runtime.device_memory().find(asked.device);
  if (block) event.device = static_cast<uint8_t>(block->what.device);
  serve::report(event);
  collect_launch_times();
}

}  // namespace sealane::preload

namespace {

constexpr bool kAsync = true;
constexpr bool kSync = false;

uint64_t slices(const CUDA_MEMCPY2D&) { return 1; }
template <typename Shape>
uint64_t slices(const Shape& shape) {
  return shape.Depth;
}

// A copy to or from an array, which is on a device but has no address: its handle names it.
Asked with_array(Direction direction, CUarray array, const void* host, size_t bytes) {
  return {direction, reinterpret_cast<uint64_t>(array), const_cast<void*>(host), bytes, false};
}

// A copy of rows: not ours to carry, but those who watch are told where it went.
template <typename Shape>
Asked by_shape(serve::Runtime& runtime, const Shape* shape) {
  const Asked nothing{std::nullopt, 0, nullptr, 0, false};
  if (shape == nullptr) return nothing;
  const auto address = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  };
  const bool from_array = shape->srcMemoryType == CU_MEMORYTYPE_ARRAY;
  const bool to_array = shape->dstMemoryType == CU_MEMORYTYPE_ARRAY;
  const CUdeviceptr from = address(shape->srcMemoryType, shape->srcHost, shape->srcDevice);
  const CUdeviceptr to = address(shape->dstMemoryType, shape->dstHost, shape->dstDevice);
  const size_t bytes = shape->WidthInBytes * shape->Height * slices(*shape);
  if (from_array || to_array) {
    const CUdeviceptr other = to_array ? from : to;
    const bool on_device = from_array == to_array || runtime.device_memory().find(other);
    if (on_device) return nothing;
    return with_array(to_array ? Direction::to_device : Direction::to_host,
                      to_array ? shape->dstArray : shape->srcArray,
                      reinterpret_cast<const void*>(other), bytes);
  }
  Asked asked = by_pointers(runtime, to, from, bytes);
  asked.whole = false;
  if (!asked.direction) asked.host = nullptr;
  return asked;
}

auto on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return [=](serve::Event& event) {
    event.call = serve::Call::device_copy;
    event.device_address = to;
    event.object = from;
    event.bytes = bytes;
  };
}

// Everything between a copy call of the program and the driver.
template <typename Describe, typename Pass>
CUresult copy(serve::StreamHandle stream, bool async, Describe&& describe, Pass&& pass) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return pass();
  if (const CUresult left = left_error(*runtime, stream); left != CUDA_SUCCESS) return left;
  notice_attach();
  const bool timed = serve::watched();
  const sealane::Instant begin = timed ? SteadyClock().now() : sealane::Instant{};
  Asked asked = describe(*runtime);
  if (timed) asked.id = runtime->next_copy();
  serve::Route route = asked.whole ? serve::Route::passed : serve::Route::passed_shape;
  if (asked.whole && asked.direction && async && asked.bytes > 0) {
    route =
        runtime->copy({*asked.direction, asked.device, asked.host, asked.bytes, stream, asked.id});
  }
  const CUresult result = pass_unless_carried(*runtime, route, stream, {&asked, 1}, {}, pass);
  if (timed) {
    tell_copy(*runtime, asked, stream, async, route, result, begin, SteadyClock().now());
  }
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): arguments are lists
#define COPY(stream, async, asked, arguments)                                   \
  copy(                                                                         \
      named(stream, mode), async,                                               \
      [&]([[maybe_unused]] serve::Runtime& runtime) -> Asked { return asked; }, \
      [&] { return next arguments; })
#define OTHER(stream, arguments) \
  ordered(                       \
      named(stream, mode), [&] { return next arguments; }, called)
// NOLINTEND(bugprone-macro-parentheses)

#define ON_DEVICE(stream, arguments) \
  ordered(                           \
      named(stream, mode), [&] { return next arguments; }, called, on_device(to, from, bytes))
#define TO_DEVICE (Asked{Direction::to_device, to, const_cast<void*>(from), bytes})
#define TO_HOST (Asked{Direction::to_host, from, to, bytes})
#define TO_ARRAY with_array(Direction::to_device, to, from, bytes)
#define FROM_ARRAY with_array(Direction::to_host, from, to, bytes)

SEALANE_TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void* from, size_t bytes),
              COPY(nullptr, kSync, TO_DEVICE, (to, from, bytes)))
SEALANE_TWINS(cuMemcpyDtoH_v2, _ptds, (void* to, CUdeviceptr from, size_t bytes),
              COPY(nullptr, kSync, TO_HOST, (to, from, bytes)))
SEALANE_TWINS(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
              COPY(nullptr, kSync, by_pointers(runtime, to, from, bytes), (to, from, bytes)))
SEALANE_TWINS(cuMemcpyHtoDAsync_v2, _ptsz,
              (CUdeviceptr to, const void* from, size_t bytes, CUstream stream),
              COPY(stream, kAsync, TO_DEVICE, (to, from, bytes, stream)))
SEALANE_TWINS(cuMemcpyDtoHAsync_v2, _ptsz,
              (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
              COPY(stream, kAsync, TO_HOST, (to, from, bytes, stream)))
SEALANE_TWINS(cuMemcpyAsync, _ptsz,
              (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
              COPY(stream, kAsync, by_pointers(runtime, to, from, bytes),
                   (to, from, bytes, stream)))

SEALANE_TWINS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
              ON_DEVICE(nullptr, (to, from, bytes)))
SEALANE_TWINS(cuMemcpyDtoDAsync_v2, _ptsz,
              (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
              ON_DEVICE(stream, (to, from, bytes, stream)))
SEALANE_TWINS(cuMemcpyPeer, _ptds,
              (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
               size_t bytes),
              OTHER(nullptr, (to, to_context, from, from_context, bytes)))
SEALANE_TWINS(cuMemcpyPeerAsync, _ptsz,
              (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
               size_t bytes, CUstream stream),
              OTHER(stream, (to, to_context, from, from_context, bytes, stream)))
SEALANE_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* shape),
              COPY(nullptr, kSync, by_shape(runtime, shape), (shape)))
SEALANE_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* shape),
              COPY(nullptr, kSync, by_shape(runtime, shape), (shape)))
SEALANE_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* shape, CUstream stream),
              COPY(stream, kAsync, by_shape(runtime, shape), (shape, stream)))
SEALANE_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* shape),
              COPY(nullptr, kSync, by_shape(runtime, shape), (shape)))
SEALANE_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* shape, CUstream stream),
              COPY(stream, kAsync, by_shape(runtime, shape), (shape, stream)))
SEALANE_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* shape), OTHER(nullptr, (shape)))
SEALANE_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* shape, CUstream stream),
              OTHER(stream, (shape, stream)))
SEALANE_TWINS(cuMemcpyAtoA_v2, _ptds,
              (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
              OTHER(nullptr, (to, to_offset, from, from_offset, bytes)))
SEALANE_TWINS(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
              OTHER(nullptr, (to, from, offset, bytes)))
SEALANE_TWINS(cuMemcpyDtoA_v2, _ptds, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
              OTHER(nullptr, (to, offset, from, bytes)))
SEALANE_TWINS(cuMemcpyHtoA_v2, _ptds, (CUarray to, size_t offset, const void* from, size_t bytes),
              COPY(nullptr, kSync, TO_ARRAY, (to, offset, from, bytes)))
SEALANE_TWINS(cuMemcpyAtoH_v2, _ptds, (void* to, CUarray from, size_t offset, size_t bytes),
              COPY(nullptr, kSync, FROM_ARRAY, (to, from, offset, bytes)))
SEALANE_TWINS(cuMemcpyHtoAAsync_v2, _ptsz,
              (CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream),
              COPY(stream, kAsync, TO_ARRAY, (to, offset, from, bytes, stream)))
SEALANE_TWINS(cuMemcpyAtoHAsync_v2, _ptsz,
              (void* to, CUarray from, size_t offset, size_t bytes, CUstream stream),
              COPY(stream, kAsync, FROM_ARRAY, (to, from, offset, bytes, stream)))
