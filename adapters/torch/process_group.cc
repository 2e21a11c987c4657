// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Joining, ending, and the collectives that the library has itself.

#include "process_group.h"

#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "start.h"

namespace sealane::adapter {
namespace {

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

CommOptions with_store(CommOptions options, const c10::intrusive_ptr<c10d::Store>& store,
                       const std::string& start) {
  options.store_set = [store, start](const std::string& key, const std::string& value) {
    store->set(start + key, std::vector<uint8_t>(value.begin(), value.end()));
  };
  options.store_get = [store, start](const std::string& key, std::chrono::milliseconds timeout) {
    try {
      return wait_for_key(*store, start + key, timeout);
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());
    }
  };
  return options;
}

[[noreturn]] void throw_in_world_ranks(const std::exception& error, const std::vector<int>& ranks) {
  throw std::runtime_error("sealane: " + in_world_ranks(error.what(), ranks));
}

// What the keys of this start begin with.
std::string name_start(c10d::Store& store, const CommOptions& options,
                       const std::vector<int>& ranks) {
  try {
    const std::chrono::milliseconds timeout = std::min(options.timeout, kTimeoutMax);
    return agree_on_start(store, options.rank, options.size, timeout) + "/";
  } catch (const std::runtime_error& error) {
    throw_in_world_ranks(error, ranks);
  }
}

}  // namespace

ProcessGroupSealane::ProcessGroupSealane(const c10::intrusive_ptr<c10d::Store>& store,
                                         CommOptions options, std::vector<int> world_ranks,
                                         const ProcessGroupSealane* parent, bool store_is_older)
    : BackendBase(options.rank, options.size),
      world_ranks_(std::move(world_ranks)),
      start_(parent != nullptr ? parent->start_
             : store_is_older  ? name_start(*store, options, world_ranks_)
                               : std::string()),
      options_(with_store(std::move(options), store, start_)),
      is_part_(parent != nullptr),
      process_(getpid()) {
  if (parent != nullptr) parent->check_open();
  try {
    comm_ = parent == nullptr
                ? std::make_unique<Comm>(options_)
                : std::make_unique<Comm>(*parent->comm_, parent->places_of(world_ranks_), options_);
  } catch (const CommError& error) {
    throw_in_world_ranks(error, world_ranks_);
  }
  pairs_ = std::make_unique<Pairs>(*comm_, options_, world_ranks_);
}

// The numbers that ranks of the world have in this group.
std::vector<int> ProcessGroupSealane::places_of(const std::vector<int>& ranks) const {
  std::vector<int> places;
  for (const int rank : ranks) {
    const auto place = std::find(world_ranks_.begin(), world_ranks_.end(), rank);
    TORCH_CHECK(place != world_ranks_.end(), "rank ", rank, " is not of the parent group");
    places.push_back(static_cast<int>(place - world_ranks_.begin()));
  }
  return places;
}

ProcessGroupSealane::~ProcessGroupSealane() { finish_all(); }

void ProcessGroupSealane::finish_all() {
  // What is still under way may have continuations in Python.
  std::optional<pybind11::gil_scoped_release> release;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) release.emplace();
  if (closed_.exchange(true)) return;
  if (pairs_ != nullptr) pairs_->finish();
  if (comm_ != nullptr) turns_->wait_for_all();
  // In a child of fork() a thread that is not there may have the lock, and nobody aborts.
  std::unique_lock lock(ending_, std::defer_lock);
  if (!forked()) lock.lock();
  pairs_.reset();
  comm_.reset();
}

bool ProcessGroupSealane::forked() const { return getpid() != process_; }

void ProcessGroupSealane::abort_all() {
  if (forked()) return;
  const std::lock_guard lock(ending_);
  if (pairs_ != nullptr) pairs_->abort();
  if (comm_ != nullptr) comm_->abort();
}

