// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Device code from anywhere: read or refused in one line with a line number, and run without
// touching anything but the memory it was given. A block runs for one share of time: code may loop.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "ptx/decode/decode.h"
#include "ptx/exec/grid.h"

using namespace sealane;

namespace {

class SmallDevice : public ptx::Device {
 public:
  ptx::Window find(uint64_t) override { return {0x10000, sizeof memory_, memory_}; }
  uint64_t allocate(uint64_t) override { return 0; }
  bool release(uint64_t) override { return false; }
  void print(std::string_view) override {}
  bool cancelled() override { return false; }
  uint64_t now_ns() override { return 0; }

 private:
  uint8_t memory_[4096] = {};
};

void run(const std::shared_ptr<const ptx::Kernel>& kernel) {
  SmallDevice device;
  ptx::Grid grid;
  grid.kernel = kernel;
  grid.shape.block[0] = 48;
  grid.shape.dynamic_shared = 256;
  grid.parameters.resize(kernel->parameter_bytes);
  for (size_t i = 0; i + 8 <= grid.parameters.size(); i += 8)
    grid.parameters[i + 2] = 1;  // 0x10000
  grid.device = &device;
  grid.blocks = 1;
  const std::atomic<uint64_t> forgotten{1};
  ptx::Lookups lookups;
  lookups.forgotten = &forgotten;
  ptx::Block block;
  block.lookups = &lookups;
  block.begin(grid, 0);
  block.run();
  SEALANE_CHECK(
      !grid.failed() || grid.message.find('\n') == std::string::npos || !grid.printed.empty(),
      "a fault of several lines");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto module = ptx::parse_module(std::string(reinterpret_cast<const char*>(data), size));
  if (!module) {
    SEALANE_CHECK(module.error().message.starts_with("line "), "an error without its line");
    return 0;
  }
  for (const ptx::FunctionText& function : (*module)->functions) {
    if (!function.entry) continue;
    const auto kernel = ptx::decode_kernel(
        *module, function.name, [](std::string_view) { return std::optional<uint64_t>(0x10000); });
    const bool small =
        kernel.ok() && (*kernel)->shared_bytes < 1 << 16 && (*kernel)->stack_bytes < 1 << 16;
    if (small) run(*kernel);
  }
  return 0;
}
