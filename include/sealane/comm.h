// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Sealed collectives between the ranks of a group: what leaves a process is encrypted and
// authenticated, between processes of one host (shared memory) and between hosts (TCP).
//
//   using namespace sealane;
//   Comm comm(CommOptions{});                     // rank, size, key: from the environment
//   comm.all_reduce(gradients, gradients, count, DataType::float32, ReduceOp::sum);
//
// Order:       all ranks make the same calls in the same order.
// Results:     identical bits on all ranks, whatever the timing.
// Failure:     CommError names the rank at fault. The first error of a group is final; buffers of
//              results then hold no unverified data, and are otherwise undefined.
// Concurrency: a Comm can be used from several threads; buffers belong to it until the call returns
//              or the Work is done.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sealane/export.h"

namespace sealane {

enum class DataType : uint8_t { float32 = 1, float64, float16, bfloat16, int32, int64, uint8 };
enum class ReduceOp : uint8_t { sum = 1, avg, min, max };

SEALANE_API size_t size_of(DataType type);

// plain encrypts nothing; it exists to measure what sealing costs, and says so on stderr.
enum class Mode { sealed, plain };
enum class Transport { automatic, shm, tcp };

class SEALANE_API CommError : public std::runtime_error {
 public:
  enum class Kind { usage = 1, io, peer, crypto, internal };
  CommError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// What is left unset comes from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT as
// torchrun sets them, OMPI_COMM_WORLD_* of mpirun, SEALANE_RANK, SEALANE_SIZE, SEALANE_RENDEZVOUS,
// SEALANE_KEY_FILE and the certificate variables (docs/collectives.md).
struct CommOptions {
  int rank = -1;
  int size = 0;
  std::string group = "default";  // several groups can live side by side, each with its own keys
  std::string rendezvous;         // "file:DIRECTORY" or "tcp:HOST:PORT"
  Mode mode = Mode::sealed;
  Transport transport = Transport::automatic;
  std::string algorithm = "auto";                               // exchange, direct, ring, hub
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // at most a year
  std::string key;  // 32 secret bytes; then neither files nor the environment are asked for one
  std::string key_file;
  std::string certificate_file;
  std::string certificate_key_file;
  std::string authorities_file;
  std::string attest_command;

  // A key-value store to meet through instead of a rendezvous. It is not trusted. Both may throw.
  std::function<void(const std::string& key, const std::string& value)> store_set;
  std::function<std::string(const std::string& key, std::chrono::milliseconds timeout)> store_get;
  // With a store: asked several times a second while joining; true ends that with an error.
  std::function<bool()> given_up;
};

// An operation under way. Copies refer to the same one.
class SEALANE_API Work {
 public:
  bool done() const;
  void wait() const;  // throws CommError if the operation failed

 private:
  friend class Comm;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Memory of one tensor, for calls that take several at once.
struct Tensor {
  void* data = nullptr;
  size_t count = 0;
};

// What a call is to a program that makes more of it than the library does: a product, say, that
// travels as an all_gather and is made by the program, or data of a type that the library only
// moves. Ranks compare it with the rest of the call: ranks whose labels differ end with an error
// that names both. What is not given is as the library has it.
struct CallLabel {
  enum class Kind : uint8_t {
    none,
    all_reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    reduce,
    gather,
    scatter,
    all_to_all
  };
  enum class Op : uint8_t { none, sum, avg, min, max, product, bit_and, bit_or, bit_xor };
  // Numbers from `other` to 127 are the program's own, for types that have no word here.
  enum class Type : uint8_t {
    none,
    float32,
    float64,
    float16,
    bfloat16,
    int32,
    int64,
    uint8,
    boolean,
    int8,
    int16,
    uint16,
    uint32,
    uint64,
    complex32,
    complex64,
    complex128,
    float8_e5m2,
    float8_e4m3fn,
    float8_e5m2fnuz,
    float8_e4m3fnuz,
    float8_e8m0fnu,
    float4_e2m1fn_x2,
    other = 64
  };
  Kind kind = Kind::none;
  Type type = Type::none;
  Op op = Op::none;
  int root = -1;
};

// Records this rank has made (sealed, unless the mode is plain), and the bytes in them.
struct CommTraffic {
  uint64_t records = 0;
  uint64_t bytes = 0;
};

// Called when an operation has ended, on a thread of the Comm's; the text is empty on success.
// Wrong arguments call back on the caller's thread, before the start_ function returns; so does an
// operation for which there is no thread, which is then not begun. A callback may start operations
// and wait for others than its own; it must not end the Comm. Callbacks of several operations can
// run at the same time. What one throws is dropped.
using WorkCallback = std::function<void(const std::string& error)>;

class SEALANE_API Comm {
 public:
  explicit Comm(const CommOptions& options);  // joins; throws CommError
  // Joins a group of ranks of `parent`, in that order. Each two of them prove by a secret of theirs
  // alone, which they have from their meeting in the parent, that they are who they are: not even
  // another rank of the parent can pose as one of them. Asks for no key, certificate, rank or size.
  Comm(const Comm& parent, const std::vector<int>& ranks, const CommOptions& options);
  Comm(Comm&&) noexcept;
  Comm& operator=(Comm&&) noexcept;
  ~Comm();  // waits for what was started

