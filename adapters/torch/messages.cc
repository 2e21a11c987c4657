// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives that are made of messages, and messages between two ranks.

#include <memory>
#include <string>
#include <utility>

#include "process_group.h"

namespace sealane::adapter {

// ---- Collectives made of messages. All ranks take them in one order (by sender, then receiver),
// so that none waits for one that comes later. To the library they are messages, whatever call they
// are of: so that ranks whose calls differ find out, a label goes before each ----

namespace {

int64_t label_of(c10d::OpType type, int64_t root) {
  if (type == c10d::OpType::ALLTOALL_BASE) type = c10d::OpType::ALLTOALL;
  return (static_cast<int64_t>(type) << 32) + root;
}

std::string describe(int64_t label) {
  const std::string root = std::to_string(label & 0xffffffff);
  switch (static_cast<c10d::OpType>(label >> 32)) {
    case c10d::OpType::GATHER:
      return "gather to rank " + root;
    case c10d::OpType::SCATTER:
      return "scatter from rank " + root;
    case c10d::OpType::ALLTOALL:
      return "all_to_all";
    default:
      return "something else";
  }
}

}  // namespace

struct ProcessGroupSealane::Part {
  bool sends;
  int peer;
  at::Tensor data;
  int64_t label;  // that of this rank's call, or the one received
};

// What a rank is in that did not make the same call; empty if all did, or were not heard of.
std::string ProcessGroupSealane::other_call(const std::vector<Part>& parts, int64_t label) {
  for (const Part& part : parts) {
    if (part.label == label || part.label == ~label) continue;
    return "rank " + std::to_string(part.peer) + " called " + describe(part.label) +
           " where this rank called " + describe(label) + ": all ranks must make the same calls";
  }
  return {};
}

WorkPointer ProcessGroupSealane::exchange(c10d::OpType type, const char* title, Staged staged,
                                          Tensors results, const Tensors& outgoing,
                                          const Tensors& incoming, int64_t root) {
  const int64_t label = label_of(type, root);
  auto parts = std::make_shared<std::vector<Part>>();
  const auto add = [&](bool sends, int peer, const at::Tensor& data) {
    if (!data.defined() || data.numel() == 0) return;
    parts->push_back({sends, peer, data, sends ? label : ~label});  // ~: not heard of yet
  };
  for (int sender = 0; sender < size_; ++sender) {
    for (int receiver = 0; receiver < size_; ++receiver) {
      if (sender == receiver) continue;
      if (sender == rank_) add(true, receiver, outgoing[static_cast<size_t>(receiver)]);
      if (receiver == rank_) add(false, sender, incoming[static_cast<size_t>(sender)]);
    }
  }
  const auto self = static_cast<size_t>(rank_);
  if (incoming[self].defined() && outgoing[self].defined()) {
    const at::NoGradGuard no_grad;  // as in Staged::deliver()
    TORCH_CHECK(incoming[self].numel() == outgoing[self].numel(), "what a rank keeps has ",
                outgoing[self].numel(), " elements, and its place ", incoming[self].numel());
    incoming[self].copy_(outgoing[self].view_as(incoming[self]));
  }
  if (parts->empty()) return finished(type, title, std::move(staged), std::move(results));
  const auto start = [this, parts, label](const WorkCallback& done) {
    const WorkCallback last = [this, parts, label, done](const std::string& error) {
      const std::string other = other_call(*parts, label);
      if (!other.empty()) comm_->abort();  // the first error is final, and all hear of it
      done(other.empty() ? error : other);
    };
    for (Part& part : *parts) {
      const Moved as = moved(part.data);
      void* data = part.data.data_ptr();
      WorkCallback callback = &part == &parts->back() ? last : WorkCallback();
      if (part.sends) {
        comm_->start_send(&part.label, 1, DataType::int64, part.peer);
        comm_->start_send(data, as.count, as.type, part.peer, std::move(callback));
      } else {
        comm_->start_receive(&part.label, 1, DataType::int64, part.peer);
        comm_->start_receive(data, as.count, as.type, part.peer, std::move(callback));
      }
    }
  };
  return launch(type, title, std::move(staged), std::move(results), start);
}

WorkPointer ProcessGroupSealane::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                        const c10d::GatherOptions& options) {
  only(inputs);
  const auto ranks = static_cast<size_t>(size_);
  const auto to = static_cast<size_t>(root(options.rootRank));
  Staged staged;
  Tensors outgoing(ranks), incoming(ranks), results;
  outgoing[to] = staged.in(inputs[0]);
  if (rank_ == options.rootRank) {
    TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == ranks, "one output per rank");
    results = outputs[0];
    for (size_t i = 0; i < ranks; ++i) {
      check_tensor(results[i]);
      check_same_type(results[i], inputs[0]);
      incoming[i] = staged.out(results[i]);
    }
  }
  return exchange(c10d::OpType::GATHER, "sealane:gather", std::move(staged), std::move(results),
                  outgoing, incoming, options.rootRank);
}

