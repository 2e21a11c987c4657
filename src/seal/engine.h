// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which code does AES-256-GCM on this machine. Engines are found at run time: a program built here
// starts on any x86-64. Which one serves is measured at every start; where nothing else can run,
// OpenSSL does.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "seal/aead.h"

namespace sealane {

class Engine {
 public:
  virtual std::string_view name() const = 0;  // as in SEALANE_AEAD: "vaes-256", "openssl"
  virtual std::string version() const = 0;    // library and code path, for people
  virtual Status available() const = 0;       // why this CPU or build cannot run it
  virtual std::unique_ptr<Aead> make(const Key& key) const = 0;  // available() holds

 protected:
  ~Engine() = default;  // engines live as long as the process and need no exit handler
};

// Every engine this program was built with: those that are equally fast elsewhere are chosen in
// this order. Valid for the life of the process.
std::span<const Engine* const> all_engines();

// The engine by its name; a usage error names those there are, or says why it cannot run here.
Result<const Engine*> find_engine(std::string_view name);

// Known answers, then 4 KiB sealed by `engine` and opened by `other` and the reverse. Short: it
// runs at every start.
Status self_test(const Engine& engine, const Engine& other);

struct EngineRate {
  const Engine* engine;
  double gb_per_s;  // of 64 KiB records in cache; 0 if it was not measured
};

struct EngineChoice {
  const Engine* engine;
  bool named;                     // by SEALANE_AEAD: nothing was measured
  std::vector<EngineRate> rates;  // of all engines that can run here
};

// The engine SEALANE_AEAD names, or the fastest of those that are available. All of them have
// passed their self-test. Decided once; later calls return the same answer. An error means: do not
// seal at all.
Result<const EngineChoice*> engine_choice();
Result<const Engine*> chosen_engine();

}  // namespace sealane
