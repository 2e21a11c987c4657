// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The one file that is compiled against libtorch, with the Python module at its end: its headers
// take longer than everything else here.

#include "process_group.h"

#include <pybind11/chrono.h>
#include <sys/random.h>
#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <thread>
#include <utility>

#include "sealane/version.h"

namespace sealane::adapter {
namespace {

constexpr size_t kSecretBytes = 32;

// c10d's stores hold a lock while they wait, so that nobody else could leave an address: look, and
// wait here.
std::string wait_for_key(c10d::Store& store, const std::string& key,
                         std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::chrono::milliseconds pause(1);
  while (!store.check({key})) {
    TORCH_CHECK_VALUE(std::chrono::steady_clock::now() < deadline,
                      "it left no address in the store in time: was it started?");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
  const std::vector<uint8_t> value = store.get(key);
  return {value.begin(), value.end()};
}

CommOptions with_store(CommOptions options, const c10::intrusive_ptr<c10d::Store>& store) {
  options.store_set = [store](const std::string& key, const std::string& value) {
    store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
  };
  options.store_get = [store](const std::string& key, std::chrono::milliseconds timeout) {
    try {
      return wait_for_key(*store, key, timeout);
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());
    }
  };
  return options;
}

}  // namespace

ProcessGroupSealane::ProcessGroupSealane(const c10::intrusive_ptr<c10d::Store>& store,
                                         CommOptions options, std::vector<int> world_ranks,
                                         const ProcessGroupSealane* parent)
    : BackendBase(options.rank, options.size),
      options_(with_store(std::move(options), store)),
      world_ranks_(std::move(world_ranks)) {
  if (parent != nullptr) options_.key = parent->options_.key;
  try {
    comm_ = std::make_unique<Comm>(options_);
    if (sealed()) agree_on_secret();
  } catch (const CommError& error) {
    throw std::runtime_error("sealane: " + in_world_ranks(error.what(), world_ranks_));
  }
  pairs_ = std::make_unique<Pairs>(options_, world_ranks_);
}

ProcessGroupSealane::~ProcessGroupSealane() {
  // What is still under way may have continuations in Python.
  std::optional<pybind11::gil_scoped_release> release;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) release.emplace();
  pairs_.reset();
  comm_.reset();
}

void ProcessGroupSealane::agree_on_secret() {
  std::string& secret = options_.key;  // in the place of the parent's
  secret.resize(kSecretBytes);
  if (rank_ == 0 && getrandom(secret.data(), kSecretBytes, 0) != ssize_t{kSecretBytes}) {
    throw CommError(CommError::Kind::io, "the system gives no random numbers");
  }
  comm_->broadcast(secret.data(), secret.data(), kSecretBytes, DataType::uint8, 0);
}

int ProcessGroupSealane::root(int64_t rank) const {
  TORCH_CHECK(rank >= 0 && rank < size_, "rank ", rank, " is not of this group of ", size_);
  return static_cast<int>(rank);
}

CommTraffic ProcessGroupSealane::traffic() const {
  CommTraffic sum = comm_->traffic();
  const CommTraffic pairs = pairs_->traffic();
  return {sum.records + pairs.records, sum.bytes + pairs.bytes};
}

// ---- How an operation becomes a Work ----

template <typename Start>
WorkPointer ProcessGroupSealane::launch(c10d::OpType type, const char* title, Staged staged,
                                        Tensors results, Start start, Awaited awaited) {
  ++sequence_;
  if (!awaited) {
    awaited = [this, comm = comm_.get()] {
      const int rank = comm->awaited();
      return rank < 0 ? -1 : world_ranks_.at(static_cast<size_t>(rank));
    };
  }
  auto work = c10::make_intrusive<TorchWork>(rank_, type, title, std::move(staged),
                                             std::move(results), std::move(awaited));
  start([this, work](const std::string& error) { work->end(in_world_ranks(error, world_ranks_)); });
  return work;
}

WorkPointer ProcessGroupSealane::finished(c10d::OpType type, const char* title, Staged staged,
                                          Tensors results) {
  return launch(type, title, std::move(staged), std::move(results),
                [](const WorkCallback& done) { done({}); });
}

// ---- Collectives of the library ----

WorkPointer ProcessGroupSealane::broadcast(Tensors& tensors,
                                           const c10d::BroadcastOptions& options) {
  Staged staged;
  const at::Tensor data = staged.in_out(only(tensors));
  return launch(c10d::OpType::BROADCAST, "sealane:broadcast", std::move(staged), tensors,
                [&](WorkCallback done) {
                  comm_->start_broadcast(data.data_ptr(), data.data_ptr(), bytes_of(data),
                                         DataType::uint8, root(options.rootRank), std::move(done));
                });
}

