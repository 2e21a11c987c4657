// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How a copy is carried out.
//
//   1. locate   both sides: device memory, pinned or pageable host memory; wild ranges end here
//   2. route    host and device side decide: open or sealed crossing, device copy, host copy, peer
//   3. run      open: the stream's queue moves the bytes, the caller waits only if CUDA says so
//               sealed: the caller waits until its stream has drained, then seals (or opens)
//               message by message while the queue's thread does the other end; where the
//               configuration says so a pageable source is staged and a thread does that instead
// In CC mode every copy of a context holds its copy mutex in stage 3: they are serialised, and
// positions follow in the order of their use.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/wait_word.h"
#include "emu/device/thread.h"
#include "emu/driver/api.h"

namespace sealane::emu {
namespace {

constexpr uint64_t kSnapshotMax = 64_KiB;  // a pageable source this small is staged at once
constexpr uint64_t kPeerChunk = 16_MiB;

struct Located {
  Strided bytes;
  Gpu* gpu = nullptr;  // nullptr: host
  bool pinned = false;
};

// More bytes than there are addresses.
bool is_endless(const CopyOperation& copy, const CopySide& side) {
  uint64_t bytes = 0;
  uint64_t rows = 0;
  uint64_t slices = 0;
  return __builtin_mul_overflow(copy.width, copy.height, &bytes) ||
         __builtin_mul_overflow(bytes, copy.depth, &bytes) ||
         __builtin_mul_overflow(side.pitch, copy.height - (copy.height > 0 ? 1 : 0), &rows) ||
         __builtin_mul_overflow(side.slice, copy.depth - (copy.depth > 0 ? 1 : 0), &slices) ||
         __builtin_add_overflow(rows, slices, &rows) ||
         __builtin_add_overflow(rows, copy.width, &rows) ||
         __builtin_add_overflow(rows, side.address, &rows);
}

CUresult locate(Driver& d, const CopyOperation& copy, const CopySide& side, bool writes,
                Located& out) {
  const bool rows_fit =
      (copy.height <= 1 || side.pitch >= copy.width) &&
      (copy.depth <= 1 || side.slice >= side.pitch * (copy.height - 1) + copy.width);
  if (side.address == 0 || !rows_fit) return CUDA_ERROR_INVALID_VALUE;
  out.bytes = {nullptr, copy.width, copy.height, copy.depth, side.pitch, side.slice};
  const uint64_t extent = out.bytes.extent();
  out.gpu = d.gpu_of(side.address);
  if (out.gpu != nullptr) {
    if (side.side == Side::host) return CUDA_ERROR_INVALID_VALUE;
    out.bytes.base = out.gpu->memory.translate(side.address, extent);
    return out.bytes.base != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  auto* memory = reinterpret_cast<uint8_t*>(side.address);
  out.pinned = d.host.covers(side.address, extent);
  if (!out.pinned) {
    if (side.side == Side::device || d.host.find(side.address)) return CUDA_ERROR_INVALID_VALUE;
    if (!host_range_usable(memory, extent, writes)) return CUDA_ERROR_INVALID_VALUE;
  }
  out.bytes.base = memory;
  return CUDA_SUCCESS;
}

// The caller's wait for the queue to reach its copy, and the queue's for the caller's plan.
class Rendezvous {
 public:
  enum State : uint32_t { queued, reached, planned, abandoned };

  // When, on the modelled machine's clock, the queue reached the copy; 0: it never will.
  RealNs await_reached() { return await(queued) != abandoned ? reached_at_ : 0; }
  const Transfer* await_planned() { return await(reached) == planned ? &transfer_ : nullptr; }
  void reach() {
    reached_at_ = thread_ns();
    state_.set(reached);
  }
  void abandon() { state_.set(abandoned); }
  void plan(Transfer transfer) {
    transfer_ = std::move(transfer);
    state_.set(planned);
  }

 private:
  uint32_t await(uint32_t not_this) {
    state_.wait_while(not_this);
    return state_.get();
  }
  WaitWord<uint32_t> state_{queued};
  RealNs reached_at_ = 0;
  Transfer transfer_;
};

// Lives in the command: when the command goes without having been run, so does the wait for it.
struct Abandon {
  explicit Abandon(std::shared_ptr<Rendezvous> r) : rendezvous(std::move(r)) {}
  ~Abandon() {
    if (!ran) rendezvous->abandon();
  }
  Abandon(const Abandon&) = delete;
  Abandon& operator=(const Abandon&) = delete;
  std::shared_ptr<Rendezvous> rendezvous;
  bool ran = false;
};

// The device moves bytes: that takes the modelled time, not ours.
void move(const Strided& from, const Strided& to) {
  const ClockStop still;
  copy_strided(from, to);
}

double toll_ns(const PathModel& model, bool pageable) {
  return ns_from_us(pageable ? model.cc_pageable_toll_us : model.cc_toll_us);
}

// A sealed copy whose command stands in its stream: what the host's side needs to do its part.
struct SealedCopy {
  std::shared_ptr<Context> context;
  std::shared_ptr<Rendezvous> rendezvous;
  Fence fence;
  Strided host;  // what is sealed, or where it is opened to
  bool inbound = true;
  bool pageable = false;
  std::shared_ptr<uint8_t[]> snapshot;  // keeps `host`, if that is ours
};

// Waits until the stream has got there, then seals (or opens) message by message.
CUresult run_host_side(const SealedCopy& copy) {
  Context& context = *copy.context;
  SealedChannel& channel = copy.inbound ? *context.to_device() : *context.to_host();
  const PathModel& model = copy.inbound ? config()->model.to_device : config()->model.to_host;
  const RealNs reached_at = copy.rendezvous->await_reached();
  if (reached_at == 0) return finish(context, copy.fence);

  Context::CopyTurn turn(context);
  if (context.over()) {  // the copy before us failed
    copy.rendezvous->abandon();
    return finish(context, copy.fence);
  }
  Transfer transfer = channel.plan(copy.host.bytes(), copy.pageable);
  transfer.start =
      std::max(reached_at, turn.began_at()) + real_ns_of(toll_ns(model, copy.pageable));
  copy.rendezvous->plan(transfer);
  sleep_until(transfer.start);
  const bool genuine = copy.inbound ? channel.host_send(transfer, copy.host)
                                    : channel.host_receive(transfer, copy.host);
  if (!genuine) context.fail(static_cast<CUresult>(kRefused));
  return finish(context, copy.fence);
}

// The bytes of a source as they are now, end to end.
std::shared_ptr<uint8_t[]> take_snapshot(Strided& source) {
  std::shared_ptr<uint8_t[]> snapshot(new uint8_t[source.bytes()]);
  source.gather(0, source.bytes(), snapshot.get());
  source.base = snapshot.get();
  source.pitch = source.width;
  source.slice = source.width * source.height;
  return snapshot;
}

CUresult sealed_crossing(ResolvedStream& stream, const Located& from, const Located& to,
                         bool wait) {
  SealedCopy copy;
  copy.context = stream.context;
  copy.inbound = to.gpu != nullptr;
  copy.host = copy.inbound ? from.bytes : to.bytes;
  copy.pageable = copy.inbound ? !from.pinned : !to.pinned;
  copy.rendezvous = std::make_shared<Rendezvous>();
  SealedChannel& channel = copy.inbound ? *copy.context->to_device() : *copy.context->to_host();

  auto abandon = std::make_shared<Abandon>(copy.rendezvous);
  Command command;
  command.run = [abandon, &channel, inbound = copy.inbound, from = from.bytes, to = to.bytes] {
    abandon->ran = true;
    abandon->rendezvous->reach();
    const Transfer* transfer = abandon->rendezvous->await_planned();
    if (transfer == nullptr) return CUDA_SUCCESS;
    const bool genuine =
        inbound ? channel.device_receive(*transfer, to) : channel.device_send(*transfer, from);
    return genuine ? CUDA_SUCCESS : static_cast<CUresult>(kRefused);
  };
  abandon.reset();
  const bool staged = !wait && copy.inbound && copy.pageable && config()->pageable_async;
  if (staged) copy.snapshot = take_snapshot(copy.host);
  copy.fence = copy.context->submit(stream.stream, std::move(command));
  if (staged && start_thread("sealane-emu-copy", [copy] { run_host_side(copy); })) {
    return CUDA_SUCCESS;
  }
  return run_host_side(copy);
}

CUresult open_crossing(ResolvedStream& stream, const Located& from, const Located& to, bool wait) {
  Context& context = *stream.context;
  const bool inbound = to.gpu != nullptr;
  const bool pageable = inbound ? !from.pinned : !to.pinned;
  const uint64_t bytes = from.bytes.bytes();
  const PathModel& model = inbound ? config()->model.to_device : config()->model.to_host;
  double cost = ns_at(model.off_link_gb_per_s, bytes);
  cost += ns_from_us(pageable ? model.off_pageable_latency_us : model.off_latency_us);
  if (pageable) cost += ns_at(model.off_staging_gb_per_s, bytes);
  Server& link = inbound ? context.gpu().link_to_device : context.gpu().link_to_host;

  Strided source = from.bytes;
  std::shared_ptr<uint8_t[]> snapshot;
  if (pageable && !wait) {
    if (inbound && bytes <= kSnapshotMax) {
      snapshot = take_snapshot(source);
    } else {
      wait = true;
    }
  }
  Command command;
  command.run = [source, snapshot, target = to.bytes, cost, &link] {
    const RealNs began = thread_ns();
    move(source, target);
    link.serve(began, cost);
    return CUDA_SUCCESS;
  };
  const Fence fence = context.submit(stream.stream, std::move(command));
  return wait ? finish(context, fence) : CUDA_SUCCESS;
}

// Within one device, between two of them with CC off, or within the host.
CUresult plain_copy(ResolvedStream& stream, const Located& from, const Located& to, bool wait) {
  const Model& model = config()->model;
  const bool in_host = from.gpu == nullptr && to.gpu == nullptr;
  const uint64_t bytes = from.bytes.bytes();
  double cost = 0;
  if (in_host) {
    cost = ns_at(model.host_memcpy_gb_per_s, bytes);
    wait = wait || !from.pinned || !to.pinned;
  } else if (from.gpu != to.gpu) {
    cost = ns_at(model.to_host.off_link_gb_per_s, bytes);
  } else {
    cost = ns_from_us(stream.context->sealed() ? model.gpu_copy_cc_us : model.gpu_copy_off_us) +
           ns_at(model.gpu_copy_gb_per_s, bytes);
  }
  Command command;
  command.run = [source = from.bytes, target = to.bytes, cost] {
    const RealNs began = thread_ns();
    move(source, target);
    sleep_until(began + real_ns_of(cost));
    return CUDA_SUCCESS;
  };
  const Fence fence = stream.context->submit(stream.stream, std::move(command));
  return wait ? finish(*stream.context, fence) : CUDA_SUCCESS;
}

// Between two GPUs in CC mode: out sealed, in sealed, through private memory of the driver. Rows
// that do not lie end to end travel in one go.
CUresult sealed_peer_copy(ResolvedStream& stream, const Located& from, const Located& to) {
  const uint64_t bytes = from.bytes.bytes();
  const bool whole = !from.bytes.contiguous() || !to.bytes.contiguous();
  const uint64_t chunk_max = whole ? bytes : std::min(bytes, kPeerChunk);
  const auto buffer = std::make_unique<uint8_t[]>(chunk_max);
  for (uint64_t offset = 0; offset < bytes; offset += chunk_max) {
    const uint64_t chunk = std::min(chunk_max, bytes - offset);
    const Located here{Strided::flat(buffer.get(), chunk), nullptr, true};
    Located source = from;
    Located target = to;
    if (!whole) {
      source.bytes = Strided::flat(from.bytes.base + offset, chunk);
      target.bytes = Strided::flat(to.bytes.base + offset, chunk);
    }
    CUresult result = sealed_crossing(stream, source, here, true);
    if (result == CUDA_SUCCESS) result = sealed_crossing(stream, here, target, true);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cross(ResolvedStream& stream, const Located& from, const Located& to, bool wait) {
  DirectionCounters& truth = to.gpu != nullptr ? counters().to_device : counters().to_host;
  const RealNs began = thread_ns();
  const CUresult result = stream.context->sealed() ? sealed_crossing(stream, from, to, wait)
                                                   : open_crossing(stream, from, to, wait);
  ++truth.copies;
  truth.bytes += from.bytes.bytes();
  truth.blocked_ns += thread_ns() - began;
  return result;
}

}  // namespace

CUresult run_copy(Driver& d, ResolvedStream& stream, const CopyOperation& copy, bool wait) {
  if (is_endless(copy, copy.from) || is_endless(copy, copy.to)) return CUDA_ERROR_INVALID_VALUE;
  if (copy.bytes() == 0) return CUDA_SUCCESS;
  Located from;
  Located to;
  CUresult result = locate(d, copy, copy.from, false, from);
  if (result == CUDA_SUCCESS) result = locate(d, copy, copy.to, true, to);
  if (result != CUDA_SUCCESS) return result;
  if ((from.gpu == nullptr) != (to.gpu == nullptr)) return cross(stream, from, to, wait);
  if (from.gpu != nullptr) {
    ++counters().device_copies;
    counters().device_copy_bytes += copy.bytes();
  }
  if (from.gpu == to.gpu) return plain_copy(stream, from, to, wait);
  ++counters().peer_copies;
  return stream.context->sealed() ? sealed_peer_copy(stream, from, to)
                                  : plain_copy(stream, from, to, wait);
}

}  // namespace sealane::emu
