// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "transport/shm_fabric.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace sealane {

using Cursor = std::atomic<uint64_t>;
static_assert(Cursor::is_always_lock_free);

constexpr size_t kLine = 64;
constexpr uint32_t kLateRecords = 4;  // records per wake-up where cores are scarce
constexpr Duration kMovePause = std::chrono::milliseconds(1);
constexpr Duration kPatience = std::chrono::microseconds(100);  // where they are not

// ---- Segments ----

Result<SharedSegment> SharedSegment::create(size_t bytes) {
  const int descriptor = memfd_create("sealane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return io_error("cannot make shared memory", errno);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, seals) != 0) {
    const int error = errno;
    close(descriptor);
    return io_error("cannot size shared memory", error);
  }
  return map(descriptor, bytes);
}

Result<SharedSegment> SharedSegment::adopt(int descriptor, size_t bytes) {
  struct stat status {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  const bool fits = fstat(descriptor, &status) == 0 && seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
                    static_cast<size_t>(status.st_size) == bytes;
  if (!fits) {
    close(descriptor);
    return peer_error("the peer's shared memory has another size or could shrink");
  }
  return map(descriptor, bytes);
}

Result<SharedSegment> SharedSegment::map(int descriptor, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    close(descriptor);
    return io_error("cannot map shared memory", error);
  }
  return SharedSegment(descriptor, static_cast<uint8_t*>(data), bytes);
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

// ---- Layout of an outbox: doorbell, cursors of all wires, slots of all wires ----

struct ShmFabric::Doorbell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleeping;
  std::atomic<uint32_t> core_plus_one;  // where the owner ran when it last waited; 0: unknown
};

struct ShmFabric::Ring {
  Cursor* head;   // records committed
  Cursor* tails;  // one per reader, a line apart: records taken
  uint8_t* slots;
  uint32_t count;

  Cursor& tail(uint32_t reader) const {
    return *reinterpret_cast<Cursor*>(reinterpret_cast<uint8_t*>(tails) + reader * kLine);
  }
};

size_t ShmFabric::outbox_bytes(const WireShape& shape) {
  const size_t cursor_lines = 1 + size_t{2} * shape.size + 1 + shape.size;
  const size_t slots = size_t{shape.size} * shape.pair_slots + shape.broadcast_slots;
  return cursor_lines * kLine + slots * shape.slot_bytes();
}

ShmFabric::Ring ShmFabric::ring(uint32_t owner, uint32_t wire) const {
  uint8_t* base = outboxes_[owner].data();
  uint8_t* cursors = base + kLine + size_t{wire} * 2 * kLine;
  uint8_t* slots = base + (2 + size_t{3} * shape_.size) * kLine +
                   size_t{wire} * shape_.pair_slots * shape_.slot_bytes();
  return {reinterpret_cast<Cursor*>(cursors), reinterpret_cast<Cursor*>(cursors + kLine), slots,
          wire == shape_.size ? shape_.broadcast_slots : shape_.pair_slots};
}

ShmFabric::Doorbell& ShmFabric::doorbell(uint32_t rank) const {
  return *reinterpret_cast<Doorbell*>(outboxes_[rank].data());
}

ShmFabric::ShmFabric(const WireShape& shape, std::vector<SharedSegment> outboxes, bool cores_scarce,
                     std::vector<Socket> bells)
    : shape_(shape),
      outboxes_(std::move(outboxes)),
      cores_scarce_(cores_scarce),
      bells_(std::move(bells)),
      sent_(shape.size + 1),
      received_(size_t{2} * shape.size),
      unannounced_(shape.size) {
  SEALANE_CHECK(outboxes_.size() == shape_.size, "an outbox is missing");
}

ShmFabric::~ShmFabric() = default;

size_t ShmFabric::memory_bytes() const { return outboxes_[shape_.rank].bytes(); }

// ---- Sending ----

bool ShmFabric::writable(uint32_t wire) {
  const Ring out = ring(shape_.rank, wire);
  if (wire != shape_.size) {
    return sent_[wire] - out.tail(0).load() < out.count;
  }
  for (uint32_t reader = 0; reader < shape_.size; ++reader) {
    if (reader != shape_.rank && behind(reader)) return false;
  }
  return true;
}

bool ShmFabric::behind(uint32_t peer) const {
  const Ring out = ring(shape_.rank, shape_.size);
  return sent_[shape_.size] - out.tail(peer).load() >= out.count;
}

MutableBytes ShmFabric::slot(uint32_t wire) {
  const Ring out = ring(shape_.rank, wire);
  return {out.slots + sent_[wire] % out.count * shape_.slot_bytes() + WireShape::kRecordAt,
          shape_.record_bytes};
}

bool ShmFabric::streams(uint32_t, size_t bytes) {
  payload_bytes_ = bytes;
  asked_ = SteadyClock().now();
  return store_choice_.streamed(bytes);
}

