// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "scenario/program_builder.h"

#include <utility>

#include "base/bytes.h"

namespace sealane::test {
namespace {

constexpr uint64_t kHostBase = 0x7f00'0000'0000;
constexpr uint64_t kDeviceBase = 0x10'0000'0000;
constexpr uint64_t kBufferSpacing = 1_GiB;

}  // namespace

ProgramBuilder::ProgramBuilder(workload::Program& program) : program_(program) {
  add(workload::CreateContext{kContext});
}

void ProgramBuilder::add(workload::Action action) {
  workload::Operation operation;
  operation.thread = thread_;
  operation.think = std::exchange(think_, Duration(0));
  operation.action = std::move(action);
  program_.push_back(std::move(operation));
}

ProgramBuilder::Buffer* ProgramBuilder::find_buffer(const std::string& name) {
  const auto found = buffers_.find(name);
  return found != buffers_.end() ? &found->second : nullptr;
}

ProgramBuilder::Buffer& ProgramBuilder::add_buffer(const std::string& name, uint64_t bytes) {
  const uint64_t offset = buffers_.size() * kBufferSpacing;
  return buffers_[name] = Buffer{kHostBase + offset, kDeviceBase + offset, bytes};
}

void ProgramBuilder::allocate(Buffer& buffer) {
  if (!std::exchange(buffer.allocated, true)) {
    add(workload::AllocateHost{{buffer.host, buffer.bytes}, buffer.memory});
  }
  if (!std::exchange(buffer.on_device, true)) {
    add(workload::AllocateDevice{kContext, buffer.device, buffer.bytes});
  }
}

workload::StreamId ProgramBuilder::stream(const std::string& name) {
  const auto [found, fresh] =
      streams_.try_emplace(name, workload::StreamId{static_cast<uint32_t>(streams_.size() + 1)});
  if (fresh)
    add(workload::CreateStream{found->second, kContext, workload::StreamKind::non_blocking});
  return found->second;
}

workload::EventId ProgramBuilder::event(const std::string& name) {
  const auto [found, fresh] =
      events_.try_emplace(name, workload::EventId{static_cast<uint32_t>(events_.size() + 1)});
  if (fresh) add(workload::CreateEvent{found->second});
  return found->second;
}

}  // namespace sealane::test
