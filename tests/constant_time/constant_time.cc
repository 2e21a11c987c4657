// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Does the time of our own AES-256-GCM depend on a secret? Under valgrind's memcheck key, plaintext
// and expected tag are marked as undefined: whoever then branches on them, or on what was computed
// from them, or uses it as an address, is reported. What leaves as ciphertext or verdict is public
// and marked as defined again.
//
//   constant_time          schedule, seal, open, parts, compare; must not be reported
//   constant_time leak     branches on a byte of the key: must be reported, or this tests nothing
//
// valgrind knows no VAES, so this is AES-NI's width, and what stands in for the others: the same
// source, with the same strides, on several registers in place of one.

#include <valgrind/memcheck.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "seal/gcm_stand_ins_for_tests.h"
#include "seal/native.h"
#include "seal/split_gcm.h"

namespace sealane {
namespace {

template <typename Object>
void make_secret(Object& object) {
  VALGRIND_MAKE_MEM_UNDEFINED(object.data(), object.size());
}
template <typename Object>
void make_public(Object& object) {
  VALGRIND_MAKE_MEM_DEFINED(object.data(), object.size());
}

int leak() {
  std::array<uint8_t, Key::kBytes> secret{};
  make_secret(secret);
  volatile int odd = 0;
  if (secret[7] != 0) odd = 1;
  return odd;
}

bool seal_and_open(const GcmWidth& width, size_t bytes) {
  std::array<uint8_t, Key::kBytes> secret{};
  std::vector<uint8_t> plain(bytes, 7), sealed(bytes), opened(bytes);
  std::array<uint8_t, 20> additional{};
  make_secret(secret);
  make_secret(plain);
  GcmKey key;
  width.schedule(key, secret);
  const Iv iv{1};
  GcmPart part{iv, 0, {}, plain.data(), sealed.data(), bytes, false, nullptr};
  Tag tag = width.seal_whole(key, part, additional);
  make_public(sealed);
  GcmPart back{iv, 0, {}, sealed.data(), opened.data(), bytes, false, nullptr};
  const Tag computed = width.open_whole(key, back, additional);
  bool genuine = constant_time_equal(computed, tag);
  VALGRIND_MAKE_MEM_DEFINED(&genuine, sizeof genuine);
  make_public(opened);
  make_public(plain);
  wipe({reinterpret_cast<uint8_t*>(&key), sizeof key});
  return genuine && opened == plain;
}

bool seal_in_parts(const GcmWidth& width) {
  std::array<uint8_t, Key::kBytes> secret{};
  std::vector<uint8_t> plain(12_KiB), sealed(12_KiB);
  make_secret(secret);
  make_secret(plain);
  const SplitGcm gcm(width, secret);
  GcmHash hash = gcm.seal_part(Iv{}, 0, plain.data(), sealed.data(), 4_KiB);
  const GcmHash rest = gcm.seal_part(Iv{}, 256, plain.data() + 4_KiB, sealed.data() + 4_KiB, 8_KiB);
  hash = gcm.join(hash, rest, 8_KiB / kGcmBlockBytes);
  Tag tag = gcm.tag(Iv{}, hash, 0, plain.size());
  make_public(tag);
  return tag != Tag{};
}

int check() {
  auto widths = native_widths();
  if (widths.empty()) return 77;  // nothing of ours runs here
#ifdef __x86_64__
  widths.push_back(&two_blocks_width());
  widths.push_back(&four_blocks_width());
#endif
  for (const GcmWidth* width : widths) {
    for (const size_t bytes : {0, 5, 16, 300, 4096, 20000}) {
      if (!seal_and_open(*width, bytes)) return 1;
    }
    if (!seal_in_parts(*width)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace sealane

int main(int argc, char** argv) {
  return argc > 1 && std::strcmp(argv[1], "leak") == 0 ? sealane::leak() * 0 : sealane::check();
}
