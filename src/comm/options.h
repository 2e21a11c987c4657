// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What it takes to join a group, and where it comes from when the program does not say: the
// environment, as torchrun, mpirun or the user set it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/collective/schedule.h"
#include "core/lane/limits.h"
#include "core/session/identity.h"
#include "seal/key.h"
#include "transport/fabric.h"

namespace sealane {

enum class CommMode { sealed, plain };
enum class TransportKind { automatic, shm, tcp };

std::string_view to_string(CommMode mode);
Result<TransportKind> parse_transport(std::string_view name);

// A key-value store the program already has (c10d's, say). Untrusted: what passes through it is
// public and checked by the handshake. get() blocks until the key is there or throws nothing and
// returns an error.
struct ExternalStore {
  std::function<Status(const std::string& key, const std::string& value)> set;
  std::function<Result<std::string>(const std::string& key, Duration timeout)> get;
};

constexpr Duration kTimeoutMax = std::chrono::hours(24 * 365);  // longer ones are cut to it

struct JoinOptions {
  Identity self{"default", 0, 0};
  std::string rendezvous;  // "file:DIRECTORY", "tcp:HOST:PORT"; unused with a store
  ExternalStore store;
  CommMode mode = CommMode::sealed;
  TransportKind transport = TransportKind::automatic;
  uint32_t tcp_streams = 0;  // connections of either kind per pair; 0: 1 on one host, else 2
  std::string host;          // ranks that name the same share memory; empty: found out
  Algorithm algorithm = Algorithm::automatic;
  Duration timeout = std::chrono::minutes(5);
  // Either makes the credentials below and attestation unnecessary.
  std::shared_ptr<const Key> key;
  std::shared_ptr<const PairKeys> pair_keys;  // of ranks that met in another group
  std::string key_file;
  std::string key_command;  // that tells the key instead of a file
  std::string key_hub;      // where the confidential data hub is, for key files named kbs:///...
  std::string key_group;    // whose members may read the files of secrets, by name or number
  std::string certificate_file;
  std::string private_key_file;
  std::string authorities_file;
  std::string attest_command;
  KeyLimits key_limits;
  uint32_t record_bytes = 64 << 10;
  // What the wires pass through, if anything: fault injection sits here.
  std::function<std::unique_ptr<Fabric>(std::unique_ptr<Fabric>)> wrap_fabric;
  // How the communicator's threads are made, if not as usual: tests have none to give here.
  std::function<std::thread(std::function<void()>)> make_thread;
  // Asked again and again while joining through a store: true ends it with an error.
  std::function<bool()> given_up;
};

// Fills what is still unset: rank and size (SEALANE_RANK/SIZE, RANK/WORLD_SIZE, OMPI_COMM_WORLD_*),
// rendezvous (SEALANE_RENDEZVOUS, MASTER_ADDR/MASTER_PORT), SEALANE_KEY_FILE and the rest. A usage
// error says which variable is missing or malformed.
Status fill_from_environment(JoinOptions& options);

}  // namespace sealane
