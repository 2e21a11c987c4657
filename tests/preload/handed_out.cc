// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whose functions does a program get that is linked to the driver, or asks for an address?
//   handed_out drivers   where there is nothing to do: the driver's own. What was bound or asked
//   for
//                        before that was known leads there, with nothing of the runtime's in
//                        between
//   handed_out ours      where there is: the runtime's, whatever the way
//
// That nothing is in between the program sees from the stack, while the driver allocates memory in
// a call.

#include <cuda.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstring>
#include <string>

#include "must.h"

extern "C" void* __libc_malloc(size_t bytes);

namespace {

bool is_of_preload(const void* code) {
  Dl_info where{};
  return dladdr(code, &where) != 0 && std::strstr(where.dli_fname, "libsealane-preload") != nullptr;
}
bool is_of_driver(const void* code) {
  Dl_info where{};
  return dladdr(code, &where) != 0 && std::strstr(where.dli_fname, "libcuda.so") != nullptr;
}

thread_local bool looking = false;
thread_local int allocations = 0;
thread_local bool preload_called = false;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (looking) {
    looking = false;  // whoever looks may allocate too
    void* frames[64];
    const int count = backtrace(frames, 64);
    bool driver = false;
    for (int i = 0; i < count; ++i) {
      driver = driver || is_of_driver(frames[i]);
      if (driver && is_of_preload(frames[i])) preload_called = true;
    }
    if (driver) ++allocations;
    looking = true;
  }
  return __libc_malloc(bytes);
}

namespace {

using CreateStream = CUresult(CUstream*, unsigned);
using GetAddress = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using EntryPoint = int(const char*, void**, unsigned, unsigned long long, int*);

constexpr const char* kNames[] = {"cuStreamCreate", "cuEventQuery",  "cuMemcpyHtoDAsync_v2",
                                  "cuLaunchKernel", "cuMemAlloc_v2", "cuStreamWaitEvent_ptsz"};
constexpr int kVersion = 12000;

template <typename Function>
Function* find(void* handle, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(handle, name));
  if (found == nullptr) fail(name);
  return found;
}

bool ours = false;

void check(const void* function, const char* name, const char* way) {
  if (ours ? is_of_preload(function) : is_of_driver(function)) return;
  fail((std::string(name) + " by " + way + " is not " + (ours ? "ours" : "the driver's own"))
           .c_str());
}

std::string without_version(std::string name) {
  for (const char* ending : {"_ptsz", "_v2"}) {
    if (const size_t at = name.rfind(ending); at != std::string::npos) name.erase(at);
  }
  return name;
}

void check_address(GetAddress& get, const char* symbol, const char* way) {
  const std::string name = without_version(symbol);
  const bool per_thread = std::strstr(symbol, "_ptsz") != nullptr;
  void* found = nullptr;
  OK(get(name.c_str(), &found, kVersion, per_thread ? 2 : 0, nullptr));
  check(found, name.c_str(), way);
}

// Who is on the stack while this makes a stream?
void check_call(CreateStream& create, const char* way) {
  CUstream made = nullptr;
  allocations = 0;
  preload_called = false;
  looking = true;
  const CUresult code = create(&made, CU_STREAM_NON_BLOCKING);
  looking = false;
  OK(code);
  if (allocations == 0) fail("the driver allocates nothing for a stream: nobody was seen");
  if (preload_called != ours) fail((std::string("a call of what was ") + way).c_str());
  OK(cuStreamDestroy(made));
}

}  // namespace

int main(int argc, char** argv) {
  ours = argc > 1 && std::strcmp(argv[1], "ours") == 0;
  void* frames[1];
  backtrace(frames, 1);  // loads what it needs
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) fail("no driver");
  // Before anybody knows whether CC is on.
  auto* const early = find<CreateStream>(driver, "cuStreamCreate");
  auto* const early_get = find<GetAddress>(driver, "cuGetProcAddress_v2");
  void* early_address = nullptr;
  OK(early_get("cuStreamCreate", &early_address, kVersion, 0, nullptr));
  if (ours) check(reinterpret_cast<void*>(early), "cuStreamCreate", "dlsym before cuInit");
  if (ours) check(early_address, "cuStreamCreate", "cuGetProcAddress before cuInit");

  const OneDevice device(4096);
  for (const char* name : kNames) {
    check(dlsym(driver, name), name, "dlsym");
    check(dlsym(RTLD_DEFAULT, name), name, "dlsym of all");
    check_address(*early_get, name, "an early cuGetProcAddress");
    check_address(*find<GetAddress>(driver, "cuGetProcAddress_v2"), name, "cuGetProcAddress");
    check_address(*find<GetAddress>(RTLD_DEFAULT, "cuGetProcAddress_v2"), name, "the linked one");
  }
  void* const runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (runtime == nullptr) fail("no CUDA runtime");
  void* found = nullptr;
  int status = 0;
  auto* const entry_point = find<EntryPoint>(runtime, "cudaGetDriverEntryPointByVersion");
  if (entry_point("cuStreamCreate", &found, kVersion, 0, &status) != 0) fail("no entry point");
  check(found, "cuStreamCreate", "cudaGetDriverEntryPointByVersion");

  check_call(cuStreamCreate, "linked");
  check_call(*early, "looked up before cuInit");
  check_call(*reinterpret_cast<CreateStream*>(early_address), "asked for before cuInit");
  check_call(*find<CreateStream>(driver, "cuStreamCreate"), "looked up");
  std::puts("ok");
}
