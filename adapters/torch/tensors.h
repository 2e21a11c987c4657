// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors as the library takes them: element types, operators, and memory in one piece. A tensor
// that is not contiguous goes through one that is, and its result is copied back. Memory of a GPU
// is the library's to read and write, which waits for no stream: that is done here.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sealane/comm.h"
#include "version.h"

namespace sealane::adapter {

inline void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.is_cuda()),
              "sealane takes dense tensors of CPUs and CUDA, not ", tensor.layout(), " on ",
              tensor.device());
}

// Those that have streams, each once.
inline std::vector<at::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    const at::Device device = tensor.device();
    if (device.is_cpu() || std::count(devices.begin(), devices.end(), device) > 0) continue;
    devices.push_back(device);
  }
  return devices;
}

// Until what this thread has asked of the tensors' devices is done.
inline void wait_for_devices(const std::vector<at::Tensor>& tensors) {
  for (const at::Device device : devices_of(tensors)) {
    const auto* driver = c10::impl::getDeviceGuardImpl(device.type());
    driver->synchronizeStream(driver->getStream(device));
  }
}

inline void check_same_type(const at::Tensor& tensor, const at::Tensor& other) {
  TORCH_CHECK(tensor.scalar_type() == other.scalar_type(),
              "tensors of one call have one type, not ", tensor.scalar_type(), " and ",
              other.scalar_type());
}

inline const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "one tensor per rank is expected, not ", tensors.size());
  check_tensor(tensors[0]);
  return tensors[0];
}

// What the library adds up itself, hop by hop. Everything else travels whole and is folded here.
inline std::optional<DataType> element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DataType::float32;
    case at::kDouble:
      return DataType::float64;
    case at::kHalf:
      return DataType::float16;
    case at::kBFloat16:
      return DataType::bfloat16;
    case at::kInt:
      return DataType::int32;
    case at::kLong:
      return DataType::int64;
    case at::kByte:
    case at::kBool:
      return DataType::uint8;
    default:
      return std::nullopt;
  }
}

using TorchOp = c10d::ReduceOp::RedOpType;

// The sum of truth values is their "or": what is stored in a Bool stays 0 or 1.
inline std::optional<ReduceOp> operator_of(TorchOp op, at::ScalarType type) {
  const bool truth = type == at::kBool;
  switch (op) {
    case c10d::ReduceOp::SUM:
      return truth ? ReduceOp::max : ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    default:
      return std::nullopt;
  }
}

inline TorchOp checked_operator(const c10d::ReduceOp& op, at::ScalarType type) {
  const auto kind = static_cast<TorchOp>(op);
  TORCH_CHECK(kind <= c10d::ReduceOp::BXOR,
              "sealane reduces by SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR only");
  TORCH_CHECK(kind != c10d::ReduceOp::AVG || at::isFloatingType(type) || element_of(type),
              "sealane makes no averages of ", type);
  TORCH_CHECK(kind != c10d::ReduceOp::AVG || type != at::kBool, "truth values have no average");
  TORCH_CHECK(kind < c10d::ReduceOp::BAND || at::isIntegralType(type, true), "bits of ", type,
              " are not reduced: BAND, BOR and BXOR take whole numbers");
  return kind;
}

// Both, if the library can do that reduction.
struct Native {
  DataType type;
  ReduceOp op;
};
inline std::optional<Native> native(TorchOp op, at::ScalarType type) {
  const auto element = element_of(type);
  const auto kind = operator_of(op, type);
  if (!element || !kind) return std::nullopt;
  return Native{*element, *kind};
}

// Every rank's part, one after the other in the first dimension, in the order of the ranks.
inline at::Tensor fold(const at::Tensor& parts, TorchOp op) {
  const int64_t count = parts.size(0);
  at::Tensor sum = parts[0].clone();
  for (int64_t i = 1; i < count; ++i) {
    const at::Tensor part = parts[i];
    switch (op) {
      case c10d::ReduceOp::PRODUCT:
        sum.mul_(part);
        break;
      case c10d::ReduceOp::MIN:
        sum = at::minimum(sum, part);
        break;
      case c10d::ReduceOp::MAX:
        sum = at::maximum(sum, part);
        break;
      case c10d::ReduceOp::BAND:
        sum.bitwise_and_(part);
        break;
      case c10d::ReduceOp::BOR:
        sum.bitwise_or_(part);
        break;
      case c10d::ReduceOp::BXOR:
        sum.bitwise_xor_(part);
        break;
      default:
        sum.add_(part);
    }
  }
  if (op == c10d::ReduceOp::AVG) sum.div_(count);
  return sum;
}

// How the library is told of data that it only moves: by its type where it knows that one, so that
// ranks whose types differ find out.
struct Moved {
  DataType type;
  size_t count;
};
inline Moved moved(const at::Tensor& tensor) {
  if (const auto type = element_of(tensor.scalar_type())) {
    return {*type, static_cast<size_t>(tensor.numel())};
  }
  return {DataType::uint8, tensor.nbytes()};
}

