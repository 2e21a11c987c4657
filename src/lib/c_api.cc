// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The C interface: comm.h with exceptions turned into codes at the border.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "sealane/comm.h"
#include "sealane/sealane.h"

using sealane::Comm;
using sealane::CommError;
using sealane::DataType;
using sealane::ReduceOp;

struct sealane_comm {
  Comm comm;
};
struct sealane_work {
  sealane::Work work;
};

namespace {

// Of fixed size: an error must be kept also when memory has run out.
thread_local std::array<char, 1024> last_error{};

void keep_error(const char* what) noexcept {
  std::strncpy(last_error.data(), what, last_error.size() - 1);
}

// Nothing may leave a C function but its code.
template <typename Body>
int guarded(Body body) noexcept {
  try {
    body();
    keep_error("");
    return SEALANE_OK;
  } catch (const CommError& error) {
    keep_error(error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    keep_error(error.what());
  } catch (...) {
    keep_error("an exception of unknown type");
  }
  return SEALANE_ERROR_INTERNAL;
}

[[noreturn]] void refuse(const char* why) { throw CommError(CommError::Kind::usage, why); }

DataType type_of(int type) {
  if (type < SEALANE_FLOAT32 || type > SEALANE_UINT8) refuse("unknown element type");
  return static_cast<DataType>(type);
}
ReduceOp op_of(int op) {
  if (op < SEALANE_SUM || op > SEALANE_MAX) refuse("unknown operator");
  return static_cast<ReduceOp>(op);
}
Comm& group(sealane_comm* comm) {
  if (comm == nullptr) refuse("no communicator");
  return comm->comm;
}
std::string text(const char* value) { return value == nullptr ? std::string() : value; }

constexpr size_t kUnit = 8;  // no field straddles a multiple of it
constexpr size_t kStructBytesMax = 4096;
static_assert(sizeof(sealane_comm_options) % kUnit == 0 && sizeof(void*) == kUnit);

// What both sides know of the caller's structure; never looks beyond the size it states.
sealane_comm_options known_part(const sealane_comm_options* given) {
  sealane_comm_options known;
  sealane_comm_options_init(&known);
  if (given == nullptr) return known;
  const size_t stated = given->struct_bytes;
  if (stated < kUnit || stated > kStructBytesMax) refuse("options without their size");
  const size_t shared = std::min(stated, sizeof known) / kUnit * kUnit;  // half a field is none
  const auto* bytes = reinterpret_cast<const char*>(given);
  // An unknown wish might have been one for safety: better no group than another than asked for.
  if (stated > sizeof known &&
      std::any_of(bytes + sizeof known, bytes + stated, [](char byte) { return byte != 0; })) {
    refuse("an option is set that this library does not know: it is older than the program");
  }
  std::memcpy(static_cast<void*>(&known), given, shared);
  return known;
}

sealane::CommOptions options_of(const sealane_comm_options* given) {
  const sealane_comm_options known = known_part(given);
  sealane::CommOptions options;
  options.rank = known.rank;
  options.size = known.size;
  if (known.group != nullptr) options.group = known.group;
  options.rendezvous = text(known.rendezvous);
  options.key_file = text(known.key_file);
  options.certificate_file = text(known.certificate_file);
  options.certificate_key_file = text(known.certificate_key_file);
  options.authorities_file = text(known.authorities_file);
  if (known.mode != SEALANE_SEALED && known.mode != SEALANE_PLAIN) refuse("unknown mode");
  options.mode = static_cast<sealane::Mode>(known.mode);
  if (known.transport < SEALANE_TRANSPORT_AUTO || known.transport > SEALANE_TRANSPORT_TCP) {
    refuse("unknown transport");
  }
  options.transport = static_cast<sealane::Transport>(known.transport);
  if (known.timeout_ms < 0) refuse("a time-out is not negative; 0 means unset");
  if (known.timeout_ms > 0) options.timeout = std::chrono::milliseconds(known.timeout_ms);
  return options;
}

}  // namespace

extern "C" {

int sealane_abi_version(void) { return SEALANE_ABI_VERSION; }
const char* sealane_last_error(void) { return last_error.data(); }

void sealane_comm_options_init_sized(sealane_comm_options* options, size_t struct_bytes) {
  sealane_comm_options initial = {};
  initial.struct_bytes = struct_bytes;
  initial.rank = -1;
  if (options == nullptr) return;
  std::memset(static_cast<void*>(options), 0, struct_bytes);
  std::memcpy(static_cast<void*>(options), &initial, std::min(struct_bytes, sizeof initial));
}

int sealane_comm_create(const sealane_comm_options* options, sealane_comm** comm) {
  return guarded([&] {
    if (comm == nullptr) refuse("nowhere to put the communicator");
    *comm = nullptr;
    *comm = new sealane_comm{Comm(options_of(options))};
  });
}
void sealane_comm_destroy(sealane_comm* comm) { delete comm; }
int sealane_comm_rank(const sealane_comm* comm) { return comm == nullptr ? -1 : comm->comm.rank(); }
int sealane_comm_size(const sealane_comm* comm) { return comm == nullptr ? -1 : comm->comm.size(); }

int sealane_all_reduce(sealane_comm* comm, const void* in, void* out, size_t count, int type,
                       int op) {
  return guarded([&] { group(comm).all_reduce(in, out, count, type_of(type), op_of(op)); });
}
int sealane_reduce(sealane_comm* comm, const void* in, void* out, size_t count, int type, int op,
                   int root) {
  return guarded([&] { group(comm).reduce(in, out, count, type_of(type), op_of(op), root); });
}
int sealane_reduce_scatter(sealane_comm* comm, const void* in, void* out, size_t count, int type,
                           int op) {
  return guarded([&] { group(comm).reduce_scatter(in, out, count, type_of(type), op_of(op)); });
}
int sealane_all_gather(sealane_comm* comm, const void* in, void* out, size_t count, int type) {
  return guarded([&] { group(comm).all_gather(in, out, count, type_of(type)); });
}
int sealane_broadcast(sealane_comm* comm, const void* in, void* out, size_t count, int type,
                      int root) {
  return guarded([&] { group(comm).broadcast(in, out, count, type_of(type), root); });
}
int sealane_send(sealane_comm* comm, const void* in, size_t count, int type, int peer) {
  return guarded([&] { group(comm).send(in, count, type_of(type), peer); });
}
int sealane_receive(sealane_comm* comm, void* out, size_t count, int type, int peer) {
  return guarded([&] { group(comm).receive(out, count, type_of(type), peer); });
}
int sealane_barrier(sealane_comm* comm) {
  return guarded([&] { group(comm).barrier(); });
}

int sealane_start_all_reduce(sealane_comm* comm, const void* in, void* out, size_t count, int type,
                             int op, sealane_work** work) {
  return guarded([&] {
    if (work == nullptr) refuse("nowhere to put the work");
    *work = nullptr;
    *work =
        new sealane_work{group(comm).start_all_reduce(in, out, count, type_of(type), op_of(op))};
  });
}
int sealane_work_wait(sealane_work* work) {
  const std::unique_ptr<sealane_work> owned(work);
  return guarded([&] {
    if (owned == nullptr) refuse("no work to wait for");
    owned->work.wait();
  });
}

}  // extern "C"
