// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Modules, libraries and functions. A kernel is the host function that was registered under its
// name, else the image's device code (driver/device_code.h). A module's function and a library's
// kernel are the same kind of object, so that either handle launches.

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emu/driver/api.h"
#include "emu/driver/code_image.h"
#include "emu/driver/launch.h"

using namespace sealane::emu;
namespace ptx = sealane::ptx;

namespace {

constexpr int kDynamicSharedMax = 227 << 10;

CUresult load(Driver& d, const void* image, bool library, Context* context, CUmodule* out,
              const JitMessages& jit = {}) {
  auto module = std::make_shared<ModuleObject>();
  const CUresult read = read_code(image, *module, jit);
  if (read != CUDA_SUCCESS) return read;
  module->library = library;
  module->owner = context != nullptr ? context->id() : 0;
  if (context != nullptr && module->code) {
    std::shared_ptr<LoadedCode> loaded;
    const CUresult placed = module->in(*context, loaded);
    if (placed != CUDA_SUCCESS) return placed;
  }
  *out = d.modules.add(std::move(module));
  return CUDA_SUCCESS;
}

CUresult load_file(Driver& d, const char* file, bool library, Context* owner, CUmodule* out) {
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream in(file, std::ios::binary);
  if (!in) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string image{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (image.size() < sizeof(Elf64_Ehdr)) image.resize(sizeof(Elf64_Ehdr));
  return load(d, image.c_str(), library, owner, out);
}

CUresult load_in_context(CUmodule* out, const void* image, const JitMessages& jit = {}) {
  return in_context([&](Driver& d, Context& context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(d, image, false, &context, out, jit);
  });
}

// A kernel of device code as launches see it: a name and the sizes of its parameters.
std::shared_ptr<const Kernel> describe(const ModuleObject& module, const char* name) {
  const ptx::FunctionText* text = module.code ? module.code->function(name) : nullptr;
  if (text == nullptr || !text->entry) return nullptr;
  auto kernel = std::make_shared<Kernel>();
  kernel->name = name;
  kernel->known = true;
  for (const ptx::Variable& one : text->parameters) kernel->argument_bytes.push_back(one.bytes);
  return kernel;
}

CUresult find_function(Driver& d, CUmodule handle, const char* name, CUfunction* out) {
  const auto module = d.modules.find(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!module->may_define(name)) return CUDA_ERROR_NOT_FOUND;
  const std::lock_guard lock(module->mutex);
  auto& function = module->functions[name];
  if (!function) {
    function = std::make_shared<FunctionObject>();
    function->name = name;
    function->module = module.get();
    function->described = describe(*module, name);
    d.functions.add(function);
  }
  *out = reinterpret_cast<CUfunction>(function.get());
  return CUDA_SUCCESS;
}

CUresult unload(Driver& d, CUmodule handle) {
  const auto module = d.modules.remove(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  d.functions.remove_if([&](const FunctionObject& f) { return f.module == module.get(); });
  return CUDA_SUCCESS;
}

CUresult find_global(Driver& d, CUmodule handle, const char* name, CUdeviceptr* address,
                     size_t* bytes) {
  const auto module = d.modules.find(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Symbol symbol = find_symbol(name);
  if (module->code) {
    const auto context = current_context(d);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    std::shared_ptr<LoadedCode> loaded;
    const CUresult there = module->in(*context, loaded);
    if (there != CUDA_SUCCESS) return there;
    const LoadedCode::Place* place = loaded->variable(name);
    if (place != nullptr) symbol = {place->address, place->bytes};
  }
  if (symbol.address == 0) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = symbol.address;
  if (bytes != nullptr) *bytes = symbol.bytes;
  return CUDA_SUCCESS;
}

// work(FunctionObject&)
template <typename Handle, typename Work>
CUresult with_function(Handle handle, Work&& work) {
  return guarded([&](Driver& d) {
    const auto function = d.functions.find(reinterpret_cast<CUfunction>(handle));
    return function ? work(*function) : CUDA_ERROR_INVALID_HANDLE;
  });
}

// The function decoded for the calling thread's context, nullptr: there is none, or it cannot be.
std::shared_ptr<const ptx::Kernel> code_of(FunctionObject& function) {
  Driver* d = driver();
  const auto context = d != nullptr ? current_context(*d) : nullptr;
  std::shared_ptr<LoadedCode> loaded;
  std::shared_ptr<const ptx::Kernel> kernel;
  if (!context || !function.described || find_registered(function.name)) return nullptr;
  if (function.module->in(*context, loaded) != CUDA_SUCCESS) return nullptr;
  loaded->kernel(function.name, kernel, true);
  return kernel;
}

CUresult get_attribute(FunctionObject& function, CUfunction_attribute attribute, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto code = code_of(function);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = code ? static_cast<int>(code->threads_max) : 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = code ? static_cast<int>(code->shared_bytes) : 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = code ? static_cast<int>(code->functions[0]->stack_bytes) : 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = function.module->code ? function.module->code->target : config()->compute_capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = config()->compute_capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.dynamic_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult set_attribute(FunctionObject& function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
  const bool settable = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  if (!settable || value < 0 || value > kDynamicSharedMax) return CUDA_ERROR_INVALID_VALUE;
  function.dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult parameter_info(const FunctionObject& function, size_t index, size_t* offset,
                        size_t* bytes) {
  auto kernel = find_registered(function.name);
  if (!kernel) kernel = function.described ? function.described : find_kernel(function.name);
  if (!kernel->known || index >= kernel->argument_bytes.size() || offset == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *offset = parameter_offset(*kernel, index);
  if (bytes != nullptr) *bytes = kernel->argument_bytes[index];
  return CUDA_SUCCESS;
}

}  // namespace

namespace sealane::emu {

bool ModuleObject::may_define(const std::string& name) const {
  if (code) {
    const ptx::FunctionText* text = code->function(name);
    return text != nullptr && text->entry;
  }
  return image.empty() || image.find(name) != std::string::npos;
}

CUresult ModuleObject::in(Context& context, std::shared_ptr<LoadedCode>& out) {
  const std::lock_guard lock(mutex);
  std::shared_ptr<LoadedCode>& mine = loaded[context.id()];
  if (!mine) {
    const CUresult result = LoadedCode::load(context, code, mine);
    if (result != CUDA_SUCCESS) return result;
  }
  out = mine;
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu

EMU_API cuModuleLoad(CUmodule* module, const char* file) {
  return in_context([&](Driver& d, Context& context) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load_file(d, file, false, &context, module);
  });
}

EMU_API cuModuleLoadData(CUmodule* module, const void* image) {
  return load_in_context(module, image);
}

EMU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                           CUjit_option* options, void** values) {
  return load_in_context(module, image, {count, options, values});
}

EMU_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_in_context(module, image);
}

EMU_API cuModuleUnload(CUmodule module) {
  return guarded([&](Driver& d) { return unload(d, module); });
}

EMU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return guarded([&](Driver& d) { return find_function(d, module, name, function); });
}

EMU_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                             const char* name) {
  return guarded([&](Driver& d) { return find_global(d, module, name, address, bytes); });
}

EMU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* loading) {
  if (loading == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *loading = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

EMU_API cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options,
                          void** values, unsigned count, CUlibraryOption*, void**, unsigned) {
  return guarded([&](Driver& d) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(d, image, true, nullptr, reinterpret_cast<CUmodule*>(library),
                {count, options, values});
  });
}

EMU_API cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**, unsigned,
                              CUlibraryOption*, void**, unsigned) {
  return guarded([&](Driver& d) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load_file(d, file, true, nullptr, reinterpret_cast<CUmodule*>(library));
  });
}

