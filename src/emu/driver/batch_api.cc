// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. Every copy has attributes, of which one counts here: when its source may
// be read. CUDA 12.8 also tells which copy of a batch was refused, CUDA 13 does not any more.

#include <algorithm>

#include "emu/driver/api.h"
#include "emu/driver/array.h"

using namespace sealane::emu;

namespace {

constexpr size_t kNotOfOneCopy = SIZE_MAX;

bool known_order(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

bool known_flags(unsigned flags) {
  return (flags & ~CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) == 0;
}

// Which attributes belong to which copy: each set from its start to the next one's.
class Attributes {
 public:
  Attributes(const CUmemcpyAttributes* sets, const size_t* starts, size_t count)
      : sets_(sets), starts_(starts), count_(count) {}

  bool valid(size_t copies) const {
    if (sets_ == nullptr || starts_ == nullptr || count_ == 0 || count_ > copies) return false;
    if (starts_[0] != 0 || starts_[count_ - 1] >= copies) return false;
    for (size_t k = 0; k < count_; ++k) {
      if (k > 0 && starts_[k] <= starts_[k - 1]) return false;
      if (!known_order(sets_[k].srcAccessOrder) || !known_flags(sets_[k].flags)) return false;
    }
    return true;
  }
  // Ask for copies in ascending order.
  CUmemcpySrcAccessOrder order_of(size_t copy) {
    while (at_ + 1 < count_ && starts_[at_ + 1] <= copy) ++at_;
    return sets_[at_].srcAccessOrder;
  }

 private:
  const CUmemcpyAttributes* sets_;
  const size_t* starts_;
  size_t count_;
  size_t at_ = 0;
};

// A source that must not be read after the call: the call waits for its copy.
bool must_wait(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
}

// The legacy default stream has no place for a batch.
bool is_legacy(CUstream stream, DefaultStream mode) {
  return stream == CU_STREAM_LEGACY || (stream == nullptr && mode == DefaultStream::legacy);
}

// one(i): the result of the i-th copy. The first that is refused ends the batch.
template <typename One>
CUresult each_copy(size_t count, size_t& failed, One&& one) {
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = one(i);
    if (result == CUDA_SUCCESS) continue;
    failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

// work(Driver&, ResolvedStream&, failed): tells the program which copy it was, if it asks.
template <typename Work>
CUresult batch(CUstream stream, DefaultStream mode, size_t* failed, Work&& work) {
  size_t refused = kNotOfOneCopy;
  const CUresult result = on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    return is_legacy(stream, mode) ? CUDA_ERROR_INVALID_VALUE : work(d, s, refused);
  });
  if (failed != nullptr && result != CUDA_SUCCESS) *failed = refused;
  return result;
}

CUresult copy_batch(CUstream stream, DefaultStream mode, const CUdeviceptr* to,
                    const CUdeviceptr* from, const size_t* bytes, size_t count,
                    Attributes attributes, size_t* failed) {
  return batch(stream, mode, failed, [&](Driver& d, ResolvedStream& s, size_t& refused) {
    if (to == nullptr || from == nullptr || bytes == nullptr || count == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!attributes.valid(count)) return CUDA_ERROR_INVALID_VALUE;
    return each_copy(count, refused, [&](size_t i) {
      return submit(d, s, CopyOperation::flat(to[i], Side::any, from[i], Side::any, bytes[i]),
                    must_wait(attributes.order_of(i)));
    });
  });
}

// Of an array; 1 for memory. 0: no such array.
uint64_t element_of(const Driver& d, const CUmemcpy3DOperand& operand) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return 1;
  const auto array = d.arrays.find(operand.op.array.array);
  return array ? array->element_bytes : 0;
}

// Two arrays must agree about it, memory takes the array's.
uint64_t element_of(const Driver& d, const CUDA_MEMCPY3D_BATCH_OP& block) {
  const uint64_t from = element_of(d, block.src);
  const uint64_t to = element_of(d, block.dst);
  const bool both = block.src.type == block.dst.type;
  return both && from != to ? 0 : std::max(from, to);
}

CUresult read_operand(const Driver& d, const CUmemcpy3DOperand& operand, const CopyOperation& copy,
                      uint64_t element_bytes, CopySide& out) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& a = operand.op.array;
    return array_side(d, a.array, {a.offset.x * element_bytes, a.offset.y, a.offset.z}, copy, out);
  }
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_INVALID_VALUE;
  const auto& p = operand.op.ptr;
  const uint64_t pitch = p.rowLength != 0 ? p.rowLength * element_bytes : copy.width;
  const uint64_t height = p.layerHeight != 0 ? p.layerHeight : copy.height;
  out = {p.ptr, pitch, pitch * height, Side::any};
  return CUDA_SUCCESS;
}

CUresult copy_block(Driver& d, ResolvedStream& s, const CUDA_MEMCPY3D_BATCH_OP& block) {
  CopyOperation copy;
  const uint64_t element = element_of(d, block);
  copy.width = block.extent.width * element;
  copy.height = block.extent.height;
  copy.depth = block.extent.depth;
  if (copy.bytes() == 0 || !known_order(block.srcAccessOrder) || !known_flags(block.flags)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult read = read_operand(d, block.src, copy, element, copy.from);
  if (read == CUDA_SUCCESS) read = read_operand(d, block.dst, copy, element, copy.to);
  return read == CUDA_SUCCESS ? submit(d, s, copy, must_wait(block.srcAccessOrder)) : read;
}

CUresult copy_batch_3d(CUstream stream, DefaultStream mode, size_t count,
                       const CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                       size_t* failed) {
  return batch(stream, mode, failed, [&](Driver& d, ResolvedStream& s, size_t& refused) {
    if (copies == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return each_copy(count, refused, [&](size_t i) { return copy_block(d, s, copies[i]); });
  });
}

}  // namespace

EMU_TWINS(cuMemcpyBatchAsync, _ptsz,
          (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
           CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count, size_t* failed,
           CUstream stream),
          copy_batch(stream, mode, to, from, bytes, count, {attributes, starts, attribute_count},
                     failed))
EMU_TWINS(cuMemcpyBatchAsync_v2, _ptsz,
          (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
           CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count, CUstream stream),
          copy_batch(stream, mode, to, from, bytes, count, {attributes, starts, attribute_count},
                     nullptr))
EMU_TWINS(cuMemcpy3DBatchAsync, _ptsz,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed, unsigned long long flags,
           CUstream stream),
          copy_batch_3d(stream, mode, count, copies, flags, failed))
EMU_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags, CUstream stream),
          copy_batch_3d(stream, mode, count, copies, flags, nullptr))
