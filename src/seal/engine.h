// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Which code does AES-256-GCM on this machine. Engines are found at run time: a program built here
// starts on any x86-64, and on machines without the ipsec-mb library's instructions OpenSSL serves.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "seal/aead.h"

namespace sealane {

class Engine {
 public:
  virtual std::string_view name() const = 0;  // as in SEALANE_AEAD: "ipsec-mb", "openssl"
  virtual std::string version() const = 0;    // library and code path, for people
  virtual Status available() const = 0;       // why this CPU or build cannot run it
  virtual std::unique_ptr<Aead> make(const Key& key) const = 0;  // available() holds

 protected:
  ~Engine() = default;  // engines live as long as the process and need no exit handler
};

// Every engine this program was built with, fastest first. Valid for the life of the process.
std::span<const Engine* const> all_engines();

// The engine by its name; a usage error names those there are, or says why it cannot run here.
Result<const Engine*> find_engine(std::string_view name);

// Known answers, then 4 KiB sealed by `engine` and opened by `other` and the reverse. Short: it
// runs at every start.
Status self_test(const Engine& engine, const Engine& other);

// The fastest engine that is available and passes its self-test, or the one SEALANE_AEAD names.
// Decided once; later calls return the same answer. An error means: do not seal at all.
Result<const Engine*> chosen_engine();

}  // namespace sealane