#if defined(SEALANE_TORCH_SPLITS)
c10::intrusive_ptr<c10d::Backend::Options> ProcessGroupSealane::getBackendOptions() {
  auto out = c10::make_intrusive<Options>(getBackendName(), options_.timeout);
  out->global_ranks_in_group.assign(world_ranks_.begin(), world_ranks_.end());
  return out;
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupSealane::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  check_open();
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end()) return nullptr;
  CommOptions part = options_;
  part.rank = static_cast<int>(self - ranks.begin());
  part.size = static_cast<int>(ranks.size());
  part.timeout = options->timeout;
  part.group = part_name(options->group_name);
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(world_ranks_.at(static_cast<size_t>(root(rank))));
  return c10::make_intrusive<ProcessGroupSealane>(store->clone(), part, members, this, false);
}

// As the Python half names them: short, below the name of the job. All ranks get the same.
std::string ProcessGroupSealane::part_name(const std::string& name) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: names, not secrets
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  std::array<char, 17> digits;
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, hash);
  const std::string job =
      is_part_ ? options_.group.substr(0, options_.group.rfind('.')) : options_.group;
  return job + "." + std::string(digits.data(), 12);
}
#endif

int ProcessGroupSealane::root(int64_t rank) const {
  TORCH_CHECK(rank >= 0 && rank < size_, "rank ", rank, " is not of this group of ", size_);
  return static_cast<int>(rank);
}

CommTraffic ProcessGroupSealane::traffic() const {
  if (forked()) return {};
  const std::lock_guard lock(ending_);
  if (comm_ == nullptr || pairs_ == nullptr) return {};
  CommTraffic sum = comm_->traffic();
  const CommTraffic pairs = pairs_->traffic();
  return {sum.records + pairs.records, sum.bytes + pairs.bytes};
}

// ---- How an operation becomes a Work ----

WorkPointer ProcessGroupSealane::launch(c10d::OpType type, const char* title, Staged staged,
                                        Tensors results, Start start) {
  check_open();
  staged.settle();
  Awaited awaited = [this] {
    const int rank = comm_->awaited();
    return rank < 0 ? -1 : world_ranks_.at(static_cast<size_t>(rank));
  };
  const uint64_t number = ++sequence_;
  auto work = c10::make_intrusive<TorchWork>(rank_, type, title, number, std::move(staged),
                                             std::move(results), std::move(awaited), turns_);
  const WorkCallback done = [this, work, number](const std::string& error) {
    work->end(error.empty() ? error : explain(error, *work, number));
  };
  turns_->add(work->turn(),
              [this, start = std::move(start), done] { Parts::run(*comm_, start, done); });
  return work;
}

// Which operation it was, for whoever compares the ranks' last words.
std::string ProcessGroupSealane::explain(const std::string& error, const TorchWork& work,
                                         uint64_t number) const {
  return in_world_ranks(error, world_ranks_) + " (in " + work.name() + ", operation " +
         std::to_string(number) + " of " + std::to_string(sequence_) + " that rank " +
         std::to_string(world_ranks_.at(static_cast<size_t>(rank_))) + " has called in group " +
         options_.group + ")";
}

void ProcessGroupSealane::check_open() const {
  TORCH_CHECK(!closed_, "sealane: the group was shut down");
}

WorkPointer ProcessGroupSealane::finished(c10d::OpType type, const char* title, Staged staged,
                                          Tensors results) {
  return launch(type, title, std::move(staged), std::move(results), [](Parts&) {});
}

WorkPointer ProcessGroupSealane::gather_all(c10d::OpType type, const char* title, Staged staged,
                                            Tensors results, std::vector<Move> moves,
                                            const CallLabel& label) {
  return launch(type, title, std::move(staged), std::move(results),
                [this, moves = std::move(moves), label](Parts& parts) {
                  for (const Move& move : moves) {
                    const Moved as = moved(move.from);
                    CallLabel own = label;  // tensors that are gathered together may differ in type
                    own.type = word_for(move.from.scalar_type());
                    parts.add([&](const WorkCallback& done) {
                      comm_->start_all_gather(move.from.data_ptr(), move.to.data_ptr(), as.count,
                                              as.type, own, done);
                    });
                  }
                });
}

// ---- Collectives of the library ----