EMU_API cuLibraryUnload(CUlibrary library) {
  return guarded([&](Driver& d) { return unload(d, reinterpret_cast<CUmodule>(library)); });
}

EMU_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return guarded([&](Driver& d) {
    return find_function(d, reinterpret_cast<CUmodule>(library), name,
                         reinterpret_cast<CUfunction*>(kernel));
  });
}

EMU_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return guarded([&](Driver& d) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!d.modules.find(reinterpret_cast<CUmodule>(library))) return CUDA_ERROR_INVALID_HANDLE;
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
  });
}

EMU_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                           const char* name) {
  return guarded([&](Driver& d) {
    return find_global(d, reinterpret_cast<CUmodule>(library), name, address, bytes);
  });
}

EMU_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return with_function(kernel, [&](FunctionObject&) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  });
}

EMU_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return with_function(kernel, [&](FunctionObject& function) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *library = reinterpret_cast<CUlibrary>(function.module);
    return CUDA_SUCCESS;
  });
}

EMU_API cuKernelGetName(const char** name, CUkernel kernel) {
  return with_function(kernel, [&](FunctionObject& function) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function.name.c_str();
    return CUDA_SUCCESS;
  });
}

EMU_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                             CUdevice) {
  return with_function(kernel,
                       [&](FunctionObject& f) { return get_attribute(f, attribute, value); });
}

