// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What libcrypto holds in one EVP context, as far as AES-256-GCM is concerned: cipher, key, IV,
// direction, how far the message is, tag. It is told of every call, and asked at the first byte of
// a message and at every step of one that we began: is this ours to answer? Only if everything
// about the message is understood; else all of it is libcrypto's.
//
//   none -- IV --> ready -- additional data --> additional
//                    |                              |
//                    +---------- first byte --------+---> ours -- end --> over   as libcrypto's
//                    |                              |       |                    finished state
//                    +-- anything not understood ---+       |
//                                   |                       +-- anything not understood
//                                   |                       |
//                                 theirs: libcrypto says itself what goes
//
// An IV begins a message in any state. A cipher begins all anew, as it does in OpenSSL 3.
//
// The real context makes every call up to the first byte, and then its IV is burnt: libcrypto takes
// it for used, and refuses bytes and ends until it is given another (used_iv.h). So the real
// context can never see a byte of a message that we began, whoever asks it: the child of a fork,
// libcrypto's own functions, a call within a call. The same keystream twice is not possible, and
// what is refused it refuses itself, with its own errors. (While answers are verified it makes
// every call of the message, and its IV is used up by that.)
//
// Stricter than libcrypto, never laxer: where it would go on from the middle of a message that we
// began, with another direction or key, after a call that was refused halfway, after a tag that was
// wrong, it refuses, because its IV is burnt.
//
// Pure: no call of libcrypto, no clock, no thread. Used by one thread at a time, as its context is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mutants.h"
#include "seal/aead.h"

namespace sealane::preload {

enum class Answer : uint8_t {
  libcrypto,  // make the call
  ours,
  refused,  // libcrypto does
};

class GcmState {
 public:
  // What libcrypto says of a context after a call.
  struct Facts {
    bool gcm = false;  // AES-256-GCM, and of OpenSSL's own making
    bool sealing = false;
    size_t iv_bytes = 0;
  };
  struct InitCall {
    bool cipher = false;
    bool key = false;
    std::span<const uint8_t> iv;  // as long as it says it is; empty if none
    bool iv_length = false;       // set among its parameters, before or after the IV is taken
    bool accepted = false;
  };
  void init(const InitCall& call, const Facts& now);

  bool sealing() const { return sealing_; }
  size_t iv_bytes() const { return iv_bytes_; }
  bool answering() const { return phase_ == Phase::ours; }
  bool is_over() const { return phase_ == Phase::over; }
  bool begins() const { return phase_ == Phase::ready || phase_ == Phase::additional; }
  bool may_begin() const { return begins() && understood_ && keyed_ && additional_understood_; }
  const std::optional<Iv>& iv() const { return iv_; }  // set: a message that we know began with it

  // Additional data, not of no bytes. `understood`: of a kind that our engine takes.
  Answer additional() const;
  void additional_taken(bool accepted, bool understood);
  // Data, not of no bytes. `able`: there is an engine for the key, and at the first byte the IV is
  // burnt, or libcrypto follows.
  Answer data(bool able);
  // The end. Opening without a tag is refused, and may be tried again when there is one.
  Answer final() const;
  void sealed(const Tag& tag, bool libcrypto_too);
  bool is_genuine(const Tag& made) const;
  void opened(bool genuine) { phase_ = genuine ? Phase::over : Phase::theirs; }
  void finished_by_libcrypto(bool accepted);
  void libcrypto_goes_on() { phase_ = Phase::theirs; }  // what it does is right
  // Something of ours broke: this message goes no further.
  void give_up() { go_no_further(), understood_ = false; }

  // The tag that is compared with, or that was made. `size` as it was given.
  void tag_given(std::span<const uint8_t> tag, bool accepted);
  void tag_made(const Tag& tag) { tag_ = tag, tag_bytes_ = kTagBytes; }  // by libcrypto
  // With what, or with the tag of what, is not known. If libcrypto has it, it knows.
  void tag_overwritten() { tag_is_lost_ = tag_is_ours_; }
  size_t tag_bytes() const { return tag_bytes_; }
  bool tag_is_lost() const { return tag_is_lost_; }  // it was ours: nothing is genuine by it
  const Tag& tag() const { return tag_; }
  bool tag_is_ours() const { return tag_is_ours_; }  // libcrypto has another, or none
  void tag_handed_over() { tag_is_ours_ = tag_is_lost_; }
  bool gives_tag(size_t bytes) const {
    return sealing_ && tag_bytes_ != 0 && !tag_is_lost_ && bytes >= 1 && bytes <= kTagBytes;
  }

  void iv_length_set(size_t bytes);  // what it is now
  void iv_made_elsewhere();          // libcrypto knows it
  // A call that may have set a key and an IV; `new_message`: it has set that IV.
  void key_set_elsewhere(bool new_message, bool sealing);
  void tls_record();      // comes next
  void not_understood();  // a call that may have changed anything

  // A copy of the context: as far as this is.
  GcmState copied() const;

 private:
  enum class Phase : uint8_t { none, ready, additional, ours, over, theirs };

  void leave();
  void go_no_further();
  void change_direction(bool sealing, bool new_message);
  void begin(std::span<const uint8_t> iv);

  bool understood_ = false;  // since its cipher was set
  bool keyed_ = false;
  bool sealing_ = false;
  bool additional_understood_ = true;
  bool tag_is_ours_ = false;
  bool tag_is_lost_ = false;
  Phase phase_ = Phase::none;
  size_t iv_bytes_ = 0;
  size_t tag_bytes_ = 0;
  std::optional<Iv> iv_;
  Tag tag_{};
};

}  // namespace sealane::preload
