// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// c10d's process group, answered by sealane::Comm. Translates calls, tensors and errors; decides
// nothing.
//
// Keys:        the first group of a process (the world) joins by what the user set up. Each two
//              ranks share a secret since then; by those its sub-groups and its point-to-point
//              lanes join, so that nobody can be another rank there than in the world. c10d's store
//              carries addresses and is not trusted.
// Failure:     an error of a group is final, becomes the exception of every Work of that group, and
//              names the rank of the world that is at fault.
// Concurrency: any thread; collectives run in the order of the calls, one at a time (turns.h has
//              the order of those that continuations call).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pairs.h"
#include "parts.h"
#include "sealane/comm.h"
#include "tensors.h"
#include "turns.h"
#include "version.h"
#include "work.h"

namespace sealane::adapter {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

class ProcessGroupSealane final : public BackendBase {
 public:
  // Joins. `options` has rank, size, group, mode and the rest, but no store. `world_ranks` names
  // the members. A sub-group has a parent, which may end before it. `store_is_older`: the store may
  // have been that of an earlier start of the job (start.h).
  ProcessGroupSealane(const c10::intrusive_ptr<c10d::Store>& store, CommOptions options,
                      std::vector<int> world_ranks, const ProcessGroupSealane* parent,
                      bool store_is_older);
  ~ProcessGroupSealane() override;

  const std::string getBackendName() const override { return "sealane"; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ScatterOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int peer, int tag) override;
  WorkPointer recv(Tensors& tensors, int peer, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  // Within the time-out of the call, if it has one; the error names a rank that did not come.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

#if defined(SEALANE_TORCH_COALESCES)
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;
#endif

#if defined(SEALANE_TORCH_SPLITS)
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  // A sub-group of ranks of this group; null if this rank is not among them.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  void shutdown() override { finish_all(); }
  void abort() override { abort_all(); }
#endif

  // All ranks count from zero, and all count the same calls.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  bool sealed() const { return options_.mode == Mode::sealed; }
  CommTraffic traffic() const;

  // Finishes what was started and ends the connections. Later calls are errors.
  void finish_all();

  // Ends what was started with an error, here and on the other ranks; waits for nothing. Also
  // beside finish_all(), which then soon returns.
  void abort_all();

  using Start = std::function<void(Parts&)>;

 private:
  struct Move {
    at::Tensor from;
    at::Tensor to;
  };

  // Starts operations when it is their turn; the Work ends with them.
  WorkPointer launch(c10d::OpType type, const char* title, Staged staged, Tensors results,
                     Start start);
  WorkPointer finished(c10d::OpType type, const char* title, Staged staged, Tensors results);
  WorkPointer gather_all(c10d::OpType type, const char* title, Staged staged, Tensors results,
                         std::vector<Move> moves, const CallLabel& label);
  WorkPointer gather_tensors(c10d::OpType kind, const Tensors& outputs, const Tensors& inputs);
  WorkPointer reduce_all(c10d::OpType kind, Tensors& tensors,
                         const c10d::AllreduceCoalescedOptions& options);
  WorkPointer reduce_scatter_tensors(c10d::OpType kind, const Tensors& outputs,
                                     const Tensors& inputs, const c10d::ReduceOp& reduce_op);
  struct Exchange;
  WorkPointer exchange(c10d::OpType type, const char* title, Staged staged, Tensors results,
                       const Tensors& outgoing, const Tensors& incoming, const CallLabel& label);
  WorkPointer message(c10d::OpType type, const char* title, int peer, Staged staged,
                      Tensors& tensors, const std::function<void(Pairs&, WorkCallback)>& start);
  bool forked() const;
  void check_open() const;
  std::vector<int> places_of(const std::vector<int>& ranks) const;
  std::string part_name(const std::string& name) const;
  std::string explain(const std::string& error, const TorchWork& work, uint64_t number) const;
  int root(int64_t rank) const;

  std::vector<int> world_ranks_;
  std::string start_;  // what this start of the job is called in the store, if it may be older
  CommOptions options_;
  const bool is_part_;   // of another group
  const pid_t process_;  // that joined
  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>();
  mutable std::mutex
      ending_;  // for abort_all() beside finish_all(): whether the two below are there
  std::atomic<bool> closed_ = false;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<Pairs> pairs_;
  std::atomic<uint64_t> sequence_ = 0;
};

}  // namespace sealane::adapter
