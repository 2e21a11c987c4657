// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection of a sealed connection. A chunk travels as: length (4 bytes), record. The
// record's header names the message (`operation`), the chunk (`chunk`) and whether it
// is the last of its message (`phase`); it is a lane of its own with its own key, so a record that
// is dropped, repeated, swapped or taken from another stream ends the connection.
//
//   sending    seal a chunk into private memory, send it, next
//   receiving  a whole record into private memory; open and verify there; only then look for which
//              message it is, and copy it to the caller's memory in ascending order: a GPU may
//              already be reading flags in it (NCCL's LL and LL128)
//
// A receiver holds a record whose message has not been asked for and reads no further: TCP tells
// the sender. That the sender is gone is noticed behind what has not been read, too. Backwards
// travels one record at most, on stream 0: why the receiver gave up.
//
// Concurrency: serve() on the worker; kick() and close() from any thread. close() waits for a
// serve() under way, which never waits itself.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/session/key_chain.h"
#include "net/end.h"
#include "net/worker.h"
#include "transport/socket.h"

namespace sealane::net {

// The other side has closed its half, whatever is still to be read.
bool hung_up(const Socket& socket);

class Stream : public Served, public std::enable_shared_from_this<Stream> {
 public:
  Stream(Socket socket, uint8_t index, Worker& worker)
      : socket_(std::move(socket)), index_(index), worker_(worker) {}

  int descriptor() const override { return socket_.descriptor(); }
  bool serve() final;
  void unwatched(const Error& error) final;
  void start() { worker_.add(shared_from_this()); }
  void kick() { worker_.kick(shared_from_this()); }
  void close();

 protected:
  virtual bool serve_open() = 0;  // the mutex is held; false: ended
  virtual std::shared_ptr<End> end() const = 0;

  Socket socket_;
  uint8_t index_;
  std::mutex mutex_;
  bool closed_ = false;

 private:
  Worker& worker_;
};

class SendStream final : public Stream {
 public:
  // Without keys nothing is sealed, for measuring. `prefix` goes out first, once the socket, which
  // may still be connecting, takes it.
  SendStream(Socket socket, uint8_t index, Worker& worker, const std::shared_ptr<SendEnd>& end,
             const Engine* engine, std::optional<Key> send, std::optional<Key> back,
             uint32_t chunk_bytes, std::vector<uint8_t> prefix);

  // Seals and sends the one chunk that waits, which is small, on the caller's thread: to wake a
  // worker would take longer. Never waits; false: it is still, or in part, the worker's to send.
  bool send_here();

 private:
  bool serve_open() override;
  std::shared_ptr<End> end() const override { return end_.lock(); }
  bool load_next();  // false: nothing to send
  Bytes look_at_chunk();
  bool send_frame();  // false: the socket takes no more for now
  bool send_prefix();
  bool hear_back();  // false: the other side is gone

  std::weak_ptr<SendEnd> end_;
  std::optional<RekeyingSendLane> lane_;
  std::optional<RekeyingReceiveLane> back_;
  std::vector<uint8_t> staging_;
  std::vector<uint8_t> window_;  // of a chunk in GPU memory
  std::optional<Chunk> chunk_;   // under way
  Bytes plain_;                  // its payload, where nothing is sealed
  size_t frame_bytes_ = 0;       // in staging
  size_t sent_bytes_ = 0;
  std::vector<uint8_t> heard_;
  std::vector<uint8_t> prefix_;
  size_t prefix_sent_ = 0;
};

class ReceiveStream final : public Stream {
 public:
  ReceiveStream(Socket socket, uint8_t index, Worker& worker,
                const std::shared_ptr<ReceiveEnd>& end, const Engine* engine,
                std::optional<Key> receive, std::optional<Key> back, uint32_t chunk_bytes);

  bool stalled() const { return stalled_.load(std::memory_order_acquire); }

 private:
  enum class Progress { more, later, ended };

  bool serve_open() override;
  std::shared_ptr<End> end() const override { return end_.lock(); }
  Progress step(ReceiveEnd& end);
  Progress read_head(ReceiveEnd& end);
  Progress read_payload(ReceiveEnd& end);
  Progress find_place(ReceiveEnd& end);
  Progress deliver(ReceiveEnd& end);
  Progress give_up(ReceiveEnd& end, const Error& error);
  size_t whole_bytes() const;  // of the record under way, as its header says
  ptrdiff_t read_some(ReceiveEnd& end, MutableBytes room, MutableBytes behind = {});  // -1: ended
  void tell_why(const ReceiveEnd& end);

  std::weak_ptr<ReceiveEnd> end_;
  std::optional<RekeyingReceiveLane> lane_;
  std::optional<RekeyingSendLane> back_;
  uint32_t chunk_bytes_;
  std::vector<uint8_t> buffer_;  // length, header, payload, tag; the next length and header
  size_t filled_ = 0;
  std::optional<RecordHeader> header_;      // of the record under way
  bool whole_ = false;                      // all of it is here, and verified where it is sealed
  std::optional<ReceiveEnd::Place> place_;  // where its payload goes
  std::atomic<bool> stalled_{false};
};

}  // namespace sealane::net
