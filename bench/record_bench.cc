// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Short records from cache, at every width this CPU has, beside ipsec-mb's code for the same
// instructions. All code runs as on a CPU of its own: nothing is hidden by SEALANE_CPU, which makes
// clearing registers slow. A figure is the shortest of many short bursts, all interleaved, so that
// it is of the code and hardly of what else the machine does.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "seal/ipsec_mb.h"
#include "seal/native.h"

namespace sealane {
namespace {

constexpr std::array<size_t, 5> kRecordBytes = {256, 512, 1024, 2048, 4096};
constexpr size_t kBurstBytes = 16 << 10;

struct Subject {
  std::string name;
  std::unique_ptr<Aead> aead;
  std::array<double, 2> best_ns{1e9, 1e9};  // to seal, to open
};

std::vector<Subject> subjects() {
  SeededRandom random(1);
  const Key key = Key::random(random);
  std::vector<Subject> found;
  for (const auto engines : {native_engines(), ipsec_mb_code_paths()}) {
    for (const Engine* engine : engines) {
      if (engine->available()) found.push_back({engine->version(), engine->make(key)});
    }
  }
  return found;
}

template <typename Act>
void burst(double& best_ns, size_t bytes, Act act) {
  using Clock = std::chrono::steady_clock;
  const size_t count = kBurstBytes / bytes;
  const Clock::time_point began = Clock::now();
  for (size_t i = 0; i < count; ++i) act();
  const std::chrono::duration<double, std::nano> took = Clock::now() - began;
  best_ns = std::min(best_ns, took.count() / static_cast<double>(count));
}

void measure(std::vector<Subject>& all, size_t bytes, int rounds) {
  const std::vector<uint8_t> plain(bytes, 7);
  std::vector<uint8_t> sealed(bytes);
  std::vector<uint8_t> opened(bytes);
  Iv iv{};
  Tag tag;
  uint64_t count = 0;
  for (int round = 0; round < rounds; ++round) {
    for (Subject& one : all) {
      burst(one.best_ns[0], bytes, [&] {
        store_le(iv.data(), ++count);
        one.aead->seal(iv, {}, plain, sealed, tag);
      });
      burst(one.best_ns[1], bytes, [&] {
        if (!one.aead->open(iv, {}, sealed, tag, opened)) std::abort();
      });
    }
  }
}

}  // namespace
}  // namespace sealane

int main(int argc, char** argv) {
  using namespace sealane;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5000;
  std::printf("shortest of %d bursts, ns a record, seal / open; no additional data\n", rounds);
  for (const size_t bytes : kRecordBytes) {
    std::vector<Subject> all = subjects();
    measure(all, bytes, rounds);
    for (const Subject& one : all) {
      std::printf("%5zu  %-32s %7.1f / %7.1f\n", bytes, one.name.c_str(), one.best_ns[0],
                  one.best_ns[1]);
    }
  }
}
