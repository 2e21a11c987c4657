// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines every conformance test goes through: OpenSSL, each width of our own loop, what stands
// in for its widest, and each code path of ipsec-mb.
#pragma once

#include <string>
#include <vector>

#include "seal/engine.h"
#include "seal/gcm_stand_ins_for_tests.h"
#include "seal/native.h"
#include "seal/openssl.h"
#ifdef SEALANE_HAVE_IPSEC_MB
#include "seal/ipsec_mb.h"
#endif

namespace sealane {

inline std::vector<const Engine*> engines_under_test() {
  std::vector<const Engine*> engines = {&openssl_engine()};
  for (const Engine* engine : native_engines()) {
    if (engine->available()) engines.push_back(engine);
  }
#ifdef __x86_64__
  if (four_blocks_engine().available()) engines.push_back(&four_blocks_engine());
#endif
#ifdef SEALANE_HAVE_IPSEC_MB
  const auto paths = ipsec_mb_code_paths();
  engines.insert(engines.end(), paths.begin(), paths.end());
#endif
  return engines;
}

// A test's name: letters and digits of "ipsec-mb 1.3.0 (AVX2)".
inline std::string test_name(const Engine& engine) {
  std::string name;
  for (const char c : engine.version()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

}  // namespace sealane
