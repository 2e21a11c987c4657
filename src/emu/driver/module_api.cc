// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Modules, libraries, functions and launches. Code in an image is never run: a kernel is what was
// registered under its name. A module's function and a library's kernel are the same kind of
// object, so that either handle launches.

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emu/driver/api.h"
#include "emu/driver/launch.h"

using namespace sealane::emu;

namespace {

constexpr uint32_t kFatbinWrapper = 0x466243b1;  // what nvcc registers
constexpr uint32_t kFatbin = 0xba55ed50;
constexpr int kDynamicSharedMax = 227 << 10;

// Whether an image is one a driver would take, and its text if names can be looked up in it.
CUresult read_image(const void* image, std::string& text) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* bytes = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, bytes, 4);
  if (magic == kFatbin || magic == kFatbinWrapper) return CUDA_SUCCESS;  // may be compressed
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes, sizeof header);
    const uint64_t end = header.e_shoff + uint64_t{header.e_shentsize} * header.e_shnum;
    text.assign(bytes, end);
    return CUDA_SUCCESS;
  }
  if (std::strstr(bytes, ".version") == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  text = bytes;
  return CUDA_SUCCESS;
}

CUresult load(Driver& d, const void* image, bool library, uint64_t owner, CUmodule* out) {
  auto module = std::make_shared<ModuleObject>();
  const CUresult read = read_image(image, module->image);
  if (read != CUDA_SUCCESS) return read;
  module->library = library;
  module->owner = owner;
  *out = d.modules.add(std::move(module));
  return CUDA_SUCCESS;
}

