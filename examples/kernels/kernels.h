// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// All kernels of the examples. A kernel is a structure, passed by value as its only parameter:
//   items()       how many independent pieces of work it has, one per GPU thread
//   item(i)       does piece i, with device pointers; the same code on a GPU and emulated
//   memory(v)     shows v every pointer: v(pointer, elements) or v(pointer, elements, touched),
//                 so that an emulated device can translate it and count bytes
//   operations()  arithmetic of the whole launch, for an emulated device's clock
// Sums have a fixed order, so a result is the same however and wherever its bytes travelled. They
// are written to be read and to be right; a tuned library would be faster on a GPU.
#pragma once

#include <cstddef>

#include "kernels/integer.h"
#include "kernels/training.h"
#include "kernels/transformer.h"

// X(structure, name of the kernel function)
#define SEALANE_EXAMPLE_KERNELS(X)                 \
  X(MatVec, sealane_mat_vec)                       \
  X(KvAppend, sealane_kv_append)                   \
  X(KvDigest, sealane_kv_digest)                   \
  X(DecodeStep, sealane_decode_step)               \
  X(PickToken, sealane_pick_token)                 \
  X(Embed, sealane_embed)                          \
  X(RmsNorm, sealane_rms_norm)                     \
  X(Gemm, sealane_gemm)                            \
  X(StoreKv, sealane_store_kv)                     \
  X(Attention, sealane_attention)                  \
  X(SiluMul, sealane_silu_mul)                     \
  X(ArgMax, sealane_arg_max)                       \
  X(GemmTransposed, sealane_gemm_transposed)       \
  X(GemmOuter, sealane_gemm_outer)                 \
  X(RmsNormBackward, sealane_rms_norm_backward)    \
  X(AttentionBackward, sealane_attention_backward) \
  X(SiluMulBackward, sealane_silu_mul_backward)    \
  X(SoftmaxLoss, sealane_softmax_loss)             \
  X(SgdStep, sealane_sgd_step)

namespace examples {

enum class KernelId {
#define SEALANE_ID(type, name) type,
  SEALANE_EXAMPLE_KERNELS(SEALANE_ID)
#undef SEALANE_ID
};

#define SEALANE_ONE(type, name) +1
inline constexpr size_t kKernelCount = 0 SEALANE_EXAMPLE_KERNELS(SEALANE_ONE);
#undef SEALANE_ONE

inline constexpr unsigned kBlockThreads = 128;

inline const char* kernel_name(KernelId kernel) {
#define SEALANE_NAME(type, name) #name,
  static const char* const kNames[] = {SEALANE_EXAMPLE_KERNELS(SEALANE_NAME)};
#undef SEALANE_NAME
  return kNames[static_cast<size_t>(kernel)];
}

template <typename Kernel>
struct KernelIdOf;
#define SEALANE_ID_OF(type, name)                     \
  template <>                                         \
  struct KernelIdOf<type> {                           \
    static constexpr KernelId value = KernelId::type; \
  };
SEALANE_EXAMPLE_KERNELS(SEALANE_ID_OF)
#undef SEALANE_ID_OF

}  // namespace examples
