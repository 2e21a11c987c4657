// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Names and texts of error codes.

#include "emu/driver/api.h"

namespace {

struct Text {
  int value;
  const char* name;
  const char* text;
};

#define BOTH(driver_name, runtime_name, value, text) {value, "CUDA_ERROR_" #driver_name, text},
#define RUNTIME(runtime_name, value, text)
constexpr Text kTexts[] = {{0, "CUDA_SUCCESS", "no error"}, SEALANE_EMU_CUDA_ERRORS(BOTH, RUNTIME)};
#undef BOTH
#undef RUNTIME

const Text* find(CUresult error) {
  for (const Text& text : kTexts) {
    if (text.value == static_cast<int>(error)) return &text;
  }
  return nullptr;
}

CUresult answer(const char** out, const char* text) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = text;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

EMU_API cuGetErrorName(CUresult error, const char** name) {
  const Text* text = find(error);
  return answer(name, text != nullptr ? text->name : nullptr);
}

EMU_API cuGetErrorString(CUresult error, const char** out) {
  const Text* text = find(error);
  return answer(out, text != nullptr ? text->text : nullptr);
}
