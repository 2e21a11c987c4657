// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Carries out one collective after another on real wires: asks core/collective what is next, lets
// the lanes seal and open, and waits when there is nothing to do. An error is final: the group is
// told, and every later operation returns the same error. One thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/buffer.h"
#include "comm/call.h"
#include "comm/join.h"
#include "comm/lanes.h"
#include "comm/options.h"
#include "core/collective/execution.h"
#include "core/collective/schedule.h"
#include "seal/delivery.h"
#include "seal/record.h"

namespace sealane {

inline Error aborted_error() { return usage_error("the group was aborted"); }

struct Operation {
  Collective collective = Collective::all_reduce;
  ElementType type = ElementType::none;
  ReduceOperator op = ReduceOperator::none;
  uint32_t root = 0;
  Buffer in;
  Buffer out;
  Label label = {};
};

// Records this rank has made, and the payload in them.
struct Traffic {
  uint64_t records = 0;
  uint64_t bytes = 0;
};

class Runner {
 public:
  Runner(const JoinOptions& options, Membership membership, std::unique_ptr<Lanes> lanes);
  ~Runner();

  Status run(Operation operation);

  // Ends the group with that error, if it has not failed before; returns the one that counts.
  Error fail(const Error& error);
  const std::optional<Error>& failure() const { return failure_; }

  // Where no operation runs: has another rank ended the group? The error, if so, is final.
  Status listen();

  // Who has ended its part of the group, by rank, as heard so far. Where no operation runs.
  std::vector<bool> gone() const;

  // From any thread: the operation under way, and every later one, ends with an error soon.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Around a fork(), from any thread: nobody is at a session until go_on(). In the child they can
  // then be forgotten also where an operation is under way, which can never be ended there.
  void hold_still() { group_.control->hold_still(); }
  void go_on() { group_.control->go_on(); }
  void forget_sessions() { group_.control->forget_links(); }

  uint64_t memory_bytes() const;  // beyond the caller's buffers
  Traffic traffic() const { return {records_made_.load(), bytes_made_.load()}; }  // any thread

  // Whom the operation under way was last found waiting for, or kNobody; any thread.
  uint32_t awaited() const { return awaited_.load(std::memory_order_relaxed); }

 private:
  struct Running;

  Status attempt(Operation& operation, uint64_t number);
  Status carry_out(Running& running);
  Status finish(const Operation& operation) const;
  Status wait(Running& running);
  Status check_peers(Running& running);
  Status check_stopped() const;
  Status hear_control();
  Status hear_calls();
  Status compare(uint32_t peer, const Call& theirs);
  Status check_message(const Running& running) const;
  void tell_call(Running& running, const std::vector<uint32_t>& peers);
  Status perform(Running& running, const Task& task);
  Status fold(Running& running, const Task& task, uint64_t in_at, uint64_t out_at);
  Status publish(Running& running, const Task& task, uint64_t in_at, uint64_t out_at);
  Status relay(Running& running, const Task& task, uint64_t in_at);
  Status receive(Running& running, const Task& task, uint64_t out_at);
  Status send(Running& running, const Task& task, const Delivery& payload);
  Result<Bytes> open(Running& running, const Task& task);
  Bytes read(Running& running, const Buffer& buffer, uint64_t at, size_t count) const;
  Delivery sum_of(const Running& running, const Task& task, Bytes own, Bytes incoming,
                  MutableBytes to) const;
  bool postpone(Running& running, const Delivery& delivery, Bytes incoming) const;
  static void settle(Running& running);
  uint64_t& counter(const Operation& operation);
  Call call_of(const Operation& operation, const Request& asked, uint64_t number) const;
  RecordHeader header(const Running& running, const Task& task, uint32_t origin) const;
  Request request(const Operation& operation) const;

  JoinOptions options_;
  Membership group_;
  std::unique_ptr<Lanes> lanes_;
  uint32_t communicator_;
  // Running numbers: of the calls all ranks make, and of those a pair makes.
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_to_;
  std::vector<uint64_t> received_from_;
  // What ranks said they wait in and this one has not come to, and the messages between the two
  // that they had begun to send and to receive before; the own calls, to compare with.
  struct Waiting {
    Call call;
    uint64_t sent;
    uint64_t received;

    std::vector<uint8_t> encode() const;
    static std::optional<Waiting> decode(Bytes bytes);
  };
  std::vector<std::optional<Waiting>> awaiting_;
  std::array<Call, 64> recent_;
  std::optional<Error> failure_;
  std::atomic<bool> stopped_ = false;
  std::atomic<uint64_t> records_made_ = 0;
  std::atomic<uint64_t> bytes_made_ = 0;
  std::atomic<uint32_t> awaited_ = kNobody;
  Instant last_heard_{};  // when the control links were looked at

  // Each holds one record and stays in the cache.
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;

  // Of GPU memory; made when an operation first names some.
  std::unique_ptr<DeviceWindows> in_windows_;
  std::unique_ptr<DeviceWindows> out_windows_;
};

}  // namespace sealane
