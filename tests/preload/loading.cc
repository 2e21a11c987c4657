// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Can copies be made while the dynamic linker runs a library's constructors and destructors? It has
// its lock all the while: whoever asks it for a function then, on another thread, waits for them.
//   loading WHEN LIBRARY
// WHEN the program copies: in a constructor (`constructor`), or in a destructor (`destructor`); on
// a thread that a constructor starts and waits for (`thread`). The library calls it then
// (loading_library.c).

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "must.h"

namespace {

constexpr size_t kBytes = 4 << 20;
constexpr unsigned kPatience = 60;  // seconds, before it is said to hang

std::string when;
std::optional<OneDevice> device;
bool copied = false;

void copy_there_and_back() {
  void* memory = nullptr;
  OK(cuMemHostAlloc(&memory, kBytes, 0));
  std::memset(memory, 7, kBytes);
  OK(cuMemcpyHtoDAsync(device->memory, memory, kBytes, device->stream));
  OK(cuStreamSynchronize(device->stream));
  std::memset(memory, 0, kBytes);
  OK(cuMemcpyDtoHAsync(memory, device->memory, kBytes, device->stream));
  OK(cuStreamSynchronize(device->stream));
  const std::vector<char> expected(kBytes, 7);
  if (std::memcmp(memory, expected.data(), kBytes) != 0) fail("wrong bytes");
  OK(cuMemFreeHost(memory));
  copied = true;
}

void copy_on_another_thread() {
  std::thread([] {
    OK(cuCtxSetCurrent(device->context));
    copy_there_and_back();
  }).join();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void loading_begins() {
  if (when == "thread") copy_on_another_thread();
  if (when != "constructor") return;
  device.emplace(kBytes);
  copy_there_and_back();
}

extern "C" __attribute__((visibility("default"))) void loading_ends() {
  if (when == "destructor") copy_there_and_back();
}

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: loading WHEN LIBRARY");
  when = argv[1];
  alarm(kPatience);
  if (when != "constructor") device.emplace(kBytes);
  void* const library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  dlclose(library);
  if (!copied) fail("nothing was copied");
  std::puts("ok");
}
