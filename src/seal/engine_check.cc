// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of one engine alone. Knows no other: the preload has this and its own engine.

#include "seal/engine_check.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace sealane {
namespace {

// GCM specification, test case 14: all-zero key, IV and one all-zero block.
bool answers_specification(const Engine& engine) {
  constexpr std::array<uint8_t, 16> expected_ciphertext = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60,
                                                           0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3,
                                                           0xba, 0xf3, 0x9d, 0x18};
  constexpr Tag expected_tag = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
  const std::array<uint8_t, Key::kBytes> zero_key{};
  const auto aead = engine.make(*Key::from_bytes(zero_key));
  const std::array<uint8_t, 16> zeros{};
  std::array<uint8_t, 16> ciphertext{};
  Tag tag{};
  aead->seal(Iv{}, {}, zeros, ciphertext, tag);
  return ciphertext == expected_ciphertext && tag == expected_tag;
}

// 12 KiB and a bit, counted up from zero: the tag speaks for all of the ciphertext.
bool answers_long_question(const Engine& engine) {
  constexpr Tag expected_tag = {0xa5, 0x8b, 0x1e, 0x8c, 0xfd, 0x8f, 0xe2, 0xcc,
                                0x54, 0xbc, 0xd0, 0x05, 0x45, 0x2a, 0xfe, 0x8b};
  std::array<uint8_t, Key::kBytes> key_bytes;
  std::iota(key_bytes.begin(), key_bytes.end(), uint8_t{3});
  const auto aead = engine.make(*Key::from_bytes(key_bytes));
  std::vector<uint8_t> bytes(12_KiB + 13);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  const Iv iv = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Bytes additional(key_bytes.data(), 20);
  std::vector<uint8_t> sealed(bytes.size());
  std::vector<uint8_t> opened(bytes.size());
  Tag tag{};
  aead->seal(iv, additional, bytes, sealed, tag);
  return tag == expected_tag && aead->open(iv, additional, sealed, tag, opened).ok() &&
         opened == bytes;
}

}  // namespace

Status known_answers(const Engine& engine) {
  if (answers_specification(engine) && answers_long_question(engine)) return {};
  return crypto_error(concat(engine.name(), " gives a wrong answer to a known test vector"));
}

std::vector<EngineRate> measure_rates(std::span<const Engine* const> engines, const Clock& clock) {
  constexpr size_t kRecordBytes = 64_KiB;
  constexpr int kTurns = 3;
  constexpr int kRuns = 6;
  constexpr double kInTheRace = 0.4;  // of the best in the first turn: others are not asked again
  const std::array<uint8_t, Key::kBytes> key{};
  std::vector<std::unique_ptr<Aead>> aeads;
  std::vector<EngineRate> rates;
  for (const Engine* engine : engines) {
    aeads.push_back(engine->make(*Key::from_bytes(key)));
    rates.push_back({engine, 0});
  }
  struct alignas(64) Record {  // as slots are
    uint8_t bytes[kRecordBytes];
  };
  const auto plaintext = std::make_unique<Record>();
  const auto ciphertext = std::make_unique<Record>();
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < aeads.size(); ++i) {
      if (rates[i].gb_per_s < kInTheRace * best && turn != 0) continue;
      for (int run = 0; run < kRuns; ++run) {
        Tag tag;
        const Instant begin = clock.now();
        aeads[i]->seal(Iv{}, {}, plaintext->bytes, ciphertext->bytes, tag);  // nobody sees it
        const auto took = static_cast<double>(Duration(clock.now() - begin).count());
        rates[i].gb_per_s = std::max(rates[i].gb_per_s, kRecordBytes / std::max(1.0, took));
      }
      best = std::max(best, rates[i].gb_per_s);
    }
  }
  return rates;
}

const Engine* fastest(std::span<const EngineRate> rates) {
  constexpr double kAsFast = 0.95;
  double best = 0;
  for (const EngineRate& rate : rates) best = std::max(best, rate.gb_per_s);
  for (const EngineRate& rate : rates) {
    if (rate.gb_per_s >= kAsFast * best) return rate.engine;
  }
  return nullptr;
}

}  // namespace sealane
