// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A network plugin as NCCL loads it: any libnccl-net-*.so, any version of the interface from 8 on,
// seen through one set of calls. Nothing here waits or retries: that is NCCL's part, and so the
// player's.
//
// Concurrency: as NCCL's: the calls of one communicator from one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "nccl/abi.h"

namespace sealane::nccl {

using HandleBytes = std::array<uint8_t, kHandleBytes>;

struct DeviceProperties {
  std::string name;
  int pointer_support = 0;
  int receives_max = 0;
  size_t bytes_max = 0;  // 0: not said
};

class PluginTable {
 public:
  static constexpr int kOldest = 8;
  static constexpr int kNewest = 12;

  // `version` 0: the newest the file has. A usage error says what is missing.
  static Result<std::unique_ptr<PluginTable>> load(const std::string& path, int version = 0);
  ~PluginTable();

  int version() const { return version_; }
  const char* name() const;
  // The name of a function the table should have and has not, or nothing.
  std::optional<std::string> missing() const;

  Code init(void** context, uint64_t communicator, Logger logger) const;
  Code finalize(void* context) const;  // does nothing where the version has none
  Code devices(int* count) const;
  Code properties(int device, DeviceProperties* out) const;
  Code listen(void* context, int device, HandleBytes& handle, void** comm) const;
  Code connect(void* context, int device, HandleBytes& handle, void** comm) const;
  Code accept(void* listen_comm, void** comm) const;
  Code register_memory(void* comm, void* data, size_t bytes, void** memory,
                       int type = kPointerHost) const;
  Code release_memory(void* comm, void* memory) const;
  Code isend(void* comm, void* data, size_t bytes, void* memory, void** request) const;
  Code irecv(void* comm, void* data, size_t bytes, void* memory, void** request) const;
  Code iflush(void* comm, void* data, size_t bytes, void* memory, void** request) const;
  Code test(void* request, int* done, int* size) const;
  // NCCL says so of every receive whose bytes have been used, if there is somebody to tell.
  Code consumed(void* comm, void* request) const;
  Code close_send(void* comm) const;
  Code close_receive(void* comm) const;
  Code close_listen(void* comm) const;

 private:
  PluginTable(void* library, const void* table, int version)
      : library_(library), table_(table), version_(version) {}

  // Calls `body` with the table as the type its version has.
  template <typename Body>
  auto with(Body body) const;

  void* library_;
  const void* table_;
  int version_;
};

std::string_view code_name(Code code);

}  // namespace sealane::nccl
