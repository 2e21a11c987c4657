// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives that are made of messages, and messages between two ranks.

#include <utility>

#include "process_group.h"

namespace sealane::adapter {

// ---- Collectives made of messages. All ranks take them in one order (by sender, then receiver),
// so that none waits for one that comes later ----

WorkPointer ProcessGroupSealane::exchange(c10d::OpType type, const char* title, Staged staged,
                                          Tensors results, const Tensors& outgoing,
                                          const Tensors& incoming) {
  struct Message {
    bool sends;
    int peer;
    at::Tensor data;
  };
  std::vector<Message> messages;
  const auto add = [&](bool sends, int peer, const at::Tensor& data) {
    if (data.defined() && data.numel() > 0) messages.push_back({sends, peer, data});
  };
  for (int sender = 0; sender < size_; ++sender) {
    for (int receiver = 0; receiver < size_; ++receiver) {
      if (sender == receiver) continue;
      if (sender == rank_) add(true, receiver, outgoing[static_cast<size_t>(receiver)]);
      if (receiver == rank_) add(false, sender, incoming[static_cast<size_t>(sender)]);
    }
  }
  const auto self = static_cast<size_t>(rank_);
  if (incoming[self].defined() && outgoing[self].defined()) incoming[self].copy_(outgoing[self]);
  if (messages.empty()) return finished(type, title, std::move(staged), std::move(results));
  const auto start = [this, messages = std::move(messages)](const WorkCallback& done) {
    for (size_t i = 0; i < messages.size(); ++i) {
      const Message& message = messages[i];
      void* data = message.data.data_ptr();
      const size_t bytes = bytes_of(message.data);
      WorkCallback callback = i + 1 == messages.size() ? done : WorkCallback();
      if (message.sends) {
        comm_->start_send(data, bytes, DataType::uint8, message.peer, std::move(callback));
      } else {
        comm_->start_receive(data, bytes, DataType::uint8, message.peer, std::move(callback));
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
                  outgoing, incoming);
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
                  incoming);
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
                   pairs.send(peer, tag, data.data_ptr(), bytes_of(data), std::move(done));
                 });
}

WorkPointer ProcessGroupSealane::recv(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot receive from itself");
  Staged staged;
  const at::Tensor data = staged.out(only(tensors));
  return message(c10d::OpType::RECV, "sealane:recv", peer, std::move(staged), tensors,
                 [&](Pairs& pairs, WorkCallback done) {
                   pairs.receive(peer, tag, data.data_ptr(), bytes_of(data), std::move(done));
                 });
}

}  // namespace sealane::adapter
