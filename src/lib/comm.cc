// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "sealane/comm.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/text.h"
#include "comm/communicator.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

[[noreturn]] void fail(const Error& error) {
  throw CommError(static_cast<CommError::Kind>(static_cast<int>(error.kind) + 1), error.message);
}
static_assert(static_cast<int>(CommError::Kind::internal) ==
              static_cast<int>(ErrorKind::internal) + 1);

ElementType element(DataType type) {
  if (type < DataType::float32 || type > DataType::uint8) fail(usage_error("unknown element type"));
  return static_cast<ElementType>(type);
}
static_assert(static_cast<int>(DataType::uint8) == static_cast<int>(ElementType::uint8));
ReduceOperator operator_of(ReduceOp op) {
  if (op < ReduceOp::sum || op > ReduceOp::max) fail(usage_error("unknown operator"));
  return static_cast<ReduceOperator>(op);
}
static_assert(static_cast<int>(ReduceOp::max) == static_cast<int>(ReduceOperator::max));

Label internal(const CallLabel& label) {
  static_assert(static_cast<int>(CallLabel::Kind::reduce) ==
                static_cast<int>(Collective::reduce) + 1);
  static_assert(static_cast<int>(CallLabel::Type::uint8) == static_cast<int>(ElementType::uint8));
  static_assert(static_cast<int>(CallLabel::Op::max) == static_cast<int>(ReduceOperator::max));
  static_assert(static_cast<int>(CallLabel::Op::bit_xor) == static_cast<int>(kLastNamedOperator));
  const auto kind = static_cast<uint8_t>(label.kind);
  if (label.kind > CallLabel::Kind::all_to_all || label.op > CallLabel::Op::bit_xor ||
      static_cast<ElementType>(label.type) > kLastNamedType) {
    fail(usage_error("a label names a call, an operator or a type that there is not"));
  }
  Label out;
  if (label.kind >= CallLabel::Kind::gather) {  // after those that the library carries
    const auto beyond = kind - static_cast<uint8_t>(CallLabel::Kind::gather);
    out.collective = static_cast<Collective>(static_cast<uint8_t>(Collective::gather) + beyond);
  } else if (label.kind != CallLabel::Kind::none) {
    out.collective = static_cast<Collective>(kind - 1);
  }
  out.type = static_cast<ElementType>(label.type);
  out.op = static_cast<ReduceOperator>(label.op);
  if (label.root >= 0) out.root = static_cast<uint32_t>(label.root);
  return out;
}

// Sizes are multiplied here and nowhere else, so that none wraps.
size_t product(size_t a, size_t b) {
  size_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    fail(usage_error("more elements than memory can hold"));
  }
  return result;
}

// Buffers the core only reads are const in the interface; one type serves both inside.
Buffer memory(const void* data, size_t count, DataType type) {
  if (data == nullptr && count > 0) {
    fail(usage_error(concat("a buffer is missing: NULL was given for ", count, " elements")));
  }
  return Buffer({{static_cast<uint8_t*>(const_cast<void*>(data)), product(count, size_of(type))}});
}

Buffer memory(const std::vector<Tensor>& tensors, DataType type) {
  std::vector<MutableBytes> pieces;
  pieces.reserve(tensors.size());
  size_t total = 0;
  for (const Tensor& tensor : tensors) {
    const size_t bytes = product(tensor.count, size_of(type));
    if (tensor.data == nullptr && bytes > 0) {
      fail(usage_error(concat("a tensor of ", tensor.count, " elements has no memory")));
    }
    pieces.emplace_back(static_cast<uint8_t*>(tensor.data), bytes);
    if (__builtin_add_overflow(total, bytes, &total)) {
      fail(usage_error("more elements than memory can hold"));
    }
  }
  return Buffer(std::move(pieces));
}