void ShmFabric::commit(uint32_t wire, size_t bytes) {
  if (payload_bytes_ != 0) {
    store_choice_.handle_written(std::exchange(payload_bytes_, 0), SteadyClock().now() - asked_);
  }
  const Ring out = ring(shape_.rank, wire);
  uint8_t* at = out.slots + sent_[wire] % out.count * shape_.slot_bytes();
  store_le(at, static_cast<uint32_t>(bytes));
  out.head->store(++sent_[wire]);
  if (wire != shape_.size) return record_for(wire);
  for (uint32_t peer = 0; peer < shape_.size; ++peer) {
    if (peer != shape_.rank) record_for(peer);
  }
}

void ShmFabric::record_for(uint32_t peer) {
  if (++unannounced_[peer] >= (cores_scarce_ ? kLateRecords : 1)) ring_bell(peer);
}

// Pairs with prepare_wait(): either we see that the peer sleeps, or it sees what we stored before.
// That needs one order of all stores and loads involved, so cursors and `sleeping` are sequentially
// consistent.
void ShmFabric::ring_bell(uint32_t peer) {
  unannounced_[peer] = 0;
  Doorbell& bell = doorbell(peer);
  if (bell.sleeping.load() == 0) return;
  bell.sleeping.store(0, std::memory_order_relaxed);
  bell.rings.fetch_add(1, std::memory_order_release);
  if (bells_.empty()) {
    syscall(SYS_futex, &bell.rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  } else {
    const uint64_t one = 1;
    static_cast<void>(!write(bells_[peer].descriptor(), &one, sizeof one));
  }
}

void ShmFabric::ring_late_bells() {
  for (uint32_t peer = 0; peer < shape_.size; ++peer) {
    if (unannounced_[peer] > 0) ring_bell(peer);
  }
}

bool ShmFabric::flush() {
  ring_late_bells();
  return true;
}

// ---- Receiving ----

bool ShmFabric::readable(uint32_t wire) {
  const uint32_t peer = wire % shape_.size;
  const Ring in = ring(peer, wire < shape_.size ? shape_.rank : shape_.size);
  return in.head->load() != received_[wire];
}

Bytes ShmFabric::front(uint32_t wire) {
  const uint32_t peer = wire % shape_.size;
  const Ring in = ring(peer, wire < shape_.size ? shape_.rank : shape_.size);
  const uint8_t* at = in.slots + received_[wire] % in.count * shape_.slot_bytes();
  std::array<uint8_t, sizeof(uint32_t)> bytes;
  copy_from_shared({at, bytes.size()}, bytes);
  return {at + WireShape::kRecordAt,
          std::min(load_le<uint32_t>(bytes.data()), shape_.record_bytes)};
}

void ShmFabric::pop(uint32_t wire) {
  const uint32_t peer = wire % shape_.size;
  const bool broadcast = wire >= shape_.size;
  const Ring in = ring(peer, broadcast ? shape_.size : shape_.rank);
  const uint64_t taken = ++received_[wire];
  in.tail(broadcast ? shape_.rank : 0).store(taken);
  // Half empty is the moment a sender that found the ring full should go on; waking it for every
  // slot would cost a switch per record.
  const uint64_t waiting = in.head->load(std::memory_order_relaxed) - taken;
  if (waiting == in.count / 2) ring_bell(peer);
}

// ---- Waiting ----

// Two ranks on one core while another is free would take turns for ever: each sleeps whenever the
// other runs, so the scheduler sees no reason to part them. The higher rank moves.
Duration ShmFabric::patience() {
  if (cores_scarce_) return Duration(0);
  const auto core = static_cast<uint32_t>(sched_getcpu());
  doorbell(shape_.rank).core_plus_one.store(core + 1, std::memory_order_relaxed);
  for (uint32_t peer = 0; peer < shape_.size; ++peer) {
    if (peer == shape_.rank) continue;
    if (doorbell(peer).core_plus_one.load(std::memory_order_relaxed) != core + 1) continue;
    if (peer > shape_.rank) return Duration(0);  // let it run, so that it can move
    leave_core(core);
    break;
  }
  return kPatience;
}

// Taking one core out of the mask and putting it back moves the thread and binds it to nothing.
void ShmFabric::leave_core(uint32_t core) {
  const Instant now = SteadyClock().now();
  if (now - last_move_ < kMovePause) return;
  last_move_ = now;
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
  cpu_set_t others = all;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);
  sched_setaffinity(0, sizeof all, &all);
}

void ShmFabric::prepare_wait() {
  ring_late_bells();
  Doorbell& bell = doorbell(shape_.rank);
  ticket_ = bell.rings.load(std::memory_order_acquire);
  bell.sleeping.store(1);
}

void ShmFabric::wait(Duration at_most) {
  Doorbell& bell = doorbell(shape_.rank);
  const auto ns = std::max<Duration::rep>(at_most.count(), 0);
  const timespec timeout = {ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, ticket_, &timeout, nullptr, 0);
  end_wait();
}

void ShmFabric::end_wait() { doorbell(shape_.rank).sleeping.store(0, std::memory_order_relaxed); }

}  // namespace sealane
