// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/network.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.h"
#include "base/try.h"
#include "comm/attest_command.h"
#include "comm/key_file.h"
#include "net/doors.h"

namespace sealane::net {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::optional<uint32_t>> number(const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return std::optional<uint32_t>();
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return std::optional(value);
  return usage_error(concat(name, " should be a number, not '", printable(text, 40), "'"));
}

Result<std::optional<uint32_t>> first_number(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto value = number(name);
    if (!value || *value) return value;
  }
  return std::optional<uint32_t>();
}

Status fill_count(uint32_t& field, const char* name, uint32_t most) {
  SEALANE_LET(auto value, number(name));
  if (!value) return {};
  if (*value < 1 || *value > most) {
    return usage_error(concat(name, " should be from 1 to ", most, ", not ", *value));
  }
  field = *value;
  return {};
}

Status fill_flag(bool& field, const char* name) {
  const std::string text = environment(name);
  if (!text.empty() && text != "0" && text != "1") {
    return usage_error(concat(name, " should be 0 or 1, not '", printable(text, 40), "'"));
  }
  if (!text.empty()) field = text == "1";
  return {};
}

Status fill_job(NetworkOptions& options) {
  SEALANE_LET(auto rank, first_number({"SEALANE_RANK", "RANK", "OMPI_COMM_WORLD_RANK"}));
  SEALANE_LET(auto size, first_number({"SEALANE_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}));
  if (!rank || !size) return {};
  if (*rank >= *size || *size > kRanksMax) {
    return usage_error(concat("rank ", *rank, " of ", *size, " cannot be: there are at most ",
                              kRanksMax, " ranks, numbered from 0"));
  }
  // A job of one rank has several GPUs in it or no need of a network.
  if (*size > 1) options.job = JobRank{*rank, *size};
  return {};
}

}  // namespace

Result<NetworkOptions> options_from_environment(bool sealed) {
  NetworkOptions options;
  if (const std::string group = environment("SEALANE_GROUP"); !group.empty()) options.group = group;
  const std::string own = environment("SEALANE_SOCKET_IFNAME");
  options.interfaces = own.empty() ? environment("NCCL_SOCKET_IFNAME") : own;
  for (const Status& status :
       {fill_job(options), fill_count(options.workers, "SEALANE_NCCL_WORKERS", 64),
        fill_count(options.streams, "SEALANE_NCCL_STREAMS", 16),
        fill_flag(options.device_memory, "SEALANE_NCCL_CUDA")}) {
    if (!status) return status.error();
  }
  if (!sealed) return options;
  // As a member of a group finds them; of one that is alone, so that it needs no meeting point.
  JoinOptions member;
  member.self.size = 1;
  SEALANE_TRY(fill_from_environment(member));
  SEALANE_LET(options.credentials, read_credentials(member));
  if (!member.attest_command.empty()) {
    options.attestor = std::make_shared<AttestCommand>(member.attest_command);
  }
  return options;
}

Result<std::shared_ptr<Network>> Network::open(NetworkOptions options) {
  const Identity probe{options.group, 2, 0};
  SEALANE_TRY(check_identity(probe));
  SEALANE_LET(auto interfaces, find_interfaces(options.interfaces));
  SEALANE_LET(auto engine, chosen_engine());
  std::shared_ptr<Network> network(new Network(std::move(options)));
  network->interfaces_ = std::move(interfaces);
  network->engine_ = engine;
  Credence& credence = network->credence_;
  credence.group = network->options_.group;
  credence.job = network->options_.job;
  credence.credentials = std::move(network->options_.credentials);
  credence.attestor = network->options_.attestor.get();
  credence.pairs = &network->pairs_;
  network->fork_guard_.emplace(static_cast<ForkSensitive&>(*network));
  return network;
}

Network::~Network() = default;

Result<std::shared_ptr<Network::Crew>> Network::Crew::start(uint32_t count) {
  auto crew = std::make_shared<Crew>();
  for (uint32_t i = 0; i < std::max(count, 1U); ++i) {
    SEALANE_LET(auto worker, Worker::start("sealane-net"));
    crew->workers_.push_back(std::move(worker));
  }
  return crew;
}

// All threads first: what one serves may kick what another one does.
Network::Crew::~Crew() {
  for (const auto& worker : workers_) worker->end();
}

Result<std::shared_ptr<Network::Crew>> Network::crew() {
  if (born_.elsewhere()) return of_the_parent();
  const std::lock_guard lock(mutex_);
  if (auto running = crew_.lock()) return running;
  auto crew = Crew::start(options_.workers);
  if (crew) crew_ = *crew;
  return crew;
}

Result<std::shared_ptr<Listener>> Network::listen(size_t interface, MutableBytes handle,
                                                  uint64_t communicator) {
  if (interface >= interfaces_.size()) return usage_error("no such network device");
  SEALANE_LET(auto workers, crew());
  return open_door(shared_from_this(), workers, interfaces_[interface], handle, communicator);
}

Result<std::shared_ptr<Attempt>> Network::connect(Bytes handle, uint64_t communicator) {
  SEALANE_LET(auto parsed, Handle::parse(handle));
  SEALANE_LET(auto workers, crew());
  return knock(shared_from_this(), workers, parsed, communicator);
}

void Network::before_fork() { mutex_.lock(); }
void Network::after_fork_in_parent() { mutex_.unlock(); }

void Network::after_fork_in_child() {
  inherited_ = crew_.lock();
  if (inherited_ != nullptr) {
    for (const auto& worker : inherited_->all()) worker->abandon();
    new std::shared_ptr<Crew>(
        inherited_);  // never ends: its locks are of threads that are not here
  }
  mutex_.unlock();
}

}  // namespace sealane::net
