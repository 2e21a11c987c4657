// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives that are made of messages, and messages between two ranks.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "process_group.h"

namespace sealane::adapter {

// ---- Collectives made of messages. All ranks take them in one order (by sender, then receiver),
// so that none waits for one that comes later. Before the first of them every rank tells every
// other how much it gives to whom and takes from whom, in a call of the library's under the label
// of this one: ranks that are in different calls find out there, and ranks whose counts differ all
// say the same. Who gives nothing still sends a message, so that messages of two calls never meet
// ----

// What has to last until the last message has ended.
struct ProcessGroupSealane::Exchange {
  struct Part {
    bool sends;
    int peer;
    at::Tensor data;
  };

  explicit Exchange(size_t ranks_)
      : ranks(ranks_), own(2 * ranks), all(2 * ranks * ranks, kNotHeardOf) {}

  static constexpr int64_t kNotHeardOf = -1;

  // Elements that a rank gives to another, and takes from another, as it told.
  int64_t given(size_t from, size_t to) const { return all[2 * ranks * from + to]; }
  int64_t taken(size_t to, size_t from) const { return all[2 * ranks * to + ranks + from]; }

  // Who does not take what it is given; empty if all do, or were not heard of.
  std::string other_count() const {
    if (std::count(all.begin(), all.end(), kNotHeardOf) > 0) return {};
    for (size_t from = 0; from < ranks; ++from) {
      for (size_t to = 0; to < ranks; ++to) {
        if (given(from, to) == taken(to, from)) continue;
        return "rank " + std::to_string(from) + " gives " + std::to_string(given(from, to)) +
               " elements to rank " + std::to_string(to) + " that takes " +
               std::to_string(taken(to, from)) + ": all ranks must make the same calls";
      }
    }
    return {};
  }

  const size_t ranks;
  std::vector<int64_t> own;  // given to each rank, then taken from each
  std::vector<int64_t> all;  // every rank's, one after the other
  std::vector<Part> parts;
};

WorkPointer ProcessGroupSealane::exchange(c10d::OpType type, const char* title, Staged staged,
                                          Tensors results, const Tensors& outgoing,
                                          const Tensors& incoming, const CallLabel& label) {
  const auto ranks = static_cast<size_t>(size_);
  const auto self = static_cast<size_t>(rank_);
  auto state = std::make_shared<Exchange>(ranks);
  for (size_t sender = 0; sender < ranks; ++sender) {
    for (size_t receiver = 0; receiver < ranks; ++receiver) {
      if (sender == receiver) continue;
      if (sender == self && outgoing[receiver].defined()) {
        state->own[receiver] = outgoing[receiver].numel();
        state->parts.push_back({true, static_cast<int>(receiver), outgoing[receiver]});
      }
      if (receiver == self && incoming[sender].defined()) {
        state->own[ranks + sender] = incoming[sender].numel();
        state->parts.push_back({false, static_cast<int>(sender), incoming[sender]});
      }
    }
  }
  if (incoming[self].defined() && outgoing[self].defined()) {
    const at::NoGradGuard no_grad;  // as in Staged::deliver()
    TORCH_CHECK(incoming[self].numel() == outgoing[self].numel(), "what a rank keeps has ",
                outgoing[self].numel(), " elements, and its place ", incoming[self].numel());
    incoming[self].copy_(outgoing[self].view_as(incoming[self]));
  }
  if (state->parts.empty()) return finished(type, title, std::move(staged), std::move(results));
  const auto start = [this, state, label](Parts& parts) {
    parts.judge([state] { return state->other_count(); });
    parts.add([&](const WorkCallback& done) {
      comm_->start_all_gather(state->own.data(), state->all.data(), state->own.size(),
                              DataType::int64, label, done);
    });
    for (const Exchange::Part& part : state->parts) {
      const Moved as = moved(part.data);
      const CallLabel typed = label_of(CallLabel::Kind::none, part.data);
      void* data = part.data.data_ptr();
      parts.add([&](const WorkCallback& done) {
        if (part.sends) {
          comm_->start_send(data, as.count, as.type, part.peer, typed, done);
        } else {
          comm_->start_receive(data, as.count, as.type, part.peer, typed, done);
        }
      });
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
                  outgoing, incoming,
                  label_of(CallLabel::Kind::gather, inputs[0], options.rootRank));
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
                  incoming, label_of(CallLabel::Kind::scatter, outputs[0], options.rootRank));
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
    check_same_type(inputs[i], inputs[0]);
    check_same_type(outputs[i], inputs[0]);
    outgoing.push_back(staged.in(inputs[i]));
    incoming.push_back(staged.out(outputs[i]));
  }
  return exchange(c10d::OpType::ALLTOALL, "sealane:all_to_all", std::move(staged), outputs,
                  outgoing, incoming, label_of(CallLabel::Kind::all_to_all, inputs.at(0)));
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
                  outgoing, incoming, label_of(CallLabel::Kind::all_to_all, input));
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
                   pairs.send(peer, tag, data.data_ptr(), as.count, as.type,
                              label_of(CallLabel::Kind::none, data), std::move(done));
                 });
}

WorkPointer ProcessGroupSealane::recv(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot receive from itself");
  Staged staged;
  const at::Tensor data = staged.out(only(tensors));
  return message(c10d::OpType::RECV, "sealane:recv", peer, std::move(staged), tensors,
                 [&](Pairs& pairs, WorkCallback done) {
                   const Moved as = moved(data);
                   pairs.receive(peer, tag, data.data_ptr(), as.count, as.type,
                                 label_of(CallLabel::Kind::none, data), std::move(done));
                 });
}

}  // namespace sealane::adapter
