// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The little of CUDA the examples use, so that one source makes a driver-API program
// (gpu_driver.cc) and a runtime-API program (gpu_runtime.cc). Whatever fails ends the program with
// exit code 1 and one line that names the call. One device; as thread-safe as CUDA is.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/kernels.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace examples::gpu {

using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraphExec_st*;

const char* api_name();  // "driver" or "runtime"

int device_count();

// Call once, before anything else but device_count().
void init(int device = 0);

Stream make_stream();  // does not synchronise with the default stream
void destroy(Stream stream);
Event make_event();
void destroy(Event event);

void copy_in(void* device, const void* host, size_t bytes, Stream stream);
void copy_out(void* host, const void* device, size_t bytes, Stream stream);
void copy_within(void* to, const void* from, size_t bytes, Stream stream);  // device to device
void fill_zero(void* device, size_t bytes, Stream stream);

void record(Event event, Stream stream);
void wait(Stream stream, Event event);
void synchronize(Stream stream);
void synchronize(Event event);
double seconds_between(Event start, Event end);  // device time

// Tells profilers, and `sealane run --stats`, which part of the run is measured.
void start_profile();
void stop_profile();

// Runs the kernel's items, 128 to a block. `parameters` is the kernel's structure.
void launch(KernelId kernel, size_t items, const void* parameters, Stream stream);

template <typename Kernel>
void launch(const Kernel& kernel, Stream stream) {
  launch(KernelIdOf<Kernel>::value, kernel.items(), &kernel, stream);
}

// The two halves of capture().
void begin_capture(Stream stream);
Graph end_capture(Stream stream);

// What `fill` launches on the stream, to be launched again as a whole. Nothing runs now; `fill`
// must not wait for anything, and its kernels keep the parameters they have now.
template <typename Fill>
Graph capture(Stream stream, Fill&& fill) {
  begin_capture(stream);
  fill();
  return end_capture(stream);
}
void launch(Graph graph, Stream stream);
void destroy(Graph graph);

void* allocate(size_t bytes);
void release(void* device) noexcept;
void* allocate_pinned(size_t bytes);
void release_pinned(void* host) noexcept;

// Owns `size()` elements of device memory, or of pinned host memory.
template <typename T, void* (*Allocate)(size_t), void (*Release)(void*) noexcept>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) : data_(static_cast<T*>(Allocate(size * sizeof(T)))), size_(size) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) Release(data_);
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t index) const { return data_[index]; }  // pinned memory only

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
using DeviceBuffer = Buffer<T, allocate, release>;
template <typename T>
using PinnedBuffer = Buffer<T, allocate_pinned, release_pinned>;

// Device time from construction to stop(): the part of the run that is measured. Nothing should be
// under way on other streams.
class Stopwatch {
 public:
  explicit Stopwatch(Stream stream) : start_(make_event()), end_(make_event()) {
    start_profile();
    record(start_, stream);
  }
  ~Stopwatch() {
    destroy(start_);
    destroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Waits until `stream` is done.
  double stop(Stream stream) {
    record(end_, stream);
    synchronize(end_);
    stop_profile();
    return seconds_between(start_, end_);
  }

 private:
  Event start_;
  Event end_;
};

}  // namespace examples::gpu
