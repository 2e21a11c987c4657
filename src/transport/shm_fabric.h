// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Wires through shared memory. Each rank owns one segment, its outbox, with a ring of slots per
// out wire; all ranks map all outboxes. Segments are anonymous (memfd), so a crash leaves nothing
// behind, and sealed against resizing, so nobody can make another rank fault.
//
// Waiting is a futex on the own outbox's doorbell. Others ring it when this rank sleeps and a
// record arrived or a full ring has become half empty. While there is a core per rank it pays to
// look for a few microseconds before sleeping; with fewer cores a rank sleeps at once and rings
// late, so that several records are handled per wake-up. A rank that also waits for sockets is
// woken through an eventfd instead.
//
// Everything in a segment may be overwritten by an attacker at any time: cursors are read as hints,
// and the own ones are kept in private memory.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "transport/fabric.h"
#include "transport/socket.h"
#include "transport/store_choice.h"

namespace sealane {

// A descriptor of shared memory, closed with it.
class SharedSegment {
 public:
  static Result<SharedSegment> create(size_t bytes);
  // Takes over `descriptor`. A peer error unless it is a segment of that size that cannot shrink.
  static Result<SharedSegment> adopt(int descriptor, size_t bytes);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  int descriptor() const { return descriptor_; }
  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  SharedSegment(int descriptor, uint8_t* data, size_t bytes)
      : descriptor_(descriptor), data_(data), bytes_(bytes) {}
  static Result<SharedSegment> map(int descriptor, size_t bytes);

  int descriptor_ = -1;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

class ShmFabric final : public Fabric {
 public:
  // Bytes of one rank's outbox.
  static size_t outbox_bytes(const WireShape& shape);

  // `outboxes[r]` is rank r's. `cores_scarce`: more ranks than cores on this host.
  // `bells`: an eventfd per rank to wake it by (the own is not used), or none at all.
  ShmFabric(const WireShape& shape, std::vector<SharedSegment> outboxes, bool cores_scarce,
            std::vector<Socket> bells = {});
  ~ShmFabric() override;

  bool writable(uint32_t wire) override;
  MutableBytes slot(uint32_t wire) override;
  void commit(uint32_t wire, size_t bytes) override;
  bool streams(uint32_t wire, size_t bytes) override;
  bool readable(uint32_t wire) override;
  Bytes front(uint32_t wire) override;
  void pop(uint32_t wire) override;
  Duration patience() override;
  void prepare_wait() override;
  void wait(Duration at_most) override;
  void end_wait();  // for whoever waits by other means than wait()
  bool flush() override;
  bool lost(uint32_t) const override { return false; }  // memory does not tell
  bool behind(uint32_t peer) const override;
  size_t memory_bytes() const override;

 private:
  struct Ring;
  struct Doorbell;

  Ring ring(uint32_t owner, uint32_t wire) const;
  Doorbell& doorbell(uint32_t rank) const;
  void record_for(uint32_t peer);
  void ring_bell(uint32_t peer);
  void ring_late_bells();
  void leave_core(uint32_t core);

  WireShape shape_;
  std::vector<SharedSegment> outboxes_;
  bool cores_scarce_;
  std::vector<Socket> bells_;
  std::vector<uint64_t> sent_;         // per out wire
  std::vector<uint64_t> received_;     // per in wire
  std::vector<uint32_t> unannounced_;  // per peer: records committed since its bell was rung
  uint32_t ticket_ = 0;
  Instant last_move_{};
  StoreChoice store_choice_;
  size_t payload_bytes_ = 0;  // of a record that is being written, since
  Instant asked_{};
};

}  // namespace sealane
