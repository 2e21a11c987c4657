// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// cuLink*: PTX, alone, in cubins, fat binaries, host objects and archives, becomes a cubin that
// cuModuleLoadData takes. Nothing is translated: the cubin holds the texts.

#include <cstring>
#include <fstream>
#include <iterator>

#include "emu/device/cubin.h"
#include "emu/device/image.h"
#include "emu/driver/api.h"
#include "emu/driver/code_image.h"
#include "ptx/text/link.h"

using namespace sealane::emu;

namespace {

JitMessages messages_of(const LinkObject& link) {
  return {static_cast<unsigned>(link.options.size()), link.options.data(), link.values};
}

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  return in_context([&](Driver& d, Context&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto link = std::make_shared<LinkObject>();
    link->options.assign(options, options + count);
    link->values = values;
    *out = d.links.add(std::move(link));
    return CUDA_SUCCESS;
  });
}

// What an input has; its bytes end with a zero.
sealane::Result<Image> read_input(CUjitInputType type, const std::string& bytes) {
  switch (type) {
    case CU_JIT_INPUT_PTX: {
      Image out;
      out.parts.push_back({{bytes.c_str(), 0}});
      return out;
    }
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
      return read_object(bytes);
    default:
      return read_image(bytes.data());
  }
}

CUresult add(LinkObject& link, CUjitInputType type, std::string bytes) {
  if (type < CU_JIT_INPUT_CUBIN || type > CU_JIT_INPUT_LIBRARY) return CUDA_ERROR_INVALID_VALUE;
  const JitMessages jit = messages_of(link);
  bytes.resize(std::max<size_t>(bytes.size() + 1, 64));  // a header's worth
  auto image = read_input(type, bytes);
  if (!image) return refuse("link", image.error().message, CUDA_ERROR_INVALID_IMAGE, jit);
  auto texts = choose_ptx(std::move(*image), config()->compute_capability);
  if (!texts) return refuse("link", texts.error().message, CUDA_ERROR_NO_BINARY_FOR_GPU, jit);
  // An archive may have nothing that is needed.
  if (texts->empty() && type != CU_JIT_INPUT_LIBRARY) {
    return refuse("link", "an input without PTX", CUDA_ERROR_NO_BINARY_FOR_GPU, jit);
  }
  for (std::string& text : *texts) {
    auto parsed = sealane::ptx::parse_module(text);
    if (!parsed) return refuse("PTX", parsed.error().message, CUDA_ERROR_INVALID_PTX, jit);
    link.texts.push_back(std::move(text));
  }
  return CUDA_SUCCESS;
}

// work(LinkObject&), one at a time.
template <typename Work>
CUresult with_link(CUlinkState state, Work&& work) {
  return guarded([&](Driver& d) {
    const auto link = d.links.find(state);
    if (!link) return CUDA_ERROR_INVALID_HANDLE;
    const std::lock_guard lock(link->mutex);
    return work(*link);
  });
}

CUresult add_data(CUlinkState state, CUjitInputType type, const void* data, size_t bytes) {
  return with_link(state, [&](LinkObject& link) {
    if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return add(link, type, std::string(static_cast<const char*>(data), bytes));
  });
}

CUresult add_file(CUlinkState state, CUjitInputType type, const char* path) {
  return with_link(state, [&](LinkObject& link) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream in(path, std::ios::binary);
    if (!in) return CUDA_ERROR_FILE_NOT_FOUND;
    return add(link, type, {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  });
}

}  // namespace

EMU_API cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return create(count, options, values, state);
}

EMU_API cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return create(count, options, values, state);
}

EMU_API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*,
                      unsigned, CUjit_option*, void**) {
  return add_data(state, type, data, bytes);
}

EMU_API cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                         const char*, unsigned, CUjit_option*, void**) {
  return add_data(state, type, data, bytes);
}

EMU_API cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                      CUjit_option*, void**) {
  return add_file(state, type, path);
}

EMU_API cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                         CUjit_option*, void**) {
  return add_file(state, type, path);
}

EMU_API cuLinkComplete(CUlinkState state, void** cubin, size_t* bytes) {
  return with_link(state, [&](LinkObject& link) {
    const JitMessages jit = messages_of(link);
    if (cubin == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (link.texts.empty()) return refuse("link", "nothing to link", CUDA_ERROR_INVALID_IMAGE, jit);
    const auto linked = sealane::ptx::link_modules(link.texts);
    if (!linked) return refuse("link", linked.error().message, CUDA_ERROR_INVALID_PTX, jit);
    link.cubin = make_cubin(link.texts);
    jit.tell({});
    *cubin = link.cubin.data();
    if (bytes != nullptr) *bytes = link.cubin.size();
    return CUDA_SUCCESS;
  });
}

EMU_API cuLinkDestroy(CUlinkState state) {
  return guarded(
      [&](Driver& d) { return d.links.remove(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}
