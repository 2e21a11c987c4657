// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "base/try.h"

namespace sealane {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<uint32_t> number(const char* name, const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return usage_error(concat(name, " should be a number, not '", text, "'"));
}

// The first of the names that is set.
Result<uint32_t> first_number(std::initializer_list<const char*> names, const char* what) {
  for (const char* name : names) {
    if (const auto value = variable(name)) return number(name, *value);
  }
  return usage_error(
      concat("no ", what, " given: set ", *names.begin(), ", or start with torchrun or mpirun"));
}

Status fill_identity(Identity& self) {
  if (self.size != 0) return {};
  SEALANE_LET(auto size,
              first_number({"SEALANE_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}, "group size"));
  SEALANE_LET(auto rank, first_number({"SEALANE_RANK", "RANK", "OMPI_COMM_WORLD_RANK"}, "rank"));
  self.size = size;
  self.rank = rank;
  return {};
}

Status fill_rendezvous(JoinOptions& options) {
  if (!options.rendezvous.empty() || options.store.set || options.self.size == 1) return {};
  if (const auto given = variable("SEALANE_RENDEZVOUS")) {
    options.rendezvous = *given;
    return {};
  }
  const auto host = variable("MASTER_ADDR");
  const auto port = variable("MASTER_PORT");
  if (host && port) {
    // torchrun's own store listens on MASTER_PORT itself.
    SEALANE_LET(auto base, number("MASTER_PORT", *port));
    options.rendezvous = concat("tcp:", *host, ":", base + 1);
    return {};
  }
  // mpirun gives all ranks of a job one name; that is enough on one host.
  if (const auto job = variable("PMIX_NAMESPACE")) {
    options.rendezvous = concat("file:/tmp/sealane-", geteuid(), "-", *job);
    return {};
  }
  return usage_error(
      "no meeting point given: set SEALANE_RENDEZVOUS to file:DIRECTORY or "
      "tcp:HOST:PORT, the same for all ranks");
}

}  // namespace

std::string_view to_string(CommMode mode) { return mode == CommMode::sealed ? "sealed" : "plain"; }

Result<TransportKind> parse_transport(std::string_view name) {
  if (name == "auto") return TransportKind::automatic;
  if (name == "shm") return TransportKind::shm;
  if (name == "tcp") return TransportKind::tcp;
  return usage_error(concat("unknown transport '", name, "'; there are: auto, shm, tcp"));
}

Status fill_from_environment(JoinOptions& options) {
  SEALANE_TRY(fill_identity(options.self));
  SEALANE_TRY(fill_rendezvous(options));
  const auto fill = [](std::string& field, const char* name) {
    if (field.empty()) field = variable(name).value_or("");
  };
  if (options.key == nullptr && options.pair_keys == nullptr) {
    fill(options.key_file, "SEALANE_KEY_FILE");
    fill(options.key_command, "SEALANE_KEY_CMD");
    fill(options.key_hub, "SEALANE_HUB");
    fill(options.key_group, "SEALANE_KEY_GROUP");
    fill(options.certificate_file, "SEALANE_CERT_FILE");
    fill(options.private_key_file, "SEALANE_CERT_KEY_FILE");
    fill(options.authorities_file, "SEALANE_CA_FILE");
    fill(options.attest_command, "SEALANE_ATTEST_CMD");
  }
  fill(options.host, "SEALANE_HOSTID");
  if (const auto text = variable("SEALANE_TCP_STREAMS"); text && options.tcp_streams == 0) {
    SEALANE_LET(options.tcp_streams, number("SEALANE_TCP_STREAMS", *text));
  }
  if (const auto name = variable("SEALANE_TRANSPORT");
      name && options.transport == TransportKind::automatic) {
    auto transport = parse_transport(*name);
    if (!transport) return usage_error("SEALANE_TRANSPORT: " + transport.error().message);
    options.transport = *transport;
  }
  if (const auto name = variable("SEALANE_ALGORITHM");
      name && options.algorithm == Algorithm::automatic) {
    auto algorithm = parse_algorithm(*name);
    if (!algorithm) return usage_error("SEALANE_ALGORITHM: " + algorithm.error().message);
    options.algorithm = *algorithm;
  }
  return {};
}

}  // namespace sealane