WorkPointer ProcessGroupSealane::allreduce(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) {
  const at::ScalarType type = only(tensors).scalar_type();
  const DataType element = reducible(type);
  const ReduceOp op = operator_for(options.reduceOp, type);
  Staged staged;
  const at::Tensor data = staged.in_out(tensors[0]);
  return launch(c10d::OpType::ALLREDUCE, "sealane:all_reduce", std::move(staged), tensors,
                [&](WorkCallback done) {
                  comm_->start_all_reduce(data.data_ptr(), data.data_ptr(), count_of(data), element,
                                          op, std::move(done));
                });
}

WorkPointer ProcessGroupSealane::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), "at least one tensor is expected");
  const at::ScalarType type = tensors[0].scalar_type();
  const DataType element = reducible(type);
  const ReduceOp op = operator_for(options.reduceOp, type);
  Staged staged;
  std::vector<Tensor> pieces;
  for (const at::Tensor& tensor : tensors) {
    check_tensor(tensor);
    check_same_type(tensor, tensors[0]);
    const at::Tensor data = staged.in_out(tensor);
    pieces.push_back({data.data_ptr(), count_of(data)});
  }
  return launch(
      c10d::OpType::ALLREDUCE_COALESCED, "sealane:all_reduce", std::move(staged), tensors,
      [&](WorkCallback done) { comm_->start_all_reduce(pieces, element, op, std::move(done)); });
}

WorkPointer ProcessGroupSealane::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::ScalarType type = only(tensors).scalar_type();
  const DataType element = reducible(type);
  const ReduceOp op = operator_for(options.reduceOp, type);
  const int to = root(options.rootRank);
  Staged staged;
  const at::Tensor data = rank_ == to ? staged.in_out(tensors[0]) : staged.in(tensors[0]);
  return launch(c10d::OpType::REDUCE, "sealane:reduce", std::move(staged), tensors,
                [&](WorkCallback done) {
                  comm_->start_reduce(data.data_ptr(), data.data_ptr(), count_of(data), element, op,
                                      to, std::move(done));
                });
}

WorkPointer ProcessGroupSealane::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions&) {
  only(inputs);
  TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_),
              "one output per rank is expected");
  for (const at::Tensor& output : outputs[0]) {
    check_tensor(output);
    check_same_type(output, inputs[0]);
    TORCH_CHECK(output.numel() == inputs[0].numel(), "outputs must have the size of the input");
  }
  Staged staged;
  const at::Tensor from = staged.in(inputs[0]);
  const at::Tensor to = staged.out(outputs[0]);
  return launch(c10d::OpType::ALLGATHER, "sealane:all_gather", std::move(staged), outputs[0],
                [&](WorkCallback done) {
                  comm_->start_all_gather(from.data_ptr(), to.data_ptr(), bytes_of(from),
                                          DataType::uint8, std::move(done));
                });
}

WorkPointer ProcessGroupSealane::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions&) {
  check_tensor(output);
  check_tensor(input);
  check_same_type(output, input);
  TORCH_CHECK(output.numel() == input.numel() * size_, "the output must be ", size_,
              " times as large as the input");
  Staged staged;
  const at::Tensor from = staged.in(input);
  const at::Tensor to = staged.out(output);
  return launch(c10d::OpType::_ALLGATHER_BASE, "sealane:all_gather", std::move(staged), {output},
                [&](WorkCallback done) {
                  comm_->start_all_gather(from.data_ptr(), to.data_ptr(), bytes_of(from),
                                          DataType::uint8, std::move(done));
                });
}

WorkPointer ProcessGroupSealane::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                     const c10d::AllgatherOptions& options) {
  TORCH_CHECK(!inputs.empty() && outputs.size() == static_cast<size_t>(size_),
              "one list of outputs per rank is expected");
  WorkPointer last;  // they end in order, and an error of one is the error of all that follow
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Tensors> parts(1);
    for (const Tensors& of_rank : outputs) parts[0].push_back(of_rank.at(i));
    Tensors part = {inputs[i]};
    last = allgather(parts, part, options);
  }
  return last;
}

WorkPointer ProcessGroupSealane::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                const c10d::ReduceScatterOptions& options) {
  only(outputs);
  TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_),
              "one input per rank is expected");
  for (const at::Tensor& input : inputs[0]) {
    check_tensor(input);
    TORCH_CHECK(input.numel() == outputs[0].numel(), "inputs must have the size of the output");
  }
  at::Tensor together = at::stack(inputs[0]);
  return _reduce_scatter_base(outputs[0], together, options);
}

