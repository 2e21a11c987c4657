// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors as the library takes them: element types, operators, and memory in one piece. A tensor
// that is not contiguous goes through one that is, and its result is copied back.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "sealane/comm.h"
#include "version.h"

namespace sealane::adapter {

inline void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided && tensor.device().is_cpu(),
              "sealane takes dense CPU tensors, not ", tensor.layout(), " on ", tensor.device());
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

inline DataType reducible(at::ScalarType type) {
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
      TORCH_CHECK(false, "sealane does not reduce ", type,
                  "; it does Float, Double, Half, BFloat16, Int, Long, Byte and Bool");
  }
}

// The sum of truth values is their "or": what is stored in a Bool stays 0 or 1.
inline ReduceOp operator_for(const c10d::ReduceOp& op, at::ScalarType type) {
  const bool truth = type == at::kBool;
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return truth ? ReduceOp::max : ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      TORCH_CHECK(!truth, "truth values have no average");
      return ReduceOp::avg;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    default:
      TORCH_CHECK(false, "sealane reduces by SUM, AVG, MIN and MAX only");
  }
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

  void deliver() const {
    const at::NoGradGuard no_grad;  // results are data, not part of a graph
    for (const auto& [to, from] : copies_) to.copy_(from);
  }

 private:
  at::Tensor filled(const at::Tensor& tensor, at::Tensor staging) {
    held_.push_back(staging);
    copies_.push_back({tensor, staging});
    return staging;
  }

  std::vector<at::Tensor> held_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
};

inline size_t bytes_of(const at::Tensor& tensor) { return tensor.nbytes(); }
inline size_t count_of(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }

}  // namespace sealane::adapter