// The word that ranks compare types by, also where the library knows them as bytes.
inline CallLabel::Type word_for(at::ScalarType type) {
  using Type = CallLabel::Type;
  if (type == at::kBool) return Type::boolean;  // to the library it is a uint8
  if (const auto known = element_of(type)) return static_cast<Type>(*known);
  switch (type) {
    case at::kChar:
      return Type::int8;
    case at::kShort:
      return Type::int16;
    case at::kComplexHalf:
      return Type::complex32;
    case at::kComplexFloat:
      return Type::complex64;
    case at::kComplexDouble:
      return Type::complex128;
    default:
      break;
  }
  // Later PyTorches have more. By number, so that this builds with those that lack them; PyTorch
  // saves these numbers in files and adds new ones at the end.
  const auto number = static_cast<int>(type);
  switch (number) {
    case 23:
      return Type::float8_e5m2;
    case 24:
      return Type::float8_e4m3fn;
    case 25:
      return Type::float8_e5m2fnuz;
    case 26:
      return Type::float8_e4m3fnuz;
    case 27:
      return Type::uint16;
    case 28:
      return Type::uint32;
    case 29:
      return Type::uint64;
    case 44:
      return Type::float8_e8m0fnu;
    case 45:
      return Type::float4_e2m1fn_x2;
    default:
      return static_cast<Type>(static_cast<int>(Type::other) + std::min(number, 63));
  }
}

inline CallLabel::Op word_for(TorchOp op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return CallLabel::Op::sum;
    case c10d::ReduceOp::AVG:
      return CallLabel::Op::avg;
    case c10d::ReduceOp::MIN:
      return CallLabel::Op::min;
    case c10d::ReduceOp::MAX:
      return CallLabel::Op::max;
    case c10d::ReduceOp::PRODUCT:
      return CallLabel::Op::product;
    case c10d::ReduceOp::BAND:
      return CallLabel::Op::bit_and;
    case c10d::ReduceOp::BOR:
      return CallLabel::Op::bit_or;
    case c10d::ReduceOp::BXOR:
      return CallLabel::Op::bit_xor;
    default:
      return CallLabel::Op::none;  // refused before
  }
}

// A call as PyTorch's users know it, for the ranks to compare: however it travels.
inline CallLabel label_of(CallLabel::Kind kind, const at::Tensor& tensor, int64_t root = -1) {
  return {kind, word_for(tensor.scalar_type()), CallLabel::Op::none, static_cast<int>(root)};
}
inline CallLabel label_of(CallLabel::Kind kind, const at::Tensor& tensor, TorchOp op,
                          int root = -1) {
  return {kind, word_for(tensor.scalar_type()), word_for(op), root};
}

// What a call must keep alive, and what it has to do when the data is there.
class Staged {
 public:
  // Memory of the tensor's values in one piece, holding them already.
  at::Tensor in(const at::Tensor& tensor) {
    held_.push_back(tensor.contiguous());
    return held_.back();
  }

  // Memory in one piece whose content will be the tensor's.
  at::Tensor out(const at::Tensor& tensor) {
    if (tensor.is_contiguous()) return in(tensor);
    return filled(tensor, at::empty_like(tensor, at::MemoryFormat::Contiguous));
  }

  at::Tensor in_out(const at::Tensor& tensor) {
    if (tensor.is_contiguous()) return in(tensor);
    return filled(tensor, tensor.contiguous());
  }

  // New memory for all of them, one after the other.
  at::Tensor out(const std::vector<at::Tensor>& tensors) {
    const int64_t count = tensors.at(0).numel();
    held_.push_back(at::empty({static_cast<int64_t>(tensors.size()), count}, tensors[0].options()));
    const at::Tensor all = held_.back();
    for (size_t i = 0; i < tensors.size(); ++i) {
      copies_.push_back({tensors[i], all[static_cast<int64_t>(i)].view(tensors[i].sizes())});
    }
    return all;
  }

  // New memory for the parts of all ranks; what `op` makes of them, from row `row` of each part
  // on (all of it if -1), becomes the tensor's content.
  at::Tensor folded(const at::Tensor& tensor, const at::Tensor& part, int ranks, TorchOp op,
                    bool wanted, int64_t row = -1) {
    std::vector<int64_t> sizes = part.sizes().vec();
    sizes.insert(sizes.begin(), ranks);
    held_.push_back(at::empty(sizes, part.options()));
    if (wanted) {
      const at::Tensor all = held_.back();
      folds_.push_back({tensor, row < 0 ? all : all.select(1, row), op});
    }
    return held_.back();
  }

  // What a profiler is told was given, where that is not what results from it.
  void show(std::vector<at::Tensor> inputs) { shown_ = std::move(inputs); }
  const std::vector<at::Tensor>& shown() const { return shown_; }

  // What the memory is to hold is there, and who used it before is through with it.
  void settle() const { wait_for_devices(held_); }

  void deliver() const {
    const at::NoGradGuard no_grad;  // results are data, not part of a graph
    for (const auto& [to, from] : copies_) to.copy_(from);
    for (const Fold& one : folds_) one.to.copy_(fold(one.parts, one.op).view(one.to.sizes()));
    if (!copies_.empty() || !folds_.empty()) settle();  // by this thread's stream, not the caller's
  }

 private:
  at::Tensor filled(const at::Tensor& tensor, at::Tensor staging) {
    held_.push_back(staging);
    copies_.push_back({tensor, staging});
    return staging;
  }

  struct Fold {
    at::Tensor to;
    at::Tensor parts;
    TorchOp op;
  };

  std::vector<at::Tensor> held_;
  std::vector<at::Tensor> shown_;
  std::vector<Fold> folds_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
};

inline size_t count_of(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }

}  // namespace sealane::adapter
