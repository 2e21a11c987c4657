// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "os/gpu_probe.h"

#include <dlfcn.h>

#include "base/text.h"

namespace sealane {
namespace {

constexpr size_t kNameBytes = 128;

// Never closed: a driver's threads and exit handlers outlive our interest in it.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}

  bool found() const { return handle_ != nullptr; }

  // Calls `name`, whose result is a code; nothing if the library has no such function. The types
  // of the arguments are the declaration: pass them exactly.
  template <typename... Arguments>
  std::optional<int> call(const char* name, Arguments... arguments) const {
    void* symbol = found() ? dlsym(handle_, name) : nullptr;
    if (symbol == nullptr) return std::nullopt;
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

 private:
  void* handle_;
};

// The C structure of nvmlSystemGetConfComputeState.
struct ConfComputeSystemState {
  unsigned environment;
  unsigned cc_feature;
  unsigned dev_tools_mode;
};

using NvmlDevice = struct NvmlDeviceOpaque*;

void ask_cuda(GpuAnswers& answers) {
  const Library cuda("libcuda.so.1");
  answers.cuda_found = cuda.found();
  answers.cuda_init = cuda.call("cuInit", 0u);
  int version = 0;
  if (cuda.call("cuDriverGetVersion", &version) == 0) answers.cuda_version = version;
  int count = 0;
  if (answers.cuda_init != 0 || cuda.call("cuDeviceGetCount", &count) != 0) return;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[kNameBytes] = {};
    if (cuda.call("cuDeviceGet", &device, i) != 0) continue;
    cuda.call("cuDeviceGetName", &name[0], static_cast<int>(sizeof name), device);
    answers.cuda_names.emplace_back(name);
  }
}

void ask_nvml(GpuAnswers& answers) {
  const Library nvml("libnvidia-ml.so.1");
  answers.nvml_found = nvml.found();
  answers.nvml_init = nvml.call("nvmlInit_v2");
  if (answers.nvml_init != 0) return;
  char version[kNameBytes] = {};
  nvml.call("nvmlSystemGetDriverVersion", &version[0], static_cast<unsigned>(sizeof version));
  answers.driver_version = version;
  ConfComputeSystemState state{};
  if (nvml.call("nvmlSystemGetConfComputeState", &state) == 0) {
    answers.conf_compute = {state.environment, state.cc_feature, state.dev_tools_mode};
  }
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    char name[kNameBytes] = {};
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) != 0) continue;
    nvml.call("nvmlDeviceGetName", device, &name[0], static_cast<unsigned>(sizeof name));
    answers.nvml_names.emplace_back(name);
  }
  nvml.call("nvmlShutdown");
}

CcState interpret(const GpuAnswers::ConfCompute& state) {
  if (state.feature == 0) return CcState::off;
  if (state.environment == 1) return CcState::simulated;
  return state.dev_tools != 0 ? CcState::dev_tools : CcState::on;
}

// CUDA counts what this process may use (CUDA_VISIBLE_DEVICES); NVML counts what is in the machine.
std::string explain_no_device(const GpuAnswers& answers) {
  if (!answers.cuda_found) return "libcuda.so.1 is not installed";
  if (!answers.cuda_init) return "libcuda.so.1 has no cuInit";
  if (*answers.cuda_init != 0) return concat("cuInit fails with CUDA error ", *answers.cuda_init);
  return "the driver sees no GPU";
}

}  // namespace

GpuAnswers ask_gpu_libraries() {
  GpuAnswers answers;
  ask_nvml(answers);
  ask_cuda(answers);
  return answers;
}

CcState ask_cc_state() {
  GpuAnswers answers;
  ask_nvml(answers);
  return answers.conf_compute ? interpret(*answers.conf_compute) : CcState::unknown;
}

GpuReport interpret(const GpuAnswers& answers) {
  GpuReport report;
  if (!answers.cuda_found && !answers.nvml_found) return report;
  report.driver_version = answers.driver_version;
  if (answers.cuda_version) {
    report.cuda_version =
        concat(*answers.cuda_version / 1000, '.', *answers.cuda_version % 1000 / 10);
  }
  if (answers.conf_compute) report.cc = interpret(*answers.conf_compute);
  if (answers.cuda_names.empty()) {
    report.presence = GpuPresence::no_device;
    report.names = answers.nvml_names;
    report.problem = explain_no_device(answers);
  } else {
    report.presence = GpuPresence::ready;
    report.names = answers.cuda_names;
  }
  return report;
}

}  // namespace sealane
