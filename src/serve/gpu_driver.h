// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The real driver, as the runtime needs it. The preload implements it with the functions it found
// behind its hooks; tests bring a fake. Handles are the driver's own, opaque here. Codes are
// CUDA's: 0 is success.
//
// Thread-safe, as CUDA is. Calls that need a current context set and restore the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "core/copy.h"

namespace sealane::serve {

using Code = int;
constexpr Code kSuccess = 0;
constexpr Code kForged = 214;  // what a context fails with whose messages did not verify
constexpr Code kNotReady = 600;
constexpr Code kIllegalAddress = 700;
constexpr Code kNotSupported = 801;

struct Handle;                  // never defined
using ContextHandle = Handle*;  // CUcontext
using StreamHandle = Handle*;   // CUstream; default streams by their names (1 legacy, 2 per thread)
using EventHandle = Handle*;    // CUevent

constexpr uintptr_t kLegacyStream = 1;
constexpr uintptr_t kPerThreadStream = 2;

// A context of ours, with one stream and some words of device memory for gates.
struct CopyContext {
  ContextHandle context = nullptr;
  StreamHandle stream = nullptr;
};

// Bytes that change their place within the device.
struct DeviceMove {
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t bytes = 0;
};

class GpuDriver {
 public:
  // --- contexts of ours
  virtual Code make_context(int device, CopyContext& out) = 0;
  // Called first on every thread of ours that calls the driver: a program's capture is not its
  // business.
  virtual void enter_thread() = 0;
  virtual void drop_context(const CopyContext& lane) = 0;
  virtual Code allocate(const CopyContext& lane, uint64_t bytes, uint64_t& address) = 0;
  // Host memory pinned by the driver, for all contexts.
  virtual Code allocate_host(const CopyContext& lane, uint64_t bytes, void*& out) = 0;
  virtual void free_host(void* memory) = 0;
  // Returns when the copy is done, as copies do in CC mode.
  virtual Code copy(const CopyContext& lane, Direction direction, uint64_t device, void* host,
                    uint64_t bytes) = 0;
  // In this order, behind everything copied before; returns when all are done.
  virtual Code move_within(const CopyContext& lane, std::span<const DeviceMove> moves) = 0;
  // Writes `value` to a word of device memory behind everything copied before.
  virtual Code set_word(const CopyContext& lane, uint64_t address, uint32_t value) = 0;

  // --- the program's memory
  // Does the driver know what this is: of a device, managed, pinned, registered? Then others than
  // the CPU may write it. All else is pageable.
  virtual bool knows(uint64_t address) = 0;

  // --- streams of the program
  virtual Code context_of(StreamHandle stream, ContextHandle& out) = 0;
  virtual Code device_of(ContextHandle context, int& out) = 0;
  virtual Code make_event(ContextHandle context, EventHandle& out) = 0;
  virtual void drop_event(EventHandle event) = 0;
  virtual Code record(EventHandle event, StreamHandle stream) = 0;
  virtual Code query(EventHandle event) = 0;
  virtual Code wait_word(StreamHandle stream, uint64_t address, uint32_t value) = 0;
  virtual Code run_on_host(StreamHandle stream, void (*function)(void*), void* data) = 0;
  virtual Code synchronise(ContextHandle context) = 0;
  // Makes a context of the program's fail, as it would have if a message of its own had been
  // forged: nothing that is in its streams runs any more. Success: it has failed.
  virtual Code fail_context(ContextHandle context, uint64_t device_address) = 0;
  // The same as set_word(), from a new stream in a context of the program. A last resort: it could
  // share a hardware queue with work that waits for the word.
  virtual Code set_word_there(ContextHandle context, uint64_t address, uint32_t value) = 0;

 protected:
  ~GpuDriver() = default;
};

}  // namespace sealane::serve