WorkPointer ProcessGroupSealane::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ScatterOptions& options) {
  only(outputs);
  const auto ranks = static_cast<size_t>(size_);
  Staged staged;
  Tensors outgoing(ranks), incoming(ranks);
  incoming[static_cast<size_t>(root(options.rootRank))] = staged.out(outputs[0]);
  if (rank_ == options.rootRank) {
    TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == ranks, "one input per rank");
    for (size_t i = 0; i < ranks; ++i) {
      check_tensor(inputs[0][i]);
      check_same_type(inputs[0][i], outputs[0]);
      outgoing[i] = staged.in(inputs[0][i]);
    }
  }
  return exchange(c10d::OpType::SCATTER, "sealane:scatter", std::move(staged), outputs, outgoing,
                  incoming, options.rootRank);
}

WorkPointer ProcessGroupSealane::alltoall(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllToAllOptions&) {
  TORCH_CHECK(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
              "one input and one output per rank are expected");
  Staged staged;
  Tensors outgoing, incoming;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i]);
    check_tensor(outputs[i]);
    check_same_type(outputs[i], inputs[i]);
    outgoing.push_back(staged.in(inputs[i]));
    incoming.push_back(staged.out(outputs[i]));
  }
  return exchange(c10d::OpType::ALLTOALL, "sealane:all_to_all", std::move(staged), outputs,
                  outgoing, incoming);
}

WorkPointer ProcessGroupSealane::alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<int64_t>& output_splits,
                                               std::vector<int64_t>& input_splits,
                                               const c10d::AllToAllOptions&) {
  check_tensor(output);
  check_tensor(input);
  check_same_type(output, input);
  const auto parts = [&](const at::Tensor& tensor, const std::vector<int64_t>& splits) {
    return splits.empty() ? at::chunk(tensor, size_) : at::split_with_sizes(tensor, splits);
  };
  Staged staged;
  const Tensors outgoing = parts(staged.in(input), input_splits);
  const Tensors incoming = parts(staged.out(output), output_splits);
  TORCH_CHECK(outgoing.size() == static_cast<size_t>(size_) && incoming.size() == outgoing.size(),
              "the first dimension must be split into one part per rank");
  return exchange(c10d::OpType::ALLTOALL_BASE, "sealane:all_to_all", std::move(staged), {output},
                  outgoing, incoming);
}

// ---- Messages between two ranks ----

WorkPointer ProcessGroupSealane::message(c10d::OpType type, const char* title, int peer,
                                         Staged staged, Tensors& tensors,
                                         const std::function<void(Pairs&, WorkCallback)>& start) {
  check_open();
  staged.settle();
  Awaited awaited = [rank = world_ranks_.at(static_cast<size_t>(peer))] { return rank; };
  const uint64_t number = ++sequence_;
  auto work = c10::make_intrusive<TorchWork>(rank_, type, title, number, std::move(staged), tensors,
                                             std::move(awaited), nullptr);
  start(*pairs_, [this, work, number](const std::string& error) {
    work->end(error.empty() ? error : explain(error, *work, number));
  });
  return work;
}

WorkPointer ProcessGroupSealane::send(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot send to itself");
  Staged staged;
  const at::Tensor data = staged.in(only(tensors));
  return message(c10d::OpType::SEND, "sealane:send", peer, std::move(staged), tensors,
                 [&](Pairs& pairs, WorkCallback done) {
                   const Moved as = moved(data);
                   pairs.send(peer, tag, data.data_ptr(), as.count, as.type, std::move(done));
                 });
}

WorkPointer ProcessGroupSealane::recv(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot receive from itself");
  Staged staged;
  const at::Tensor data = staged.out(only(tensors));
  return message(c10d::OpType::RECV, "sealane:recv", peer, std::move(staged), tensors,
                 [&](Pairs& pairs, WorkCallback done) {
                   const Moved as = moved(data);
                   pairs.receive(peer, tag, data.data_ptr(), as.count, as.type, std::move(done));
                 });
}

}  // namespace sealane::adapter