ExternalStore store_of(const CommOptions& options) {
  if (!options.store_set || !options.store_get) return {};
  ExternalStore store;
  store.set = [set = options.store_set](const std::string& key,
                                        const std::string& value) -> Status {
    try {
      set(key, value);
      return {};
    } catch (const std::exception& error) {
      return io_error(error.what());
    }
  };
  store.get = [get = options.store_get](const std::string& key,
                                        Duration timeout) -> Result<std::string> {
    try {
      return get(key, std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
    } catch (const std::exception& error) {
      return io_error(error.what());
    }
  };
  return store;
}

// All but who the rank is and what it proves that with.
JoinOptions meeting_options(const CommOptions& options) {
  JoinOptions out;
  out.self.group = options.group;
  out.rendezvous = options.rendezvous;
  out.store = store_of(options);
  if (options.mode != Mode::sealed && options.mode != Mode::plain)
    fail(usage_error("unknown mode"));
  if (options.transport < Transport::automatic || options.transport > Transport::tcp) {
    fail(usage_error("unknown transport"));
  }
  out.mode = options.mode == Mode::plain ? CommMode::plain : CommMode::sealed;
  out.transport = static_cast<TransportKind>(options.transport);
  auto algorithm = parse_algorithm(options.algorithm);
  if (!algorithm) fail(algorithm.error());
  out.algorithm = *algorithm;
  // Before it becomes nanoseconds, which are fewer.
  constexpr auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(kTimeoutMax);
  out.timeout = std::min(options.timeout, longest);
  out.given_up = options.given_up;
  return out;
}

JoinOptions join_options(const CommOptions& options) {
  JoinOptions out = meeting_options(options);
  if (options.size > 0) {
    if (options.rank < 0) fail(usage_error("a size was given without a rank"));
    out.self.size = static_cast<uint32_t>(options.size);
    out.self.rank = static_cast<uint32_t>(options.rank);
  }
  if (!options.key.empty()) {
    auto key = Key::from_bytes(as_bytes(options.key));
    if (!key) fail(key.error());
    out.key = std::make_shared<const Key>(std::move(*key));
  }
  out.key_file = options.key_file;
  out.certificate_file = options.certificate_file;
  out.private_key_file = options.certificate_key_file;
  out.authorities_file = options.authorities_file;
  out.attest_command = options.attest_command;
  return out;
}

// As the part of `parent` that `ranks` are. Credentials of the user's are not even copied: a copy
// of a key would stay in memory that nobody wipes.
JoinOptions part_options(const Communicator& parent, const std::vector<int>& ranks,
                         const CommOptions& options) {
  std::vector<uint32_t> members;
  for (const int rank : ranks) {
    if (rank < 0) fail(usage_error("a rank is not negative"));
    members.push_back(static_cast<uint32_t>(rank));
  }
  auto keys = parent.pair_keys(members);
  if (!keys) fail(keys.error());
  const auto self = std::find(members.begin(), members.end(), parent.self().rank);
  JoinOptions out = meeting_options(options);
  out.self.rank = static_cast<uint32_t>(self - members.begin());
  out.self.size = static_cast<uint32_t>(members.size());
  // What plain ranks share, everybody can have: nothing can be sealed by it.
  if (out.mode != parent.mode()) fail(usage_error("a group has the mode of the one it is part of"));
  out.pair_keys = std::make_shared<const PairKeys>(std::move(*keys));
  return out;
}

}  // namespace

size_t size_of(DataType type) { return element_bytes(element(type)); }

struct Work::State {
  std::shared_future<Status> future;
};

