// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "gcm_state.h"

#include "base/bytes.h"

namespace sealane::preload {

void GcmState::init(const InitCall& call, const Facts& now) {
  if (call.cipher) *this = {};
  if (!call.accepted) {  // the direction is taken before the rest is looked at
    change_direction(now.sealing, false);
    return not_understood();
  }
  if (call.cipher) {
    understood_ = now.gcm;
    sealing_ = now.sealing;
  }
  const bool new_message = !call.iv.empty();
  if (call.key || !broken(Mutant::direction)) change_direction(now.sealing, new_message);
  if (call.key) {
    // A key for a message that has begun: libcrypto goes on with neither its IV nor its hash. Where
    // there was a key before, one may have begun that we did not see (a BIO's bytes).
    const bool unseen = phase_ == Phase::ready && keyed_ && !broken(Mutant::keyed_again);
    const bool begun = phase_ == Phase::additional || phase_ == Phase::ours;
    if (!new_message && (begun || unseen)) leave();
    if (broken(Mutant::zero_iv) && !new_message) begin(Iv{});
    keyed_ = true;
  }
  iv_bytes_ = now.iv_bytes;
  if (new_message) begin(call.iv);
  if (call.iv_length) leave();
}

void GcmState::change_direction(bool sealing, bool new_message) {
  if (sealing == sealing_) return;
  if (phase_ == Phase::ours && !new_message) go_no_further();
  sealing_ = sealing;
}

void GcmState::begin(std::span<const uint8_t> iv) {
  additional_understood_ = true;
  iv_.reset();
  phase_ = Phase::theirs;
  if (iv_bytes_ != kIvBytes && !broken(Mutant::iv_length)) return;
  if (iv.size() < kIvBytes) return;
  iv_.emplace();
  std::copy_n(iv.begin(), kIvBytes, iv_->begin());
  phase_ = Phase::ready;
}

Answer GcmState::additional() const {
  if (phase_ == Phase::ours && broken(Mutant::late_additional)) return Answer::ours;
  const bool late = phase_ == Phase::ours || phase_ == Phase::over;
  return late ? Answer::refused : Answer::libcrypto;
}

void GcmState::additional_taken(bool accepted, bool understood) {
  if (phase_ != Phase::ready && phase_ != Phase::additional) return;
  phase_ = accepted ? Phase::additional : Phase::theirs;
  additional_understood_ = additional_understood_ && understood;
}

Answer GcmState::data(bool able) {
  const bool goes_on = phase_ == Phase::over && broken(Mutant::after_final);
  if (phase_ == Phase::ours || goes_on) return Answer::ours;
  if (phase_ == Phase::over) return Answer::refused;
  phase_ = may_begin() && able ? Phase::ours : Phase::theirs;
  return phase_ == Phase::ours ? Answer::ours : Answer::libcrypto;
}

Answer GcmState::final() const {
  if (phase_ == Phase::over) return Answer::refused;
  if (phase_ != Phase::ours) return Answer::libcrypto;
  return sealing_ || tag_bytes_ != 0 || tag_is_lost_ ? Answer::ours : Answer::refused;
}

void GcmState::sealed(const Tag& tag, bool libcrypto_too) {
  tag_ = tag;
  tag_bytes_ = kTagBytes;
  tag_is_ours_ = !libcrypto_too;
  tag_is_lost_ = false;
  phase_ = Phase::over;
}

bool GcmState::is_genuine(const Tag& made) const {
  return tag_bytes_ != 0 && !tag_is_lost_ &&
         constant_time_equal(Bytes(tag_).first(tag_bytes_), Bytes(made).first(tag_bytes_));
}

void GcmState::finished_by_libcrypto(bool accepted) {
  if (accepted && sealing_) tag_is_ours_ = tag_is_lost_ = false;
  phase_ = Phase::theirs;
}

// libcrypto takes it into its buffer before it looks whether it seals, and refuses then.
void GcmState::tag_given(std::span<const uint8_t> tag, bool accepted) {
  if (tag.size() > kTagBytes || (!accepted && !sealing_)) return;
  std::copy(tag.begin(), tag.end(), tag_.begin());
  if (!accepted) return;
  tag_bytes_ = tag.size();
  tag_is_ours_ = tag_is_lost_ = false;
}

void GcmState::iv_length_set(size_t bytes) {
  if (broken(Mutant::iv_length) || bytes == iv_bytes_) return;
  iv_bytes_ = bytes;
  // An IV of another length is none: nothing goes until there is a new one.
  if (phase_ == Phase::ours) phase_ = Phase::over;
  if (begins()) phase_ = Phase::theirs;
}

// Whatever was before, this is a new message.
void GcmState::iv_made_elsewhere() {
  if (broken(Mutant::generated_iv)) {
    if (phase_ == Phase::over) phase_ = Phase::ready;
    return;
  }
  understood_ = false;
  iv_.reset();
  phase_ = Phase::theirs;
}

void GcmState::key_set_elsewhere(bool new_message, bool sealing) {
  change_direction(sealing, new_message);
  new_message ? iv_made_elsewhere() : not_understood();
}

void GcmState::not_understood() {
  understood_ = false;
  leave();
}

// It may have taken an IV although it refused, and begins a message then.
void GcmState::leave() {
  if (phase_ == Phase::ours) return go_no_further();
  phase_ = Phase::theirs;
}

// Its additional data lies where the tag was.
void GcmState::tls_record() {
  not_understood();
  tag_overwritten();
}

// The IV is burnt. With another libcrypto would go on, and make a tag that we do not know.
void GcmState::go_no_further() {
  phase_ = Phase::theirs;
  tag_is_ours_ = tag_is_lost_ = true;
}

GcmState GcmState::copied() const {
  GcmState copy = *this;
  if (broken(Mutant::copy) && copy.phase_ == Phase::over) copy.phase_ = Phase::ready;
  return copy;
}

}  // namespace sealane::preload
