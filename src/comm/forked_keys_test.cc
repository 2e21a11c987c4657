// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank forks between two operations: is a key by which its group seals, or a schedule of one,
// anywhere in the child? What is looked for is what the rank has where its secrets live.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group_fixture.h"
#include "seal/find_in_memory_for_tests.h"

namespace sealane {
namespace {

constexpr size_t kPiece = 32;      // of a key, or two rounds of its schedule
constexpr size_t kAlignment = 64;  // of whatever is among the secrets
constexpr unsigned kPatienceSeconds = 300;

struct Mapping {
  uint64_t begin;
  uint64_t end;
};

// Where secrets live: what the kernel wipes in children.
std::vector<Mapping> places_of_secrets() {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/smaps");
  Mapping last{};
  bool usable = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char mode[3] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %2s", &begin, &end, mode) == 3) {
      last = {begin, end};
      usable = std::string_view(mode) == "rw";
    } else if (usable && line.starts_with("VmFlags:") && line.find(" wf") != line.npos) {
      found.push_back(last);
    }
  }
  return found;
}

// Keys and schedules are; counters, addresses and texts are not.
bool looks_random(const uint8_t* piece) {
  std::bitset<256> values;
  for (size_t i = 0; i < kPiece; ++i) values.set(piece[i]);
  return values.count() >= kPiece * 3 / 4;
}

std::vector<Needle> secrets() {
  std::vector<Needle> found;
  for (const Mapping& mapping : places_of_secrets()) {
    for (uint64_t at = mapping.begin; at + kPiece <= mapping.end; at += kAlignment) {
      const auto* const piece = reinterpret_cast<const uint8_t*>(at);
      if (looks_random(piece)) found.emplace_back(Bytes(piece, kPiece));
    }
  }
  return found;
}

std::string places_of_any(std::vector<Needle>& needles) {
  for (Needle& needle : needles) {
    if (std::string places = needle.places(); !places.empty()) return places;
  }
  return {};
}

// Exit status of a child that says where any of them is; -1 if it had to be ended.
int look_in_child(std::vector<Needle>& needles) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    const std::string places = places_of_any(needles);
    std::fputs(places.c_str(), stderr);
    _exit(places.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Status look(Communicator& comm) {
  std::vector<float> values(300'000, 1);
  if (Status status = comm.run(sum_of(values)); !status) return status;
  if (Status status = comm.run(barrier()); !status) return status;
  if (comm.self().rank == 0) {
    wipe_stack<(64 << 10)>();
    std::vector<Needle> needles = secrets();
    if (needles.size() < 4) return internal_error("two ranks seal to each other: no key was seen");
    for (Needle* one : {&needles.front(), &needles.back()}) {
      EXPECT_GE(places_among_secrets(*one), 1) << "it is not what was looked for";
    }
    EXPECT_EQ(look_in_child(needles), 0);
  }
  if (Status status = comm.run(barrier()); !status) return status;
  return comm.run(sum_of(values));  // the parent goes on
}

TEST(Fork, AChildHasNoKeyOfItsGroup) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  for (const TransportKind transport : {TransportKind::shm, TransportKind::tcp}) {
    GroupSetup setup;
    setup.size = 2;
    setup.transport = transport;
    ThreadGroup group(setup);
    EXPECT_EQ(outcome(group.run(look)), "ok");
  }
}

}  // namespace
}  // namespace sealane