  int rank() const;
  int size() const;
  uint64_t memory_bytes() const;  // held beyond the caller's buffers
  CommTraffic traffic() const;
  // Ends the group: all that was started ends with an error, here at once and on the other ranks
  // within a tenth of a second if they are in a call, else with their next. From any thread; does
  // not wait.
  void abort();
  // Why the group has ended, or empty. Where no call is under way, other ranks are heard for it.
  std::string failure() const;
  // Whether that rank has ended its part of the group, as far as this one has heard: it will answer
  // nothing more, but what it had sent before can be received. While an operation runs, as of
  // before.
  bool gone(int rank) const;
  int awaited() const;  // the rank that the operation under way waits for; -1 if none, so far

  // `in` and `out` may be the same. Counts are of elements: of one rank's part for all_gather, of
  // one rank's result for reduce_scatter.
  void all_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op);
  void reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op, int root);
  void reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op);
  void all_gather(const void* in, void* out, size_t count, DataType type);
  void broadcast(const void* in, void* out, size_t count, DataType type, int root);
  void send(const void* in, size_t count, DataType type, int peer);
  void receive(void* out, size_t count, DataType type, int peer);
  void barrier();

  // Many tensors as if they were one, in place.
  void all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op);

  Work start_all_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                        WorkCallback callback = {});
  Work start_all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op,
                        WorkCallback callback = {});
  Work start_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op, int root,
                    WorkCallback callback = {});
  Work start_reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                            WorkCallback callback = {});
  Work start_all_gather(const void* in, void* out, size_t count, DataType type,
                        WorkCallback callback = {});
  Work start_broadcast(const void* in, void* out, size_t count, DataType type, int root,
                       WorkCallback callback = {});
  Work start_send(const void* in, size_t count, DataType type, int peer,
                  WorkCallback callback = {});
  Work start_receive(void* out, size_t count, DataType type, int peer, WorkCallback callback = {});
  Work start_barrier(WorkCallback callback = {});

  // The same under a label.
  Work start_all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op,
                        const CallLabel& label, WorkCallback callback = {});
  Work start_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op, int root,
                    const CallLabel& label, WorkCallback callback = {});
  Work start_reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                            const CallLabel& label, WorkCallback callback = {});
  Work start_all_gather(const void* in, void* out, size_t count, DataType type,
                        const CallLabel& label, WorkCallback callback = {});
  Work start_broadcast(const void* in, void* out, size_t count, DataType type, int root,
                       const CallLabel& label, WorkCallback callback = {});
  Work start_send(const void* in, size_t count, DataType type, int peer, const CallLabel& label,
                  WorkCallback callback = {});
  Work start_receive(void* out, size_t count, DataType type, int peer, const CallLabel& label,
                     WorkCallback callback = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sealane