bool Work::done() const {
  return state_->future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void Work::wait() const {
  if (const Status& status = state_->future.get(); !status) fail(status.error());
}

struct Comm::Impl {
  std::unique_ptr<Communicator> group;

  Operation operation(Collective collective, Buffer in, Buffer out, DataType type, int root = 0,
                      ReduceOperator op = ReduceOperator::none) const {
    if (root < 0) fail(usage_error("a rank is not negative"));
    return {collective,    element(type),  op, static_cast<uint32_t>(root),
            std::move(in), std::move(out), {}};
  }
  void run(Operation operation) const {
    if (const Status status = group->run(std::move(operation)); !status) fail(status.error());
  }
  Work start(Operation operation, WorkCallback callback) const {
    Communicator::OnDone on_done;
    if (callback) {
      on_done = [callback = std::move(callback)](const Status& status) {
        callback(status ? std::string() : status.error().message);
      };
    }
    auto future = group->start(std::move(operation), std::move(on_done));
    return Work(std::make_shared<Work::State>(Work::State{std::move(future)}));
  }

  Work start(Operation operation, const CallLabel& label, WorkCallback callback) const {
    operation.label = internal(label);
    return start(std::move(operation), std::move(callback));
  }

  Operation all_reduce(Buffer in, Buffer out, DataType type, ReduceOp op) const {
    return operation(Collective::all_reduce, std::move(in), std::move(out), type, 0,
                     operator_of(op));
  }
  Operation reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                   int root) const {
    // Only the root has a result.
    Buffer result =
        root == static_cast<int>(group->self().rank) ? memory(out, count, type) : Buffer();
    return operation(Collective::reduce, memory(in, count, type), std::move(result), type, root,
                     operator_of(op));
  }
  Operation reduce_scatter(const void* in, void* out, size_t count, DataType type,
                           ReduceOp op) const {
    return operation(Collective::reduce_scatter,
                     memory(in, product(count, group->self().size), type), memory(out, count, type),
                     type, 0, operator_of(op));
  }
  Operation all_gather(const void* in, void* out, size_t count, DataType type) const {
    return operation(Collective::all_gather, memory(in, count, type),
                     memory(out, product(count, group->self().size), type), type);
  }
  Operation broadcast(const void* in, void* out, size_t count, DataType type, int root) const {
    const bool sends = root == static_cast<int>(group->self().rank);
    return operation(Collective::broadcast, memory(sends ? in : out, count, type),
                     memory(out, count, type), type, root);
  }
  Operation send(const void* in, size_t count, DataType type, int peer) const {
    return operation(Collective::send, memory(in, count, type), Buffer(), type, peer);
  }
  Operation receive(void* out, size_t count, DataType type, int peer) const {
    return operation(Collective::receive, Buffer(), memory(out, count, type), type, peer);
  }
  Operation barrier() const {
    return operation(Collective::barrier, Buffer(), Buffer(), DataType::uint8);
  }
};

Comm::Comm(const CommOptions& options) : impl_(std::make_unique<Impl>()) {
  auto group = Communicator::create(join_options(options));
  if (!group) fail(group.error());
  impl_->group = std::move(*group);
}
Comm::Comm(const Comm& parent, const std::vector<int>& ranks, const CommOptions& options)
    : impl_(std::make_unique<Impl>()) {
  auto group = Communicator::create(part_options(*parent.impl_->group, ranks, options));
  if (!group) fail(group.error());
  impl_->group = std::move(*group);
}
Comm::Comm(Comm&&) noexcept = default;
Comm& Comm::operator=(Comm&&) noexcept = default;
Comm::~Comm() = default;

int Comm::rank() const { return static_cast<int>(impl_->group->self().rank); }
int Comm::size() const { return static_cast<int>(impl_->group->self().size); }
uint64_t Comm::memory_bytes() const { return impl_->group->memory_bytes(); }
CommTraffic Comm::traffic() const {
  const Traffic traffic = impl_->group->traffic();
  return {traffic.records, traffic.bytes};
}

void Comm::abort() { impl_->group->abort(); }

bool Comm::gone(int rank) const { return impl_->group->gone(static_cast<uint32_t>(rank)); }

std::string Comm::failure() const {
  const auto failure = impl_->group->failure();
  return failure ? failure->message : std::string();
}

int Comm::awaited() const {
  const uint32_t rank = impl_->group->awaited();
  return rank == kNobody ? -1 : static_cast<int>(rank);
}

