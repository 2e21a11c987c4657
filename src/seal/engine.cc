// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "seal/delivery.h"
#include "seal/engine_check.h"
#include "seal/native.h"
#include "seal/openssl.h"
#include "seal/reduce.h"
#ifdef SEALANE_HAVE_IPSEC_MB
#include "seal/ipsec_mb.h"
#endif

namespace sealane {
namespace {

std::string engine_names() {
  std::string names;
  for (const Engine* engine : all_engines()) {
    if (!names.empty()) names += ", ";
    names += engine->name();
  }
  return names;
}

// What one seals the other must open, and a flipped bit must be refused. 4 KiB and a bit, so that
// the wide code paths and the tail both run.
Status cross_check(const Engine& sealer, const Engine& opener) {
  std::array<uint8_t, Key::kBytes> key_bytes;
  std::iota(key_bytes.begin(), key_bytes.end(), uint8_t{1});
  const Key key = *Key::from_bytes(key_bytes);
  const Iv iv = {7, 6, 5, 4, 3, 2, 1};
  const Bytes additional(key_bytes.data(), 20);

  std::vector<uint8_t> plaintext(4_KiB + 13);
  std::iota(plaintext.begin(), plaintext.end(), uint8_t{0});
  std::vector<uint8_t> ciphertext(plaintext.size());
  std::vector<uint8_t> opened(plaintext.size());
  Tag tag;
  sealer.make(key)->seal(iv, additional, plaintext, ciphertext, tag);
  const auto aead = opener.make(key);
  const Status genuine = aead->open(iv, additional, ciphertext, tag, opened);
  const bool same = genuine.ok() && opened == plaintext;
  ciphertext.back() ^= 1;
  const bool refused = !aead->open(iv, additional, ciphertext, tag, opened).ok();
  if (same && refused) return {};
  return crypto_error(concat("engines disagree: ", sealer.name(), " sealed what ", opener.name(),
                             same ? " opens even with a flipped bit" : " does not open"));
}

// The same with a delivery, which may have loops of its own: 4 KiB of them.
Status check_deliveries(const Engine& engine, const Engine& other) {
  std::array<uint8_t, Key::kBytes> key_bytes;
  std::iota(key_bytes.begin(), key_bytes.end(), uint8_t{2});
  const Key key = *Key::from_bytes(key_bytes);
  const Iv iv = {1, 2, 3};
  const Bytes additional(key_bytes.data(), 20);
  std::vector<uint8_t> first(4_KiB), second(4_KiB), sum(4_KiB), sealed(4_KiB), opened(4_KiB);
  std::iota(first.begin(), first.end(), uint8_t{0});
  std::iota(second.begin(), second.end(), uint8_t{9});
  const Delivery delivery = {first, second, ElementType::float32, ReduceOperator::sum, sum, false};
  std::vector<uint8_t> expected(4_KiB);
  reduce(delivery.type, delivery.op, first, second, expected);

  Tag tag;
  const auto aead = engine.make(key);
  aead->seal(iv, additional, delivery, sealed, tag);
  bool right = sum == expected;
  right &= other.make(key)->open(iv, additional, sealed, tag, opened).ok() && opened == expected;
  sum.assign(sum.size(), 0);
  right &= aead->open(iv, additional, sealed, tag, opened, delivery).ok();
  right &= opened == expected && sum == expected;
  sealed.back() ^= 1;
  right &= !aead->open(iv, additional, sealed, tag, opened, delivery).ok();
  if (right) return {};
  return crypto_error(concat(engine.name(), " seals or opens wrongly beside a delivery"));
}

// A wrong answer is not a reason to try the next engine: this machine's AES cannot be trusted.
Result<EngineChoice> choose() {
  if (!cpu_variable_problem().empty()) return usage_error(cpu_variable_problem());
  const char* wanted = std::getenv("SEALANE_AEAD");
  if (wanted != nullptr && *wanted != '\0') {
    auto engine = find_engine(wanted);
    if (!engine) return usage_error("SEALANE_AEAD: " + engine.error().message);
    if (const Status healthy = self_test(**engine, openssl_engine()); !healthy) {
      return healthy.error();
    }
    return EngineChoice{*engine, true, {}};
  }
  std::vector<const Engine*> right;
  for (const Engine* engine : all_engines()) {
    if (const Status available = engine->available(); !available) {
      SEALANE_LOG(info, "engine %s skipped: %s", std::string(engine->name()).c_str(),
                  available.error().message.c_str());
      continue;
    }
    if (const Status healthy = self_test(*engine, openssl_engine()); !healthy) {
      return healthy.error();
    }
    right.push_back(engine);
  }
  EngineChoice choice{nullptr, false, measure_rates(right, SteadyClock())};
  choice.engine = fastest(choice.rates);
  if (choice.engine == nullptr) return internal_error("no AES-256-GCM engine was built in");
  return choice;
}

}  // namespace

std::span<const Engine* const> all_engines() {
  static const auto& engines = *new std::vector<const Engine*>([] {
    const auto own = native_engines();
    std::vector<const Engine*> all(own.begin(), own.end());
#ifdef SEALANE_HAVE_IPSEC_MB
    all.push_back(&ipsec_mb_engine());
#endif
    all.push_back(&openssl_engine());
    return all;
  }());
  return engines;
}

Result<const Engine*> find_engine(std::string_view name) {
  for (const Engine* engine : all_engines()) {
    if (engine->name() != name) continue;
    const Status available = engine->available();
    if (!available) return available.error();
    return engine;
  }
  return usage_error(concat("unknown engine '", name, "'; this build has: ", engine_names()));
}

Status self_test(const Engine& engine, const Engine& other) {
  if (Status status = known_answers(engine); !status) return status;
  if (Status status = cross_check(engine, other); !status) return status;
  if (Status status = cross_check(other, engine); !status) return status;
  return check_deliveries(engine, other);
}

Result<const EngineChoice*> engine_choice() {
  static const auto& choice = *new Result<EngineChoice>(choose());
  if (!choice) return choice.error();
  return &*choice;
}

Result<const Engine*> chosen_engine() {
  const auto choice = engine_choice();
  if (!choice) return choice.error();
  return (*choice)->engine;
}

}  // namespace sealane
