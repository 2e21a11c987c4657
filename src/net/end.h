// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a connection: messages in order, cut into chunks that travel as records on
// several streams.
//
//   send()     takes a request, hands its chunks to the streams in turn   the caller, never waits
//              one that is small and has its stream to itself goes out    the caller
//   streams    seal, send (stream.h)                                      their workers
//   streams    receive, open in private memory, verify, copy ascending    their workers
//   receive()  takes a request: where the next message goes               the caller, never waits
//   test()     done, how much, or why not                                 the caller
//
// A message may be shorter than the memory a receive() gave, not longer. The first failure is final
// for the end: every later call gives it, nothing more is delivered, and the other side hears why.
// In a child of fork() every call is an error and close() does nothing.
//
// Concurrency: send(), receive() and test() from one thread at a time; close() from any; the
// streams call chunk_*() from their workers. Nobody touches the memory of requests any more once a
// call has given the failure, or close() has returned: who hears that a job has failed frees its
// buffers, and closes later. So a failure is told when no stream is at work. That the process exits
// is one: a stream may be in its last turn.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "net/born_here.h"

namespace sealane::net {

class DeviceMemory;
class Worker;
class SendStream;
class ReceiveStream;

// One message under way. Belongs to its end; whoever got it gives it back by a test() that said
// done.
struct Request {
  enum class State : uint8_t { free, posted, done };

  uint8_t* data = nullptr;
  size_t capacity = 0;  // of a receive; of a send: the message
  uint64_t number = 0;
  size_t bytes = 0;          // moved so far
  uint32_t chunks_done = 0;  // guarded by the end's mutex
  uint32_t chunks = 0;       // 0: not known yet
  std::atomic<State> state{State::free};
  std::shared_ptr<const DeviceMemory> device;  // none: the memory is the host's
  class End* end = nullptr;
};

class End {
 public:
  static constexpr size_t kRequestsMax = 64;

  explicit End(std::string peer);
  virtual ~End() = default;
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // nothing: not done yet. Else the bytes of the message; the request is free again.
  Result<std::optional<size_t>> test(Request& request);

  // While a stream is at work, which looks for a failure before it touches any memory.
  class Serving {
   public:
    explicit Serving(End& end) : end_(end) { end_.serving_.fetch_add(1); }
    ~Serving() { end_.serving_.fetch_sub(1); }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

   private:
    End& end_;
  };

  const std::string& peer() const { return peer_; }
  bool failed() const { return failed_.load(); }
  Error failure() const;
  void fail(const Error& error);  // the first counts
  virtual void close() = 0;

 protected:
  // Null: too many are under way.
  Request* take_request(void* data, size_t bytes, std::shared_ptr<const DeviceMemory> device);
  virtual void kick_all() = 0;  // so that streams notice a failure
  bool over();                  // it has failed, or does so now because the process exits
  // Nothing: it is to be asked again, for a stream is still at work.
  std::optional<Error> told_failure() const;
  Result<Request*> refusal() const;
  bool inherited() const { return born_.elsewhere(); }  // by fork(): locks may never open

  mutable std::mutex mutex_;
  std::array<Request, kRequestsMax> requests_;

 private:
  void fail_as(const Error& error);

  std::string peer_;
  BornHere born_;
  // In this order: who sees a failure and then nobody at work is followed by nobody who did not see
  // it.
  std::atomic<bool> failed_{false};
  std::atomic<uint32_t> serving_{0};
  std::optional<Error> failure_;
};

Error peer_gone();

struct Chunk {
  Request* request = nullptr;
  uint64_t message = 0;
  uint32_t index = 0;
  bool last = false;
  Bytes bytes;
};

class SendEnd final : public End {
 public:
  SendEnd(std::string peer, uint32_t chunk_bytes)
      : End(std::move(peer)), chunk_bytes_(chunk_bytes) {}
  ~SendEnd() override;

  // All but the first have to join the connection, which the other side waits for.
  void attach(std::vector<std::shared_ptr<SendStream>> streams) {
    streams_ = std::move(streams);
    joining_ = streams_.size() - 1;
  }

  // Null where it has to be tried again. `data` stays untouched until test() says done.
  Result<Request*> send(const void* data, size_t bytes,
                        std::shared_ptr<const DeviceMemory> device = nullptr);
  void close() override;

  // For streams. Nothing is sent while one has not said that it joins: the other side reads nothing
  // before it has all of them, and behind more than it has room for it would not see us go.
  std::optional<Chunk> next_chunk(uint8_t stream);
  void stream_joined();
  bool waits_alone(uint8_t stream) const;  // one chunk, no more
  void chunk_sent(const Chunk& chunk);
  // The other side has closed that stream. Where nothing waits for it that is no failure yet: who
  // has received everything may close while the last requests here have not been tested.
  void stream_ended(uint8_t stream, bool under_way);

 private:
  void kick_all() override;

  uint32_t chunk_bytes_;
  std::vector<std::shared_ptr<SendStream>> streams_;
  std::vector<std::deque<Chunk>> queues_;  // per stream
  size_t joining_ = 0;
  uint64_t messages_ = 0;
  uint64_t chunks_ = 0;
  bool ended_ = false;
};

class ReceiveEnd final : public End {
 public:
  struct Place {
    MutableBytes bytes;
    const DeviceMemory* device = nullptr;  // the request's: there until its last chunk is received
  };

  ReceiveEnd(std::string peer, uint32_t chunk_bytes)
      : End(std::move(peer)), chunk_bytes_(chunk_bytes) {}
  ~ReceiveEnd() override;

  void attach(std::vector<std::shared_ptr<ReceiveStream>> streams) {
    streams_ = std::move(streams);
    brings_from_.assign(streams_.size(), 0);
  }

  Result<Request*> receive(void* data, size_t bytes,
                           std::shared_ptr<const DeviceMemory> device = nullptr);
  void close() override;

  // For streams: where that chunk goes; nothing if its message has not been asked for yet. A peer
  // error if it does not fit there.
  Result<std::optional<Place>> place(uint64_t message, uint32_t index, uint32_t bytes);
  // A peer error if the chunks contradict each other.
  Status chunk_received(uint64_t message, uint32_t index, uint32_t bytes, bool last);
  // Closed between two records. What the other streams still bring counts.
  void stream_ended(uint8_t stream) { stream_brings_from(stream, kNothing); }
  // Closed as well, but what is still to be read of it begins with a message nobody has asked for.
  void stream_brings_from(uint8_t stream, uint64_t message);

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};

  bool waits_in_vain() const;  // a request, for what no stream can bring; the mutex is held
  Request* posted(uint64_t message);
  void kick_all() override;

  uint32_t chunk_bytes_;
  std::vector<std::shared_ptr<ReceiveStream>> streams_;
  std::array<Request*, kRequestsMax> by_number_{};
  uint64_t messages_ = 0;
  std::vector<uint64_t> brings_from_;  // per stream: 0 while it is open
};

}  // namespace sealane::net
