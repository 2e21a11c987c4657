// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/runtime/registry.h"

#include <map>
#include <mutex>
#include <string>

#include "emu/abi/sealane_emu.h"
#include "emu/runtime/runtime.h"

namespace sealane::emu::runtime {
namespace {

struct Binary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
};

struct Function {
  Binary* binary = nullptr;
  std::string name;
  CUfunction function = nullptr;
};

struct VariableEntry {
  Binary* binary = nullptr;
  std::string name;
  size_t bytes = 0;
  std::map<int, void*> addresses;  // by device
};

struct Registry {
  std::mutex mutex;
  std::map<const void*, Function> functions;
  std::map<const void*, VariableEntry> variables;
};

Registry& registry() {
  static Registry& made = *new Registry;  // constructors of programs come before ours
  return made;
}

CUresult load_binary(const Calls& calls, Binary& binary) {
  if (binary.library != nullptr) return CUDA_SUCCESS;
  return calls.cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0, nullptr,
                                 nullptr, 0);
}

void tell_driver(const VariableEntry& variable, void* memory) {
  using Register = int (*)(const char*, uint64_t, size_t);
  static const auto tell =
      reinterpret_cast<Register>(find_symbol_of_driver("sealane_emu_register_symbol"));
  if (tell != nullptr) tell(variable.name.c_str(), address(memory), variable.bytes);
}

}  // namespace

CUfunction find_function(const Calls& calls, const void* host_function, CUresult& result) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().functions.find(host_function);
  result = static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  if (found == registry().functions.end()) return nullptr;
  Function& entry = found->second;
  result = CUDA_SUCCESS;
  if (entry.function != nullptr) return entry.function;
  result = load_binary(calls, *entry.binary);
  CUkernel kernel = nullptr;
  if (result == CUDA_SUCCESS) {
    result = calls.cuLibraryGetKernel(&kernel, entry.binary->library, entry.name.c_str());
  }
  if (result == CUDA_SUCCESS) result = calls.cuKernelGetFunction(&entry.function, kernel);
  return entry.function;
}

const char* function_name(const void* host_function) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().functions.find(host_function);
  return found != registry().functions.end() ? found->second.name.c_str() : nullptr;
}

void* host_function_of(CUfunction function) {
  const std::lock_guard lock(registry().mutex);
  for (const auto& [host_function, entry] : registry().functions) {
    if (entry.function == function) return const_cast<void*>(host_function);
  }
  return function;
}

Variable find_variable(const Calls& calls, const void* host_variable) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().variables.find(host_variable);
  CUdevice device = 0;
  if (found == registry().variables.end()) return {};
  if (calls.cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  VariableEntry& entry = found->second;
  void*& memory = entry.addresses[device];
  if (memory == nullptr) {
    CUdeviceptr made = 0;
    size_t bytes = 0;
    // The program's device code has it; without any, a kernel that is a host function may.
    if (load_binary(calls, *entry.binary) == CUDA_SUCCESS &&
        calls.cuLibraryGetGlobal(&made, &bytes, entry.binary->library, entry.name.c_str()) ==
            CUDA_SUCCESS) {
      memory = reinterpret_cast<void*>(made);
      tell_driver(entry, memory);
      return {memory, entry.bytes};
    }
    if (calls.cuMemAlloc(&made, entry.bytes) != CUDA_SUCCESS) return {};
    calls.cuMemsetD8(made, 0, entry.bytes);
    memory = reinterpret_cast<void*>(made);
    tell_driver(entry, memory);
  }
  return {memory, entry.bytes};
}

}  // namespace sealane::emu::runtime

using namespace sealane::emu::runtime;

#define EMU_REGISTER extern "C" __attribute__((visibility("default")))

EMU_REGISTER void** __cudaRegisterFatBinary(void* image) {
  return reinterpret_cast<void**>(new Binary{image, nullptr});
}

EMU_REGISTER void __cudaRegisterFatBinaryEnd(void**) {}

// Runs from exit handlers, when the driver may be gone: nothing is given back.
EMU_REGISTER void __cudaUnregisterFatBinary(void**) {}

EMU_REGISTER void __cudaRegisterFunction(void** binary, const char* host_function, char*,
                                         const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                         int*) {
  const std::lock_guard lock(registry().mutex);
  registry().functions[host_function] = {reinterpret_cast<Binary*>(binary), name, nullptr};
}

EMU_REGISTER void __cudaRegisterVar(void** binary, char* host_variable, char*, const char* name,
                                    int, size_t bytes, int, int) {
  const std::lock_guard lock(registry().mutex);
  registry().variables[host_variable] = {reinterpret_cast<Binary*>(binary), name, bytes, {}};
}

// Managed memory does not exist here: a program that uses such a variable finds a null pointer.
EMU_REGISTER void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int,
                                           int) {}

EMU_REGISTER char __cudaInitModule(void**) { return 1; }
