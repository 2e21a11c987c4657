// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA context on an emulated GPU: its streams, hardware queues and, in CC mode, its two sealed
// channels. A failure is sticky: every later call that uses the context returns it.
//
// Thread-safe. Lock order: order_mutex_ before a queue's. A CopyTurn is taken by copies alone, on
// the caller's thread, after their stream has drained.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emu/channel/channel.h"
#include "emu/device/gpu.h"
#include "emu/device/stream.h"

namespace sealane::emu {

class Context : public std::enable_shared_from_this<Context> {
 public:
  // nullptr if the sealed channels or a thread for its work cannot be had.
  static std::shared_ptr<Context> create(Gpu& gpu, unsigned flags);

  // Ends: runs nothing more, waits for what runs, gives memory back.
  void close();

  Gpu& gpu() const { return gpu_; }
  uint64_t id() const { return id_; }
  unsigned flags() const { return flags_; }
  void set_flags(unsigned flags) { flags_ = flags; }
  CUresult failure() const { return static_cast<CUresult>(health_->failure.load()); }
  bool over() const { return health_->over(); }
  void fail(CUresult result);

  const std::shared_ptr<Stream>& legacy() const { return legacy_; }
  std::shared_ptr<Stream> per_thread();  // of the calling thread
  std::shared_ptr<Stream> create_stream(unsigned flags, int priority);
  void forget_stream(const std::shared_ptr<Stream>& stream);

  // Appends a command, ordered with the legacy stream as CUDA says.
  Fence submit(const std::shared_ptr<Stream>& stream, Command command);
  void synchronise();
  bool idle();

  // Other GPUs whose memory kernels of this context may use.
  CUresult enable_peer(const Context& peer);
  CUresult disable_peer(const Context& peer);
  bool reaches(const Gpu& gpu) const {
    return &gpu == &gpu_ || (peers_.load() >> gpu.ordinal & 1) != 0;
  }

  // Copies of a context in CC mode take turns. Lives as long as the copy does.
  class CopyTurn {
   public:
    explicit CopyTurn(Context& context) : context_(context), lock_(context.copy_mutex_) {}
    ~CopyTurn() { context_.copy_ended_at_ = thread_ns(); }
    CopyTurn(const CopyTurn&) = delete;
    CopyTurn& operator=(const CopyTurn&) = delete;

    // When the copy before ended, on the modelled machine's clock.
    RealNs began_at() const { return context_.copy_ended_at_; }

   private:
    Context& context_;
    const std::lock_guard<std::mutex> lock_;
  };

  SealedChannel* to_device() { return to_device_.get(); }
  SealedChannel* to_host() { return to_host_.get(); }
  bool sealed() const { return to_device_ != nullptr; }

 private:
  Context(Gpu& gpu, unsigned flags);
  const std::shared_ptr<HardwareQueue>& queue_for_next_stream_locked();
  std::shared_ptr<Stream> create_stream_locked(unsigned flags, int priority);
  std::vector<Fence> tails_locked(bool blocking_only);

  Gpu& gpu_;
  const uint64_t id_;
  std::atomic<unsigned> flags_;
  const std::shared_ptr<Health> health_ = std::make_shared<Health>();
  std::unique_ptr<SealedChannel> to_device_;
  std::unique_ptr<SealedChannel> to_host_;
  std::mutex copy_mutex_;
  RealNs copy_ended_at_ = 0;  // guarded by copy_mutex_

  std::mutex peer_mutex_;
  std::map<uint64_t, int> peer_contexts_;  // id → ordinal of its GPU
  std::atomic<uint32_t> peers_{0};         // ordinals, as bits

  std::mutex order_mutex_;  // submissions, and what follows
  std::vector<std::shared_ptr<HardwareQueue>> queues_;
  size_t next_queue_ = 0;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Stream>> ending_;  // destroyed by the program, still at work
  std::map<const void*, std::shared_ptr<Stream>> thread_streams_;
  std::shared_ptr<Stream> legacy_;
  uint64_t next_stream_id_ = 1;
};

}  // namespace sealane::emu
