// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. A batch is carried as a whole or passed as a whole: then it is the
// driver that says what is wrong with it, and with which of its copies.

#include <optional>
#include <vector>

#include "asked.h"
#include "attach.h"
#include "hooks.h"

using namespace sealane::preload;
namespace serve = sealane::serve;
using sealane::Instant;
using sealane::SteadyClock;

namespace {

struct Batch {
  std::vector<Asked> copies;    // those between host and device
  std::vector<Asked> others;    // those of which we cannot tell
  std::vector<bool> read_now;   // of each: its source is the program's again after the call
  bool only_the_driver = true;  // until all of it is known to be such as a copy thread may carry
};

bool known_order(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

bool known_flags(unsigned flags) {
  return (flags & ~static_cast<unsigned>(CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)) == 0;
}

// False: not to be carried.
bool add(Batch& batch, const Asked& asked, CUmemcpySrcAccessOrder order) {
  if (!asked.direction) {
    batch.others.push_back(asked);
    return false;
  }
  batch.copies.push_back(asked);
  batch.read_now.push_back(order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
  return asked.bytes > 0 && asked.whole;
}

bool valid(const CUmemcpyAttributes* attributes, const size_t* starts, size_t attribute_count,
           size_t count) {
  if (attributes == nullptr || starts == nullptr || attribute_count == 0) return false;
  if (attribute_count > count || starts[0] != 0) return false;
  for (size_t k = 0; k < attribute_count; ++k) {
    if (starts[k] >= count || (k > 0 && starts[k] <= starts[k - 1])) return false;
    if (!known_order(attributes[k].srcAccessOrder) || !known_flags(attributes[k].flags)) {
      return false;
    }
  }
  return true;
}

Batch of_ranges(serve::Runtime& runtime, const CUdeviceptr* to, const CUdeviceptr* from,
                const size_t* bytes, size_t count, const CUmemcpyAttributes* attributes,
                const size_t* starts, size_t attribute_count) {
  Batch batch;
  if (to == nullptr || from == nullptr || bytes == nullptr || count == 0) return batch;
  if (!valid(attributes, starts, attribute_count, count)) return batch;
  bool all = true;
  size_t k = 0;
  for (size_t i = 0; i < count; ++i) {
    while (k + 1 < attribute_count && starts[k + 1] <= i) ++k;
    const Asked asked = by_pointers(runtime, to[i], from[i], bytes[i]);
    all = add(batch, asked, attributes[k].srcAccessOrder) && all;
  }
  batch.only_the_driver = !all;
  return batch;
}

// Whether the rows of a side lie end to end.
bool is_flat(const CUmemcpy3DOperand& operand, const CUextent3D& extent) {
  const auto& p = operand.op.ptr;
  const bool rows = p.rowLength == 0 || p.rowLength == extent.width ||
                    (extent.height == 1 && extent.depth == 1 && p.rowLength > extent.width);
  const bool layers = p.layerHeight == 0 || p.layerHeight == extent.height ||
                      (extent.depth == 1 && p.layerHeight > extent.height);
  return rows && layers;
}

// Nothing: more than there can be.
std::optional<size_t> bytes_of(const CUextent3D& extent) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(extent.width, extent.height, &bytes) ||
      __builtin_mul_overflow(bytes, extent.depth, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

Batch of_blocks(serve::Runtime& runtime, size_t count, const CUDA_MEMCPY3D_BATCH_OP* blocks,
                unsigned long long flags) {
  Batch batch;
  if (blocks == nullptr || count == 0) return batch;
  bool all = flags == 0;
  for (size_t i = 0; i < count; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& block = blocks[i];
    const bool pointers = block.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER &&
                          block.dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
    if (!pointers) {
      all = false;
      continue;
    }
    const std::optional<size_t> bytes = bytes_of(block.extent);
    Asked asked =
        by_pointers(runtime, block.dst.op.ptr.ptr, block.src.op.ptr.ptr, bytes.value_or(0));
    asked.whole = bytes && is_flat(block.src, block.extent) && is_flat(block.dst, block.extent);
    if (!asked.direction && !asked.whole) asked.host = nullptr;
    all = add(batch, asked, block.srcAccessOrder) && all;
    all = all && known_order(block.srcAccessOrder) && known_flags(block.flags);
  }
  batch.only_the_driver = !all;
  return batch;
}

serve::Route carry(serve::Runtime& runtime, serve::StreamHandle stream, const Batch& batch) {
  const bool legacy = reinterpret_cast<uintptr_t>(stream) == serve::kLegacyStream;
  if (batch.only_the_driver || legacy) return serve::Route::passed_shape;
  std::vector<serve::CopyAsked> all;
  all.reserve(batch.copies.size());
  for (size_t i = 0; i < batch.copies.size(); ++i) {
    const Asked& one = batch.copies[i];
    all.push_back(
        {*one.direction, one.device, one.host, one.bytes, stream, one.id, batch.read_now[i]});
  }
  return runtime.copy_together(all);
}

// The caller waited once, for all of them: the first has the time.
void tell(serve::Runtime& runtime, const Batch& batch, serve::StreamHandle stream,
          serve::Route route, CUresult code, Instant begin) {
  const Instant end = SteadyClock().now();
  for (const Asked& one : batch.copies) {
    const bool first = &one == &batch.copies.front();
    tell_copy(runtime, one, stream, true, route, code, first ? begin : end, end);
  }
}

// Everything between a batch call of the program and the driver.
template <typename Describe, typename Pass>
CUresult copy_batch(serve::StreamHandle stream, Describe&& describe, Pass&& pass) {
  serve::Runtime* runtime = serve::Runtime::get();
  if (runtime == nullptr) return pass();
  if (const CUresult left = left_error(*runtime, stream); left != CUDA_SUCCESS) return left;
  notice_attach();
  const bool timed = serve::watched();
  const Instant begin = timed ? SteadyClock().now() : Instant{};
  Batch batch = describe(*runtime);
  for (Asked& one : batch.copies) one.id = timed ? runtime->next_copy() : 0;
  const serve::Route route = carry(*runtime, stream, batch);
  const CUresult result =
      pass_unless_carried(*runtime, route, stream, batch.copies, batch.others, pass);
  if (timed) tell(*runtime, batch, stream, route, result, begin);
  return result;
}

}  // namespace

#define RANGES(...)                                                                             \
  copy_batch(                                                                                   \
      named(stream, mode),                                                                      \
      [&](serve::Runtime& runtime) {                                                            \
        return of_ranges(runtime, to, from, bytes, count, attributes, starts, attribute_count); \
      },                                                                                        \
      [&] { return next(__VA_ARGS__); })
#define BLOCKS(...)                                                                      \
  copy_batch(                                                                            \
      named(stream, mode),                                                               \
      [&](serve::Runtime& runtime) { return of_blocks(runtime, count, blocks, flags); }, \
      [&] { return next(__VA_ARGS__); })

// CUDA 12.8's variants have a place for the index of what was refused.
SEALANE_TWINS(cuMemcpyBatchAsync, _ptsz,
              (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
               CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
               size_t* failed, CUstream stream),
              RANGES(to, from, bytes, count, attributes, starts, attribute_count, failed, stream))
SEALANE_TWINS(cuMemcpyBatchAsync_v2, _ptsz,
              (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
               CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
               CUstream stream),
              RANGES(to, from, bytes, count, attributes, starts, attribute_count, stream))
SEALANE_TWINS(cuMemcpy3DBatchAsync, _ptsz,
              (size_t count, CUDA_MEMCPY3D_BATCH_OP* blocks, size_t* failed,
               unsigned long long flags, CUstream stream),
              BLOCKS(count, blocks, failed, flags, stream))
SEALANE_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz,
              (size_t count, CUDA_MEMCPY3D_BATCH_OP* blocks, unsigned long long flags,
               CUstream stream),
              BLOCKS(count, blocks, flags, stream))