void Comm::all_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op) {
  impl_->run(impl_->all_reduce(memory(in, count, type), memory(out, count, type), type, op));
}
void Comm::reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op, int root) {
  impl_->run(impl_->reduce(in, out, count, type, op, root));
}
void Comm::reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op) {
  impl_->run(impl_->reduce_scatter(in, out, count, type, op));
}
void Comm::all_gather(const void* in, void* out, size_t count, DataType type) {
  impl_->run(impl_->all_gather(in, out, count, type));
}
void Comm::broadcast(const void* in, void* out, size_t count, DataType type, int root) {
  impl_->run(impl_->broadcast(in, out, count, type, root));
}
void Comm::send(const void* in, size_t count, DataType type, int peer) {
  impl_->run(impl_->send(in, count, type, peer));
}
void Comm::receive(void* out, size_t count, DataType type, int peer) {
  impl_->run(impl_->receive(out, count, type, peer));
}
void Comm::barrier() { impl_->run(impl_->barrier()); }
void Comm::all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op) {
  impl_->run(impl_->all_reduce(memory(tensors, type), memory(tensors, type), type, op));
}

Work Comm::start_all_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                            WorkCallback callback) {
  return impl_->start(
      impl_->all_reduce(memory(in, count, type), memory(out, count, type), type, op),
      std::move(callback));
}
Work Comm::start_all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op,
                            WorkCallback callback) {
  return impl_->start(impl_->all_reduce(memory(tensors, type), memory(tensors, type), type, op),
                      std::move(callback));
}
Work Comm::start_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                        int root, WorkCallback callback) {
  return impl_->start(impl_->reduce(in, out, count, type, op, root), std::move(callback));
}
Work Comm::start_reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                                WorkCallback callback) {
  return impl_->start(impl_->reduce_scatter(in, out, count, type, op), std::move(callback));
}
Work Comm::start_all_gather(const void* in, void* out, size_t count, DataType type,
                            WorkCallback callback) {
  return impl_->start(impl_->all_gather(in, out, count, type), std::move(callback));
}
Work Comm::start_broadcast(const void* in, void* out, size_t count, DataType type, int root,
                           WorkCallback callback) {
  return impl_->start(impl_->broadcast(in, out, count, type, root), std::move(callback));
}
Work Comm::start_send(const void* in, size_t count, DataType type, int peer,
                      WorkCallback callback) {
  return impl_->start(impl_->send(in, count, type, peer), std::move(callback));
}
Work Comm::start_receive(void* out, size_t count, DataType type, int peer, WorkCallback callback) {
  return impl_->start(impl_->receive(out, count, type, peer), std::move(callback));
}
Work Comm::start_barrier(WorkCallback callback) {
  return impl_->start(impl_->barrier(), std::move(callback));
}

Work Comm::start_all_reduce(const std::vector<Tensor>& tensors, DataType type, ReduceOp op,
                            const CallLabel& label, WorkCallback callback) {
  return impl_->start(impl_->all_reduce(memory(tensors, type), memory(tensors, type), type, op),
                      label, std::move(callback));
}
Work Comm::start_reduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                        int root, const CallLabel& label, WorkCallback callback) {
  return impl_->start(impl_->reduce(in, out, count, type, op, root), label, std::move(callback));
}
Work Comm::start_reduce_scatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                                const CallLabel& label, WorkCallback callback) {
  return impl_->start(impl_->reduce_scatter(in, out, count, type, op), label, std::move(callback));
}
Work Comm::start_all_gather(const void* in, void* out, size_t count, DataType type,
                            const CallLabel& label, WorkCallback callback) {
  return impl_->start(impl_->all_gather(in, out, count, type), label, std::move(callback));
}
Work Comm::start_broadcast(const void* in, void* out, size_t count, DataType type, int root,
                           const CallLabel& label, WorkCallback callback) {
  return impl_->start(impl_->broadcast(in, out, count, type, root), label, std::move(callback));
}
Work Comm::start_send(const void* in, size_t count, DataType type, int peer, const CallLabel& label,
                      WorkCallback callback) {
  return impl_->start(impl_->send(in, count, type, peer), label, std::move(callback));
}
Work Comm::start_receive(void* out, size_t count, DataType type, int peer, const CallLabel& label,
                         WorkCallback callback) {
  return impl_->start(impl_->receive(out, count, type, peer), label, std::move(callback));
}

}  // namespace sealane