WorkPointer ProcessGroupSealane::broadcast(Tensors& tensors,
                                           const c10d::BroadcastOptions& options) {
  const int from = root(options.rootRank);
  Staged staged;
  const at::Tensor data = staged.in_out(only(tensors));
  return launch(c10d::OpType::BROADCAST, "sealane:broadcast", std::move(staged), tensors,
                [this, data, from](Parts& parts) {
                  const Moved as = moved(data);
                  parts.add([&](const WorkCallback& done) {
                    comm_->start_broadcast(data.data_ptr(), data.data_ptr(), as.count, as.type,
                                           from, label_of(CallLabel::Kind::broadcast, data), done);
                  });
                });
}

WorkPointer ProcessGroupSealane::allreduce(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) {
  only(tensors);
  c10d::AllreduceCoalescedOptions together;
  together.reduceOp = options.reduceOp;
  return reduce_all(c10d::OpType::ALLREDUCE, tensors, together);
}

WorkPointer ProcessGroupSealane::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return reduce_all(c10d::OpType::ALLREDUCE_COALESCED, tensors, options);
}

WorkPointer ProcessGroupSealane::reduce_all(c10d::OpType kind, Tensors& tensors,
                                            const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), "at least one tensor is expected");
  const at::ScalarType type = tensors[0].scalar_type();
  const TorchOp op = checked_operator(options.reduceOp, type);
  for (const at::Tensor& tensor : tensors) {
    check_tensor(tensor);
    check_same_type(tensor, tensors[0]);
  }
  const CallLabel label = label_of(CallLabel::Kind::all_reduce, tensors[0], op);
  Staged staged;
  if (const auto how = native(op, type)) {
    std::vector<Tensor> pieces;
    for (const at::Tensor& tensor : tensors) {
      const at::Tensor data = staged.in_out(tensor);
      pieces.push_back({data.data_ptr(), count_of(data)});
    }
    return launch(kind, "sealane:all_reduce", std::move(staged), tensors,
                  [this, pieces, how, label](Parts& parts) {
                    parts.add([&](const WorkCallback& done) {
                      comm_->start_all_reduce(pieces, how->type, how->op, label, done);
                    });
                  });
  }
  std::vector<Move> moves;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor from = staged.in(tensor);
    moves.push_back({from, staged.folded(tensor, from, size_, op, true)});
  }
  return gather_all(kind, "sealane:all_reduce", std::move(staged), tensors, std::move(moves),
                    label);
}

WorkPointer ProcessGroupSealane::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::ScalarType type = only(tensors).scalar_type();
  const TorchOp op = checked_operator(options.reduceOp, type);
  const int to = root(options.rootRank);
  const CallLabel label = label_of(CallLabel::Kind::reduce, tensors[0], op, to);
  Staged staged;
  const auto how = native(op, type);
  if (!how) {
    const at::Tensor from = staged.in(tensors[0]);
    const at::Tensor all = staged.folded(tensors[0], from, size_, op, rank_ == to);
    return gather_all(c10d::OpType::REDUCE, "sealane:reduce", std::move(staged), tensors,
                      {{from, all}}, label);
  }
  const at::Tensor data = rank_ == to ? staged.in_out(tensors[0]) : staged.in(tensors[0]);
  return launch(c10d::OpType::REDUCE, "sealane:reduce", std::move(staged), tensors,
                [this, data, how, to, label](Parts& parts) {
                  parts.add([&](const WorkCallback& done) {
                    comm_->start_reduce(data.data_ptr(), data.data_ptr(), count_of(data), how->type,
                                        how->op, to, label, done);
                  });
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
  staged.show(inputs);
  const at::Tensor from = staged.in(inputs[0]);
  const at::Tensor to = staged.out(outputs[0]);
  return gather_all(c10d::OpType::ALLGATHER, "sealane:all_gather", std::move(staged), outputs[0],
                    {{from, to}}, label_of(CallLabel::Kind::all_gather, from));
}

WorkPointer ProcessGroupSealane::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions&) {
  Tensors outputs = {output};
  Tensors inputs = {input};
  return gather_tensors(c10d::OpType::_ALLGATHER_BASE, outputs, inputs);
}

WorkPointer ProcessGroupSealane::gather_tensors(c10d::OpType kind, const Tensors& outputs,
                                                const Tensors& inputs) {
  TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(), "one output per input");
  Staged staged;
  staged.show(inputs);
  std::vector<Move> moves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(outputs[i]);
    check_tensor(inputs[i]);
    check_same_type(outputs[i], inputs[i]);
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * size_, "the output must be ", size_,
                " times as large as the input");
    const at::Tensor from = staged.in(inputs[i]);
    moves.push_back({from, staged.out(outputs[i])});
  }
  return gather_all(kind, "sealane:all_gather", std::move(staged), outputs, std::move(moves),
                    label_of(CallLabel::Kind::all_gather, inputs[0]));
}

