// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What all versions of NCCL's interface share: calls translated to src/net, errors to NCCL's codes,
// words to NCCL's log. No policy here. Whatever goes wrong is a code and one line in NCCL's log; no
// exception leaves.
//
// Never plaintext: without credentials init() fails, with a line that says what to set. NCCL then
// stops if NCCL_NET=Sealane is set, and would otherwise fall back to its own, unsealed sockets:
// `sealane env nccl` prints the lines that prevent that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/abi.h"

namespace sealane::nccl {

extern const char* const kPluginName;  // "Sealane"; another where nothing is sealed

// Once per init and once per finalize, which newer interfaces do for a communicator: `context` is
// what its connections are made for, NCCL's id of it, which all its ranks know. Null where the
// interface does not say. Never freed: a split communicator uses its parent's for as long as it
// likes. What was begun for a communicator and never finished ends with its last finalize.
Code start(Logger logger, uint64_t communicator = 0, void** context = nullptr);
Code stop(const void* context = nullptr);

Code count_devices(int* count);
Code open_listener(const void* context, int device, void* handle, void** comm);
Code open_sender(const void* context, void* handle, void** comm);
Code open_receiver(void* listen_comm, void** comm);
Code register_memory(void* comm, void* data, size_t bytes, int type, void** memory);
Code release_memory(void* comm, void* memory);
Code send(void* comm, void* data, size_t bytes, void* memory, void** request);
Code receive(void* comm, int n, void** data, const size_t* sizes, void** memory, void** request);
Code flush(void** request);
Code test(void* request, int* done, int* sizes);
Code close_sender(void* comm);
Code close_receiver(void* comm);
Code close_listener(void* comm);

struct DeviceFacts {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;  // kPointerHost, kPointerCuda
  int speed;
};
Code describe(int device, DeviceFacts* facts);

}  // namespace sealane::nccl