EMU_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return with_function(kernel,
                       [&](FunctionObject& f) { return set_attribute(f, attribute, value); });
}

EMU_API cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return with_function(kernel, [](FunctionObject&) { return CUDA_SUCCESS; });
}

EMU_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return with_function(kernel,
                       [&](FunctionObject& f) { return parameter_info(f, index, offset, bytes); });
}

EMU_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return with_function(function,
                       [&](FunctionObject& f) { return get_attribute(f, attribute, value); });
}

EMU_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return with_function(function,
                       [&](FunctionObject& f) { return set_attribute(f, attribute, value); });
}

EMU_API cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return with_function(function, [](FunctionObject&) { return CUDA_SUCCESS; });
}

EMU_API cuFuncGetModule(CUmodule* module, CUfunction function) {
  return with_function(function, [&](FunctionObject& f) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(f.module);
    return CUDA_SUCCESS;
  });
}

EMU_API cuFuncGetName(const char** name, CUfunction function) {
  return with_function(function, [&](FunctionObject& f) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = f.name.c_str();
    return CUDA_SUCCESS;
  });
}

EMU_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return with_function(function,
                       [&](FunctionObject& f) { return parameter_info(f, index, offset, bytes); });
}

EMU_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return with_function(function, [&](FunctionObject&) {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

EMU_API cuFuncLoad(CUfunction function) {
  return with_function(function, [](FunctionObject&) { return CUDA_SUCCESS; });
}

namespace {

CUresult occupancy(FunctionObject& function, int* blocks, int block_size, size_t shared_bytes) {
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto code = code_of(function);
  const auto threads = static_cast<unsigned>(block_size);
  const unsigned all = static_cast<unsigned>(std::min<size_t>(shared_bytes, 1 << 20)) +
                       (code ? code->shared_bytes : 0);
  const bool fits = threads <= (code ? code->threads_max : 1024u);
  *blocks = fits ? static_cast<int>(resident_blocks_per_sm(threads, all)) : 0;
  return CUDA_SUCCESS;
}

}  // namespace

namespace {

using SharedOfBlock = size_t (*)(int block_size);

// The block size that keeps most threads of an SM busy, the larger one if several do.
CUresult potential_block(CUfunction handle, int* grid, int* block, SharedOfBlock shared_of,
                         size_t shared_bytes, int limit) {
  return with_function(handle, [&](FunctionObject& function) {
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto code = code_of(function);
    const int most = code ? static_cast<int>(code->threads_max) : 1024;
    const int first = limit > 0 ? std::min(limit, most) : most;
    int busiest = 0;
    for (int size = first; size > 0; size = (size - 1) / 32 * 32) {
      int blocks = 0;
      const size_t shared = shared_of != nullptr ? shared_of(size) : shared_bytes;
      const CUresult known = occupancy(function, &blocks, size, shared);
      if (known != CUDA_SUCCESS) return known;
      if (blocks * size <= busiest) continue;
      busiest = blocks * size;
      *block = size;
      *grid = blocks * static_cast<int>(kSms);
    }
    return busiest > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

EMU_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                         SharedOfBlock shared_of, size_t shared_bytes, int limit) {
  return potential_block(function, grid, block, shared_of, shared_bytes, limit);
}

EMU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                  SharedOfBlock shared_of, size_t shared_bytes,
                                                  int limit, unsigned) {
  return potential_block(function, grid, block, shared_of, shared_bytes, limit);
}

EMU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                    int block_size, size_t shared_bytes) {
  return with_function(
      function, [&](FunctionObject& f) { return occupancy(f, blocks, block_size, shared_bytes); });
}

EMU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                             int block_size, size_t shared_bytes,
                                                             unsigned) {
  return with_function(
      function, [&](FunctionObject& f) { return occupancy(f, blocks, block_size, shared_bytes); });
}
