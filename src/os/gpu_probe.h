// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs there are and whether confidential computing (CC) is on. Asks the driver's own
// libraries, opened at run time: nothing of NVIDIA's is needed to build or start, and having no
// GPU is an answer, not an error. Asking initialises the driver in this process; it creates no
// context. Safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sealane {

// What the libraries said, word for word. Codes are NVML's and CUDA's own; 0 is success.
struct GpuAnswers {
  struct ConfCompute {
    unsigned environment = 0;  // 0 unavailable, 1 simulation, 2 production
    unsigned feature = 0;      // 0 disabled, 1 enabled
    unsigned dev_tools = 0;    // 0 off, 1 on: profilers and debuggers can look inside
  };

  bool cuda_found = false;          // libcuda.so.1
  std::optional<int> cuda_init;     // cuInit
  std::optional<int> cuda_version;  // cuDriverGetVersion: 12040 is 12.4
  std::vector<std::string> cuda_names;
  bool nvml_found = false;       // libnvidia-ml.so.1
  std::optional<int> nvml_init;  // nvmlInit_v2
  std::string driver_version;    // "550.127.05"
  std::vector<std::string> nvml_names;
  std::optional<ConfCompute> conf_compute;  // nothing if the driver is too old to know the call
};

enum class GpuPresence {
  no_driver,  // no library, no GPU
  no_device,  // a driver that does not start or sees no GPU
  ready,
};

enum class CcState {
  unknown,  // the driver does not say
  off,
  on,
  dev_tools,  // on, but open to tools: for development, protects nothing
  simulated,  // the driver simulates it
};

struct GpuReport {
  GpuPresence presence = GpuPresence::no_driver;
  CcState cc = CcState::unknown;
  std::string driver_version;  // empty if unknown
  std::string cuda_version;    // "12.4", empty if unknown
  std::vector<std::string> names;
  std::string problem;  // why there is no device though there is a driver
};

GpuAnswers ask_gpu_libraries();

// Only whether CC is on. Asks NVML alone and starts nothing of CUDA's.
CcState ask_cc_state();

GpuReport interpret(const GpuAnswers& answers);

}  // namespace sealane
