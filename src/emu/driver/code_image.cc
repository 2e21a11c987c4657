// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/driver/code_image.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "emu/device/image.h"
#include "ptx/text/link.h"

namespace sealane::emu {

// Sizes go in as the room there is and come out as what was used.
void JitMessages::tell(const std::string& message) const {
  char* buffer = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
  }
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) values[i] = nullptr;
    if (options[i] == CU_JIT_WALL_TIME) values[i] = nullptr;
    if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
    // An unsigned int travels in the pointer's place.
    const size_t room = reinterpret_cast<uintptr_t>(values[i]) & UINT32_MAX;
    size_t used = 0;
    if (buffer != nullptr && room > 0) {
      used = std::min(room - 1, message.size());
      std::memcpy(buffer, message.data(), used);
      buffer[used] = '\0';
    }
    values[i] = reinterpret_cast<void*>(used);
  }
}

CUresult refuse(const char* what, const std::string& why, CUresult result, const JitMessages& jit) {
  std::fprintf(stderr, "sealane emulated GPU: %s: %s\n", what, why.c_str());
  jit.tell(why);
  return result;
}

CUresult read_code(const void* bytes, ModuleObject& module, const JitMessages& jit) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto image = read_image(bytes);
  if (!image) return refuse("image", image.error().message, CUDA_ERROR_INVALID_IMAGE, jit);
  if (!image->known) return CUDA_ERROR_INVALID_IMAGE;
  module.image = std::move(image->names);
  module.machine_code = image->machine_code && image->parts.empty();
  auto texts = choose_ptx(std::move(*image), config()->compute_capability);
  if (!texts) return refuse("image", texts.error().message, CUDA_ERROR_NO_BINARY_FOR_GPU, jit);
  if (texts->empty()) return CUDA_SUCCESS;  // kernels by name alone
  auto linked = ptx::link_modules(std::move(*texts));
  if (!linked) return refuse("PTX", linked.error().message, CUDA_ERROR_INVALID_PTX, jit);
  module.code = std::move(*linked);
  jit.tell({});
  if (module.code->target <= config()->compute_capability) return CUDA_SUCCESS;
  return refuse("PTX", "it is for a newer GPU: see --compute-capability", CUDA_ERROR_INVALID_PTX,
                jit);
}

CUresult refuse_machine_code(const std::string& kernel) {
  static std::mutex mutex;
  static auto& told = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (told.insert(kernel).second) {
    std::fprintf(stderr,
                 "sealane emulated GPU: kernel %s: its image has machine code only, which cannot "
                 "run here: build with PTX (nvcc -gencode arch=compute_80,code=compute_80), or let "
                 "it do nothing (--machine-code skip)\n",
                 kernel.c_str());
  }
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

}  // namespace sealane::emu