WorkPointer ProcessGroupSealane::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                     const c10d::AllgatherOptions&) {
  TORCH_CHECK(!inputs.empty() && outputs.size() == static_cast<size_t>(size_),
              "one list of outputs per rank is expected");
  Staged staged;
  staged.show(inputs);
  Tensors results;
  std::vector<Move> moves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i]);
    Tensors parts;
    for (const Tensors& of_rank : outputs) parts.push_back(of_rank.at(i));
    for (const at::Tensor& part : parts) {
      check_tensor(part);
      check_same_type(part, inputs[i]);
      TORCH_CHECK(part.numel() == inputs[i].numel(), "outputs must have the size of the input");
    }
    const at::Tensor from = staged.in(inputs[i]);
    moves.push_back({from, staged.out(parts)});
    results.insert(results.end(), parts.begin(), parts.end());
  }
  return gather_all(c10d::OpType::ALLGATHER_COALESCED, "sealane:all_gather", std::move(staged),
                    std::move(results), std::move(moves),
                    label_of(CallLabel::Kind::all_gather, inputs[0]));
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
  return reduce_scatter_tensors(c10d::OpType::_REDUCE_SCATTER_BASE, {output}, {input},
                                options.reduceOp);
}

WorkPointer ProcessGroupSealane::reduce_scatter_tensors(c10d::OpType kind, const Tensors& outputs,
                                                        const Tensors& inputs,
                                                        const c10d::ReduceOp& reduce_op) {
  TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(), "one output per input");
  Staged staged;
  staged.show(inputs);
  std::vector<Move> moves;
  std::optional<Native> how;
  const TorchOp op = checked_operator(reduce_op, outputs[0].scalar_type());
  const CallLabel label = label_of(CallLabel::Kind::reduce_scatter, outputs[0], op);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(outputs[i]);
    check_tensor(inputs[i]);
    check_same_type(outputs[i], inputs[i]);
    check_same_type(outputs[i], outputs[0]);
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * size_, "the input must be ", size_,
                " times as large as the output");
    how = native(op, outputs[0].scalar_type());
    const at::Tensor from = staged.in(inputs[i]);
    if (how) {
      moves.push_back({from, staged.out(outputs[i])});
    } else {
      const at::Tensor rows = from.view({size_, outputs[i].numel()});
      moves.push_back({from, staged.folded(outputs[i], rows, size_, op, true, rank_)});
    }
  }
  const char* title = "sealane:reduce_scatter";
  if (!how) return gather_all(kind, title, std::move(staged), outputs, std::move(moves), label);
  return launch(kind, title, std::move(staged), outputs, [this, moves, how, label](Parts& parts) {
    for (const Move& move : moves) {
      parts.add([&](const WorkCallback& done) {
        comm_->start_reduce_scatter(move.from.data_ptr(), move.to.data_ptr(), count_of(move.to),
                                    how->type, how->op, label, done);
      });
    }
  });
}

#if defined(SEALANE_TORCH_COALESCES)
WorkPointer ProcessGroupSealane::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                 const c10d::AllgatherOptions&) {
  return gather_tensors(c10d::OpType::COALESCED, outputs, inputs);
}

WorkPointer ProcessGroupSealane::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return reduce_scatter_tensors(c10d::OpType::COALESCED, outputs, inputs, options.reduceOp);
}
#endif

WorkPointer ProcessGroupSealane::barrier(const c10d::BarrierOptions&) {
  return launch(c10d::OpType::BARRIER, "sealane:barrier", {}, {}, [this](Parts& parts) {
    parts.add([&](const WorkCallback& done) { comm_->start_barrier(done); });
  });
}

void ProcessGroupSealane::monitoredBarrier(const c10d::BarrierOptions& options, bool) {
  barrier(options)->wait(std::max(options.timeout, kNoTimeout));
}

}  // namespace sealane::adapter
