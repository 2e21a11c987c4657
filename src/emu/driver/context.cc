// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/driver/context.h"

#include <algorithm>

#include "emu/driver/thread_state.h"

namespace sealane::emu {
namespace {

std::atomic<uint64_t> contexts_made{0};

}  // namespace

Context::Context(Gpu& gpu, unsigned flags) : gpu_(gpu), id_(++contexts_made), flags_(flags) {
  for (int i = 0; i < config()->queues; ++i) {
    queues_.push_back(std::make_shared<HardwareQueue>(health_));
  }
  legacy_ = create_stream_locked(CU_STREAM_DEFAULT, 0);
  ++counters().contexts;
}

std::shared_ptr<Context> Context::create(Gpu& gpu, unsigned flags) {
  std::shared_ptr<Context> made(new Context(gpu, flags));
  if (!made->queues_.front()->start()) return nullptr;
  if (!config()->cc) return made;
  made->to_device_ = SealedChannel::create(Direction::to_device, 2 * made->id_, gpu.link_to_device);
  made->to_host_ = SealedChannel::create(Direction::to_host, 2 * made->id_ + 1, gpu.link_to_host);
  return made->to_device_ && made->to_host_ ? made : nullptr;
}

void Context::close() {
  health_->closing.store(true);
  gpu_.announce_change();  // whoever waits for a value gives up
  synchronise();
  const std::lock_guard lock(order_mutex_);
  for (const auto& queue : queues_) queue->stop();
}

CUresult Context::enable_peer(const Context& peer) {
  if (config()->cc || &peer.gpu_ == &gpu_) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard lock(peer_mutex_);
  const bool added = peer_contexts_.emplace(peer.id_, peer.gpu_.ordinal).second;
  peers_ |= uint32_t{1} << peer.gpu_.ordinal;
  return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult Context::disable_peer(const Context& peer) {
  const std::lock_guard lock(peer_mutex_);
  if (peer_contexts_.erase(peer.id_) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  uint32_t left = 0;
  for (const auto& [id, ordinal] : peer_contexts_) left |= uint32_t{1} << ordinal;
  peers_ = left;
  return CUDA_SUCCESS;
}

void Context::fail(CUresult result) {
  if (health_->fail(result)) ++counters().contexts_failed;
  gpu_.announce_change();
}

// In turn, but one that fewest streams use: whether two share one does not depend on how many there
// were before them.
const std::shared_ptr<HardwareQueue>& Context::queue_for_next_stream_locked() {
  std::vector<size_t> users;
  for (const auto& queue : queues_) {
    users.push_back(static_cast<size_t>(
        std::count_if(streams_.begin(), streams_.end(),
                      [&](const auto& stream) { return stream->uses(*queue); })));
  }
  size_t best = next_queue_ % queues_.size();
  for (size_t i = 1; i < queues_.size(); ++i) {
    const size_t other = (next_queue_ + i) % queues_.size();
    if (users[other] < users[best]) best = other;
  }
  next_queue_ = best + 1;
  return queues_[best];
}

std::shared_ptr<Stream> Context::create_stream_locked(unsigned flags, int priority) {
  const auto& queue = queue_for_next_stream_locked();
  auto stream = std::make_shared<Stream>(queue, flags, priority, next_stream_id_++);
  streams_.push_back(stream);
  return stream;
}

std::shared_ptr<Stream> Context::create_stream(unsigned flags, int priority) {
  const std::lock_guard lock(order_mutex_);
  return create_stream_locked(flags, priority);
}

std::shared_ptr<Stream> Context::per_thread() {
  const std::lock_guard lock(order_mutex_);
  auto& mine = thread_streams_[&thread_state()];
  if (!mine) mine = create_stream_locked(CU_STREAM_DEFAULT, 0);
  return mine;
}

void Context::forget_stream(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(order_mutex_);
  std::erase(streams_, stream);
  std::erase_if(ending_, [](const auto& other) { return other->idle(); });
  if (!stream->idle()) ending_.push_back(stream);
}

std::vector<Fence> Context::tails_locked(bool blocking_only) {
  std::vector<Fence> tails;
  for (const auto& stream : streams_) {
    if (!stream->idle() && (!blocking_only || stream->blocking())) tails.push_back(stream->tail());
  }
  for (const auto& stream : ending_) {
    if (!stream->idle()) tails.push_back(stream->tail());
  }
  return tails;
}

Fence Context::submit(const std::shared_ptr<Stream>& stream, Command command) {
  const std::lock_guard lock(order_mutex_);
  if (stream == legacy_) {
    for (Fence& tail : tails_locked(true)) command.after.push_back(std::move(tail));
  } else if (stream->blocking() && !legacy_->idle()) {
    command.after.push_back(legacy_->tail());
  }
  // What a command did to device memory may be what another stream waits for.
  command.run = [this, run = std::move(command.run)] {
    const CUresult result = run ? run() : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) fail(result);
    gpu_.announce_change();
    return result;
  };
  return stream->submit(std::move(command));
}

void Context::synchronise() {
  std::vector<Fence> tails;
  {
    const std::lock_guard lock(order_mutex_);
    tails = tails_locked(false);
  }
  for (const Fence& tail : tails) tail.wait();
}

bool Context::idle() {
  const std::lock_guard lock(order_mutex_);
  return tails_locked(false).empty();
}

}  // namespace sealane::emu
