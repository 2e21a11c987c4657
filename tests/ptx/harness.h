// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A device made of vectors, for tests of src/ptx without a driver: memory with bounds, launches.
//
// One thread launches at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ptx/decode/decode.h"
#include "ptx/exec/executor.h"

namespace sealane::ptx {

class TestDevice : public Device {
 public:
  uint64_t add(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const uint64_t address = next_;
    next_ += (bytes + 4095) & ~uint64_t{4095};
    next_ += 4096;
    blocks_[address].assign(bytes, 0);
    return address;
  }
  uint8_t* at(uint64_t address) {
    const std::lock_guard lock(mutex_);
    return blocks_.at(address).data();
  }
  Window find(uint64_t address) override {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return {};
    --after;
    return {after->first, after->second.size(), after->second.data()};
  }
  uint64_t allocate(uint64_t bytes) override { return bytes > 1 << 20 ? 0 : add(bytes); }
  bool release(uint64_t address) override { return find(address).start == address; }
  void print(std::string_view text) override { printed += text; }
  bool cancelled() override { return false; }
  uint64_t now_ns() override { return 0; }
  uint64_t clock() override { return clock_value; }

  std::string printed;
  uint64_t clock_value = 0;

 private:
  std::mutex mutex_;
  uint64_t next_ = 0x7000'0000'0000;
  std::map<uint64_t, std::vector<uint8_t>> blocks_;
};

struct Launched {
  Fault fault = Fault::none;
  std::string message;
  std::string printed;
  Counts counts;
};

class Program {
 public:
  explicit Program(std::string text) {
    auto parsed = parse_module(std::move(text));
    if (!parsed) {
      error = parsed.error().message;
      return;
    }
    module = *parsed;
    for (const Variable& variable : module->variables) {
      if (variable.space == Space::shared || variable.bytes == 0) continue;
      variables[variable.name] = device.add(variable.bytes);
    }
    for (const Variable& variable : module->variables) initialise(variable);
  }

  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  Result<std::shared_ptr<const Kernel>> kernel(std::string_view name) {
    return decode_kernel(module, name, [&](std::string_view variable) -> std::optional<uint64_t> {
      const auto found = variables.find(std::string(variable));
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
  }

  template <typename... Arguments>
  Launched run(std::string_view name, LaunchShape shape, const Arguments&... arguments) {
    auto found = kernel(name);
    if (!found) return {Fault::unsupported, found.error().message, {}, {}};
    Grid grid;
    grid.kernel = *found;
    grid.parameters.resize((*found)->parameter_bytes);
    size_t index = 0;
    (pack(grid, index++, &arguments, sizeof arguments), ...);
    return finish(grid, shape);
  }

  Launched finish(Grid& grid, const LaunchShape& shape) {
    grid.shape = shape;
    grid.device = &device;
    grid.blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    grid.resident_max = 64;
    grid.stack_limit = 16384;
    grid.workspace = device.add(16);
    Executor(workers).run(grid);
    return {static_cast<Fault>(grid.fault.load()), grid.message, grid.printed, grid.counts};
  }

  template <typename T>
  uint64_t buffer(const std::vector<T>& values) {
    const uint64_t address = device.add(values.size() * sizeof(T));
    std::memcpy(device.at(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T>
  std::vector<T> values(uint64_t address, size_t count) {
    std::vector<T> out(count);
    std::memcpy(out.data(), device.at(address), count * sizeof(T));
    return out;
  }

  unsigned workers = 2;
  std::string error;
  TestDevice device;
  std::shared_ptr<const Module> module;
  std::map<std::string, uint64_t> variables;

 private:
  void pack(Grid& grid, size_t index, const void* value, size_t bytes) {
    const Function::Part part = grid.kernel->parameters.at(index);
    ASSERT_EQ(part.bytes, bytes) << "argument " << index;
    std::memcpy(grid.parameters.data() + part.offset, value, bytes);
  }
  void initialise(const Variable& variable) {
    const auto place = variables.find(variable.name);
    if (place == variables.end()) return;
    uint8_t* memory = device.at(place->second);
    if (!variable.initial.empty()) {
      std::memcpy(memory, variable.initial.data(), variable.initial.size());
    }
    for (const Relocation& one : variable.relocations) {
      const auto symbol = variables.find(one.symbol);
      const uint64_t value =
          symbol != variables.end() ? symbol->second : function_address(*module, one.symbol);
      std::memcpy(memory + one.offset, &value, one.bytes);
    }
  }
};

}  // namespace sealane::ptx
