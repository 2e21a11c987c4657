// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise arithmetic of the collectives: sum, avg, min, max over float32, float64, float16,
// bfloat16, int32, int64, uint8.
//
// Deterministic: the result depends on the operands and their order alone, not on the CPU the code
// is dispatched to. Integers wrap. float16 and bfloat16 are added as float32 and rounded to nearest
// even. min and max return NaN if either operand is NaN. An average is a sum, divided at the end.
// Pure; safe on any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "seal/record.h"

namespace sealane {

size_t element_bytes(ElementType type);  // type is not none

// out[i] = first[i] op second[i]; all three have the same size, a multiple of the element. `out`
// may be the same memory as an operand. Private memory only: operands may be read twice.
void reduce(ElementType type, ReduceOperator op, Bytes first, Bytes second, MutableBytes out);

// The code that does it on this CPU, for those who do it in pieces.
using ReduceKernel = void (*)(const uint8_t* first, const uint8_t* second, uint8_t* out,
                              size_t bytes);
ReduceKernel reduce_kernel(ElementType type, ReduceOperator op);

// The end of an average: data[i] /= count. Integer averages round towards zero.
void divide(ElementType type, MutableBytes data, uint32_t count);

}  // namespace sealane
