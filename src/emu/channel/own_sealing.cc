// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/channel/own_sealing.h"

#include <algorithm>

#include "emu/channel/gcm.h"

namespace sealane::emu {
namespace {

Gcm& gcm_of(sealane_emu_sealer* sealer) { return *reinterpret_cast<Gcm*>(sealer); }

GcmIv iv_of(const sealane_emu_message& message) {
  GcmIv iv;
  std::copy(std::begin(message.iv), std::end(message.iv), iv.begin());
  return iv;
}

sealane_emu_sealer* create_own(const uint8_t key[32], int, int, int) {
  GcmKey own;
  std::copy(key, key + own.size(), own.begin());
  return reinterpret_cast<sealane_emu_sealer*>(make_gcm(own).release());
}

void destroy_own(sealane_emu_sealer* sealer) { delete &gcm_of(sealer); }

int seal_own(sealane_emu_sealer* sealer, sealane_emu_message* message) {
  GcmTag tag;
  gcm_of(sealer).seal(iv_of(*message), {message->additional, message->additional_bytes},
                      {message->in, message->bytes}, message->out, tag);
  std::copy(tag.begin(), tag.end(), message->tag);
  return 1;
}

int open_own(sealane_emu_sealer* sealer, const sealane_emu_message* message) {
  GcmTag tag;
  std::copy(std::begin(message->tag), std::end(message->tag), tag.begin());
  return gcm_of(sealer).open(iv_of(*message), {message->additional, message->additional_bytes},
                             {message->in, message->bytes}, tag, message->out)
             ? 1
             : 0;
}

}  // namespace

const sealane_emu_sealing* own_sealing() {
  static const sealane_emu_sealing functions = {sizeof functions, &create_own, &destroy_own,
                                                &seal_own, &open_own};
  return &functions;
}

}  // namespace sealane::emu
