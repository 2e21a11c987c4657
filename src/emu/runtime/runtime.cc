// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/runtime/runtime.h"

#include <atomic>
#include <cstdio>

namespace sealane::emu::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

constexpr int kDevicesMax = 64;
std::atomic<CUcontext> primaries[kDevicesMax];

}  // namespace

CUresult primary_context(const Calls& calls, int device, CUcontext& out) {
  if (device < 0 || device >= kDevicesMax) return CUDA_ERROR_INVALID_DEVICE;
  out = primaries[device].load();
  if (out != nullptr) return CUDA_SUCCESS;
  const CUresult made = calls.cuDevicePrimaryCtxRetain(&out, device);
  if (made == CUDA_SUCCESS) primaries[device].store(out);
  return made;
}

cudaError_t note(cudaError_t error) {
  // Asking whether something is ready is no failure.
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t start(const Calls*& calls, Streams mode) {
  calls = mode == Streams::legacy ? legacy_calls() : per_thread_calls();
  if (calls == nullptr) return cudaErrorInsufficientDriver;
  static const CUresult initialised = calls->cuInit(0);
  return static_cast<cudaError_t>(initialised);
}

cudaError_t enter(const Calls*& calls, Streams mode) {
  const cudaError_t ready = start(calls, mode);
  if (ready != cudaSuccess) return ready;
  CUcontext current = nullptr;
  CUresult result = calls->cuCtxGetCurrent(&current);
  if (result == CUDA_SUCCESS && current == nullptr) {
    CUcontext primary = nullptr;
    result = primary_context(*calls, current_device, primary);
    if (result == CUDA_SUCCESS) result = calls->cuCtxSetCurrent(primary);
  }
  return static_cast<cudaError_t>(result);
}

int unsupported(const char* name) {
  if (name != nullptr) {
    std::fprintf(stderr, "sealane emulated GPU: %s is not supported (said once)\n", name);
  }
  return note(cudaErrorNotSupported);
}

int device_of_this_thread() { return current_device; }
void set_device_of_this_thread(int device) { current_device = device; }

void forget_contexts(int device) {
  if (device >= 0 && device < kDevicesMax) primaries[device].store(nullptr);
}

}  // namespace sealane::emu::runtime

using namespace sealane::emu::runtime;

EMU_RUNTIME cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

EMU_RUNTIME cudaPeekAtLastError() { return last_error; }

namespace {

struct Text {
  int value;
  const char* name;
  const char* text;
};

#define BOTH(driver_name, name, value, text) {value, "cudaError" #name, text},
#define RUNTIME(name, value, text) {value, "cudaError" #name, text},
// The last one no call returns since CUDA 4.1; it has kept its name.
constexpr Text kTexts[] = {
    {0, "cudaSuccess", "no error"},
    SEALANE_EMU_CUDA_ERRORS(BOTH, RUNTIME){10000, "cudaErrorApiFailureBase", "api failure base"}};
#undef BOTH
#undef RUNTIME

const Text& find_text(cudaError_t error) {
  static constexpr Text kUnknown = {-1, "unrecognized error code", "unrecognized error code"};
  for (const Text& text : kTexts) {
    if (text.value == static_cast<int>(error)) return text;
  }
  return kUnknown;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorName(cudaError_t error) {
  return find_text(error).name;
}

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorString(
    cudaError_t error) {
  return find_text(error).text;
}
