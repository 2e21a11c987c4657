// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The C interface: comm.h with exceptions turned into codes at the border.

#include <algorithm>
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

thread_local std::string last_error;

template <typename Body>
int guarded(Body body) {
  try {
    body();
    last_error.clear();
    return SEALANE_OK;
  } catch (const CommError& error) {
    last_error = error.what();
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    last_error = error.what();
    return SEALANE_ERROR_INTERNAL;
  }
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

sealane::CommOptions options_of(const sealane_comm_options* given) {
  sealane_comm_options known;
  sealane_comm_options_init(&known);
  if (given != nullptr) {
    if (given->struct_bytes < sizeof known.struct_bytes) refuse("options without their size");
    // An older caller knows fewer fields, a newer one more: what both know counts.
    std::memcpy(static_cast<void*>(&known), given, std::min(given->struct_bytes, sizeof known));
  }
  sealane::CommOptions options;
  options.rank = known.rank;
  options.size = known.size;
  if (known.group != nullptr) options.group = known.group;
  options.rendezvous = text(known.rendezvous);
  options.key_file = text(known.key_file);
  options.certificate_file = text(known.certificate_file);
  options.certificate_key_file = text(known.certificate_key_file);
  options.authorities_file = text(known.authorities_file);
  options.mode = known.mode == SEALANE_PLAIN ? sealane::Mode::plain : sealane::Mode::sealed;
  if (known.transport < SEALANE_TRANSPORT_AUTO || known.transport > SEALANE_TRANSPORT_TCP) {
    refuse("unknown transport");
  }
  options.transport = static_cast<sealane::Transport>(known.transport);
  if (known.timeout_ms > 0) options.timeout = std::chrono::milliseconds(known.timeout_ms);
  return options;
}

}  // namespace

extern "C" {

int sealane_abi_version(void) { return SEALANE_ABI_VERSION; }
const char* sealane_last_error(void) { return last_error.c_str(); }

void sealane_comm_options_init(sealane_comm_options* options) {
  *options = {};
  options->struct_bytes = sizeof *options;
  options->rank = -1;
}

int sealane_comm_create(const sealane_comm_options* options, sealane_comm** comm) {
  return guarded([&] {
    if (comm == nullptr) refuse("nowhere to put the communicator");
    *comm = nullptr;
    *comm = new sealane_comm{Comm(options_of(options))};
  });
}
void sealane_comm_destroy(sealane_comm* comm) { delete comm; }
int sealane_comm_rank(const sealane_comm* comm) { return comm->comm.rank(); }
int sealane_comm_size(const sealane_comm* comm) { return comm->comm.size(); }

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
