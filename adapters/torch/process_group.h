// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// c10d's process group, answered by sealane::Comm. Translates calls, tensors and errors; decides
// nothing.
//
// Keys:        the first group of a process (the world) joins by what the user set up. It agrees on
//              a secret inside the sealed group, and by that secret its sub-groups and its
//              point-to-point lanes join. c10d's store carries addresses and is not trusted.
// Failure:     an error of a group is final, becomes the exception of every Work of that group, and
//              names the rank of the world that is at fault.
// Concurrency: any thread; operations run in the order of the calls on one thread per group.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pairs.h"
#include "sealane/comm.h"
#include "tensors.h"
#include "version.h"
#include "work.h"

namespace sealane::adapter {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

class ProcessGroupSealane final : public BackendBase {
 public:
  // Joins. `options` has rank, size, group, mode and the rest, but no store. `world_ranks` names
  // the members. A sub-group has a parent, which may end before it.
  ProcessGroupSealane(const c10::intrusive_ptr<c10d::Store>& store, CommOptions options,
                      std::vector<int> world_ranks, const ProcessGroupSealane* parent);
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

  // All ranks count from zero, and all count the same calls.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  bool sealed() const { return options_.mode == Mode::sealed; }
  CommTraffic traffic() const;

 private:
  // Starts operations; the last of them gets the callback.
  template <typename Start>
  WorkPointer launch(c10d::OpType type, const char* title, Staged staged, Tensors results,
                     Start start, Awaited awaited = {});
  WorkPointer finished(c10d::OpType type, const char* title, Staged staged, Tensors results);
  WorkPointer exchange(c10d::OpType type, const char* title, Staged staged, Tensors results,
                       const Tensors& outgoing, const Tensors& incoming);
  void agree_on_secret();
  Awaited of_world(int peer) const;
  int root(int64_t rank) const;

  SecretOptions options_;  // once joined, with the secret to join sub-groups and lanes by
  std::vector<int> world_ranks_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<Pairs> pairs_;
  std::atomic<uint64_t> sequence_ = 0;
};

}  // namespace sealane::adapter
