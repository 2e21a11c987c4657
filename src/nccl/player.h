// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays NCCL's proxy against a plugin: connections made by calls that may have to be repeated, up
// to 32 requests under way, receives posted ahead of what arrives, `test` polled by one thread.
//
// Every wait is for a condition and has a generous bound: whoever runs into it hangs, and that is
// the finding. Codes that are not success become an Error that names the call.
//
// Concurrency: one player per rank and thread; two players may share a plugin.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "nccl/job.h"
#include "nccl/plugin_table.h"

namespace sealane::nccl {

// How long a rank waits for anything before it says that it hangs. Set before a job is run.
void set_patience(Duration patience);
Duration patience();

// What NCCL's callback was told; the last WARN is kept for the job.
void keep_log_lines(Seat& seat);
Logger log_callback();

class Player {
 public:
  // Initialises the plugin for one communicator.
  static Result<std::unique_ptr<Player>> start(const PluginTable& plugin, Seat& seat,
                                               uint64_t communicator = 1);
  ~Player();

  // A one-way connection; both sides call it, with the same link. The service thread's calls.
  Result<void*> connect_to(int rank, int link = 0);
  Result<void*> accept_from(int rank, int link = 0);
  Result<void*> listen_for(int rank, int link = 0);  // the listener, for several accepts
  Result<void*> accept_on(void* listen_comm);

  // Both directions at once, as NCCL's set-up does: neither side waits for the other first.
  struct Pair {
    void* send = nullptr;
    void* receive = nullptr;
  };
  Result<Pair> connect_ring(int next, int previous, int link = 0);

  void close_send(void* comm);
  void close_receive(void* comm);
  void close_listen(void* comm);

  // One request each. Null requests are tried again. `memory` is what regMr gave.
  Result<void*> send(void* comm, const void* data, size_t bytes, void* memory = nullptr);
  Result<void*> receive(void* comm, void* data, size_t bytes, void* memory = nullptr);
  // Polls until done; the bytes.
  Result<size_t> wait(void* request);
  // The bytes of a receive that is done have been used.
  Status consumed(void* comm, void* request);
  // -1: not done yet.
  Result<int64_t> poll(void* request);

  const PluginTable& plugin() const { return plugin_; }
  Seat& seat() { return seat_; }
  void* context() const { return context_; }

 private:
  Player(const PluginTable& plugin, Seat& seat, void* context)
      : plugin_(plugin), seat_(seat), context_(context) {}

  const PluginTable& plugin_;
  Seat& seat_;
  void* context_;
};

// `code` as an Error that names the call.
Error failed(const char* call, Code code);

// Byte i of message m on a link: so that a wrong place, message or link is seen.
uint8_t pattern(uint64_t message, size_t at);
void fill_pattern(MutableBytes out, uint64_t message);
Status check_pattern(Bytes bytes, uint64_t message);

// A stream of messages over one connection: `sizes[i % n]` bytes each, `window` under way.
struct Traffic {
  uint64_t messages = 0;
  std::vector<size_t> sizes;
  size_t window = kRequestsMax;
  size_t receive_slack = 0;  // how much longer a receive is than the message
  bool check = true;         // contents, too
};
Status send_traffic(Player& player, void* comm, const Traffic& traffic);
Status receive_traffic(Player& player, void* comm, const Traffic& traffic);

// All-reduces over the connections of a ring, as NCCL's proxy moves them: slices, each passed on as
// soon as it has come, a few under way. What a GPU would add the caller's thread adds.
class Ring {
 public:
  static constexpr size_t kSlicesMax = 4;  // under way each way: NCCL's buffer of 8 steps

  Ring(Player& player, Player::Pair connections, size_t slice_bytes);

  // Sum of float32 over all ranks, in place.
  Status all_reduce(std::vector<float>& values);

 private:
  struct Piece {
    size_t from = 0;
    size_t count = 0;
  };
  Piece piece(size_t chunk, size_t index) const;
  Status post();
  Result<bool> look();  // true: something was done
  Result<bool> take();  // the next slice, if it is there

  Player& player_;
  Player::Pair connections_;
  size_t slice_;
  std::vector<std::vector<float>> staging_;
  std::deque<void*> sending_;
  std::deque<void*> receiving_;

  // Of the all-reduce under way; slices are counted over all steps.
  std::vector<float>* values_ = nullptr;
  size_t part_ = 0;
  size_t slices_ = 0;  // of a step
  uint64_t total_ = 0;
  uint64_t sent_ = 0;
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
};

}  // namespace sealane::nccl