WorkPointer ProcessGroupSealane::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::ReduceScatterOptions& options) {
  check_tensor(output);
  check_tensor(input);
  check_same_type(output, input);
  TORCH_CHECK(input.numel() == output.numel() * size_, "the input must be ", size_,
              " times as large as the output");
  const DataType element = reducible(output.scalar_type());
  const ReduceOp op = operator_for(options.reduceOp, output.scalar_type());
  Staged staged;
  const at::Tensor from = staged.in(input);
  const at::Tensor to = staged.out(output);
  return launch(c10d::OpType::_REDUCE_SCATTER_BASE, "sealane:reduce_scatter", std::move(staged),
                {output}, [&](WorkCallback done) {
                  comm_->start_reduce_scatter(from.data_ptr(), to.data_ptr(), count_of(to), element,
                                              op, std::move(done));
                });
}

WorkPointer ProcessGroupSealane::barrier(const c10d::BarrierOptions&) {
  return launch(c10d::OpType::BARRIER, "sealane:barrier", {}, {},
                [&](WorkCallback done) { comm_->start_barrier(std::move(done)); });
}

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
  return launch(type, title, std::move(staged), std::move(results), [&](const WorkCallback& done) {
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
  });
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

Awaited ProcessGroupSealane::of_world(int peer) const {
  return [rank = world_ranks_.at(static_cast<size_t>(peer))] { return rank; };
}

WorkPointer ProcessGroupSealane::send(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot send to itself");
  Staged staged;
  const at::Tensor data = staged.in(only(tensors));
  return launch(
      c10d::OpType::SEND, "sealane:send", std::move(staged), tensors,
      [&](WorkCallback done) {
        pairs_->send(peer, tag, data.data_ptr(), bytes_of(data), std::move(done));
      },
      of_world(peer));
}

WorkPointer ProcessGroupSealane::recv(Tensors& tensors, int peer, int tag) {
  TORCH_CHECK(root(peer) != rank_, "a rank cannot receive from itself");
  Staged staged;
  const at::Tensor data = staged.out(only(tensors));
  return launch(
      c10d::OpType::RECV, "sealane:recv", std::move(staged), tensors,
      [&](WorkCallback done) {
        pairs_->receive(peer, tag, data.data_ptr(), bytes_of(data), std::move(done));
      },
      of_world(peer));
}

// ---- Python ----

namespace {

Mode mode_of(const std::string& name) {
  if (name == "sealed") return Mode::sealed;
  if (name == "plain") return Mode::plain;
  throw pybind11::value_error("mode is 'sealed' or 'plain', not '" + name + "'");
}

Transport transport_of(const std::string& name) {
  if (name == "auto") return Transport::automatic;
  if (name == "shm") return Transport::shm;
  if (name == "tcp") return Transport::tcp;
  throw pybind11::value_error("transport is 'auto', 'shm' or 'tcp', not '" + name + "'");
}

}  // namespace

PYBIND11_MODULE(_torch, module) {
  namespace py = pybind11;
  py::module_::import("torch.distributed");  // registers the base class
  module.doc() = "The process group behind sealane.torch; use that module.";
  module.attr("version") = std::string(sealane::version());

  py::class_<CommOptions>(module, "CommOptions")
      .def(py::init())
      .def_readwrite("rank", &CommOptions::rank)
      .def_readwrite("size", &CommOptions::size)
      .def_readwrite("group", &CommOptions::group)
      .def_readwrite("algorithm", &CommOptions::algorithm)
      .def_readwrite("timeout", &CommOptions::timeout)
      .def_readwrite("key_file", &CommOptions::key_file)
      .def_readwrite("certificate_file", &CommOptions::certificate_file)
      .def_readwrite("certificate_key_file", &CommOptions::certificate_key_file)
      .def_readwrite("authorities_file", &CommOptions::authorities_file)
      .def_readwrite("attest_command", &CommOptions::attest_command)
      .def("set_mode",
           [](CommOptions& self, const std::string& name) { self.mode = mode_of(name); })
      .def("set_transport",
           [](CommOptions& self, const std::string& name) { self.transport = transport_of(name); });

  py::class_<ProcessGroupSealane, c10::intrusive_ptr<ProcessGroupSealane>, BackendBase>(
      module, "ProcessGroupSealane")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, const CommOptions& options,
                       const std::vector<int>& world_ranks, const ProcessGroupSealane* parent) {
             return c10::make_intrusive<ProcessGroupSealane>(store, options, world_ranks, parent);
           }),
           py::arg("store"), py::arg("options"), py::arg("world_ranks"), py::arg("parent"),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("sealed", &ProcessGroupSealane::sealed)
      .def_property_readonly("traffic", [](const ProcessGroupSealane& self) {
        const CommTraffic traffic = self.traffic();
        return std::pair(traffic.records, traffic.bytes);
      });
}

}  // namespace sealane::adapter