CUresult load_file(Driver& d, const char* file, bool library, uint64_t owner, CUmodule* out) {
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream in(file, std::ios::binary);
  if (!in) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string image{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (image.size() < sizeof(Elf64_Ehdr)) image.resize(sizeof(Elf64_Ehdr));
  return load(d, image.c_str(), library, owner, out);
}

CUresult load_in_context(CUmodule* out, const void* image) {
  return in_context([&](Driver& d, Context& context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(d, image, false, context.id(), out);
  });
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

CUresult find_global(const char* name, CUdeviceptr* address, size_t* bytes) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Symbol symbol = find_symbol(name);
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

CUresult get_attribute(FunctionObject& function, CUfunction_attribute attribute, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
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
  const auto kernel = find_kernel(function.name);
  if (!kernel->known || index >= kernel->argument_bytes.size() || offset == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *offset = parameter_offset(*kernel, index);
  if (bytes != nullptr) *bytes = kernel->argument_bytes[index];
  return CUDA_SUCCESS;
}

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

bool runnable(const Shape& shape) {
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  const bool grid_ok = shape.grid[0] > 0 && shape.grid[0] <= 0x7fffffff && shape.grid[1] > 0 &&
                       shape.grid[1] <= 65535 && shape.grid[2] > 0 && shape.grid[2] <= 65535;
  return grid_ok && threads > 0 && threads <= 1024 && shape.block[2] <= 64;
}

// CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END
bool read_extra(void** extra, const void*& buffer, size_t& bytes) {
  for (int i = 0; i < 8 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[i + 1]);
  }
  return buffer != nullptr;
}

}  // namespace

namespace sealane::emu {

CUresult make_launch(Driver& d, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                     unsigned shared_bytes, void** arguments, void** extra, LaunchOperation& out) {
  const auto function = d.functions.find(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const Shape shape{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes};
  if (!runnable(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (shared_bytes > static_cast<unsigned>(function->dynamic_shared_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (arguments != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  out.kernel = find_kernel(function->name);
  const void* buffer = nullptr;
  size_t bytes = 0;
  if (extra != nullptr && read_extra(extra, buffer, bytes)) {
    out.arguments = Arguments::copy_packed(*out.kernel, buffer, bytes);
  } else {
    out.arguments = Arguments::copy(*out.kernel, arguments);
  }
  if (out.arguments.count() != out.kernel->argument_bytes.size()) return CUDA_ERROR_INVALID_VALUE;
  std::copy_n(grid, 3, out.grid);
  std::copy_n(block, 3, out.block);
  out.shared_bytes = shared_bytes;
  return CUDA_SUCCESS;
}

}  // namespace sealane::emu

namespace {

CUresult launch(CUstream stream, DefaultStream mode, CUfunction function, const unsigned grid[3],
                const unsigned block[3], unsigned shared_bytes, void** arguments, void** extra) {
  return on_stream(stream, mode, [&](Driver& d, ResolvedStream& s) {
    LaunchOperation operation;
    const CUresult made =
        make_launch(d, function, grid, block, shared_bytes, arguments, extra, operation);
    return made == CUDA_SUCCESS ? submit(d, s, std::move(operation), false) : made;
  });
}

CUresult launch_configured(DefaultStream mode, const CUlaunchConfig* c, CUfunction function,
                           void** arguments, void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
  const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
  return launch(c->hStream, mode, function, grid, block, c->sharedMemBytes, arguments, extra);
}

}  // namespace

EMU_API cuModuleLoad(CUmodule* module, const char* file) {
  return in_context([&](Driver& d, Context& context) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load_file(d, file, false, context.id(), module);
  });
}

EMU_API cuModuleLoadData(CUmodule* module, const void* image) {
  return load_in_context(module, image);
}

EMU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return load_in_context(module, image);
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
  return guarded([&](Driver& d) {
    return d.modules.find(module) ? find_global(name, address, bytes) : CUDA_ERROR_INVALID_HANDLE;
  });
}

EMU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* loading) {
  if (loading == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *loading = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

EMU_API cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                          CUlibraryOption*, void**, unsigned) {
  return guarded([&](Driver& d) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(d, image, true, 0, reinterpret_cast<CUmodule*>(library));
  });
}

EMU_API cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**, unsigned,
                              CUlibraryOption*, void**, unsigned) {
  return guarded([&](Driver& d) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load_file(d, file, true, 0, reinterpret_cast<CUmodule*>(library));
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
    return d.modules.find(reinterpret_cast<CUmodule>(library)) ? find_global(name, address, bytes)
                                                               : CUDA_ERROR_INVALID_HANDLE;
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

EMU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                    int block_size, size_t) {
  return with_function(function, [&](FunctionObject&) {
    if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = std::max(1, std::min(32, 2048 / block_size));
    return CUDA_SUCCESS;
  });
}

EMU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                             int block_size, size_t, unsigned) {
  return with_function(function, [&](FunctionObject&) {
    if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = std::max(1, std::min(32, 2048 / block_size));
    return CUDA_SUCCESS;
  });
}

#define SHAPE                                                                            \
  unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
      unsigned block_z, unsigned shared_bytes

namespace {

CUresult launch_xyz(CUstream stream, DefaultStream mode, CUfunction function, SHAPE,
                    void** arguments, void** extra) {
  const unsigned grid[3] = {grid_x, grid_y, grid_z};
  const unsigned block[3] = {block_x, block_y, block_z};
  return launch(stream, mode, function, grid, block, shared_bytes, arguments, extra);
}

}  // namespace

EMU_TWINS(cuLaunchKernel, _ptsz,
          (CUfunction function, SHAPE, CUstream stream, void** arguments, void** extra),
          launch_xyz(stream, mode, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                     shared_bytes, arguments, extra))
EMU_TWINS(cuLaunchCooperativeKernel, _ptsz,
          (CUfunction function, SHAPE, CUstream stream, void** arguments),
          launch_xyz(stream, mode, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                     shared_bytes, arguments, nullptr))
EMU_TWINS(cuLaunchKernelEx, _ptsz,
          (const CUlaunchConfig* c, CUfunction function, void** arguments, void** extra),
          launch_configured(mode, c, function, arguments, extra))
#undef SHAPE
