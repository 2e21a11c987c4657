// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "evp_context.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "os/pace.h"
#include "serve/options.h"

namespace sealane::preload {
namespace {

constexpr int kNidAes256Gcm = 901;
// EVP_CTRL_...
constexpr int kSetIvLength = 0x9;
constexpr int kGetTag = 0x10;
constexpr int kSetTag = 0x11;
constexpr int kSetIvFixed = 0x12;
constexpr int kGenerateIv = 0x13;
constexpr int kSetL = 0x14;  // CCM's, and sets the IV's length of any
constexpr int kTlsAdditional = 0x16;
constexpr int kSetIvInvocation = 0x18;
constexpr size_t kTlsAdditionalBytes = 13;

std::atomic<bool> distrusted{false};  // an answer was wrong: never again
std::atomic<uint64_t> verified_messages{0};

bool is(const Parameter& one, std::string_view name) { return one.key == name; }

std::span<const uint8_t> bytes_of(const Parameter& one) {
  return {static_cast<const uint8_t*>(one.data), one.data != nullptr ? one.data_bytes : 0};
}

size_t count(const Parameter* list) {
  size_t found = 0;
  while (list != nullptr && list[found].key != nullptr) ++found;
  return found;
}

}  // namespace

// --- key and IV

GcmState::Facts EvpContext::facts(bool all) const {
  GcmState::Facts found{gcm_, libcrypto_.encrypting(context_) != 0, state_.iv_bytes()};
  if (!all) return found;
  const Cipher* cipher = libcrypto_.cipher_of(context_);
  const auto* provider = cipher != nullptr ? libcrypto_.provider_of(cipher) : nullptr;
  const std::string_view maker = provider != nullptr ? libcrypto_.provider_name(provider) : "";
  found.gcm = (maker == "default" || maker == "fips") && libcrypto_.nid_of(cipher) == kNidAes256Gcm;
  found.iv_bytes = static_cast<size_t>(std::max(0, libcrypto_.iv_length(context_)));
  return found;
}

bool EvpContext::able() const {
  return key_.schedule != nullptr && serve::options().engine &&
         !distrusted.load(std::memory_order_relaxed);
}

// libcrypto must be where it would be had it made the message's calls itself.
void EvpContext::before_init(const InitCall& call) {
  const GcmState::InitCall coming{.cipher = call.cipher != nullptr,
                                  .key = call.key != nullptr,
                                  .iv = {call.iv, call.iv != nullptr ? size_t{1} : size_t{0}},
                                  .strange = false,
                                  .accepted = true};
  if (!both_ && state_.must_take_iv(coming)) {
    const Byte nothing[kGcmBlockBytes] = {};
    int some = 0;
    libcrypto_.cipher_update(context_, nullptr, &some, nothing, sizeof nothing);
  }
  if (tag_unread_ && call.cipher == nullptr && state_.sealing()) {
    Tag theirs{};
    if (libcrypto_.ctrl(context_, kGetTag, kTagBytes, theirs.data()) > 0) state_.tag_made(theirs);
  }
  tag_unread_ = false;
}

void EvpContext::after_init(const InitCall& call, bool accepted) {
  bool strange = false;
  const size_t parameters = count(call.parameters);
  for (size_t i = 0; i < parameters; ++i) strange = strange || !is(call.parameters[i], "tag");
  const GcmState::Facts now = facts(call.cipher != nullptr || call.key != nullptr || strange);
  gcm_ = now.gcm;
  const std::span<const uint8_t> iv(call.iv, call.iv != nullptr ? now.iv_bytes : 0);
  state_.init({call.cipher != nullptr, call.key != nullptr, iv, strange, accepted}, now);
  const bool unknown_tag = state_.tag_is_ours();
  for (size_t i = 0; i < parameters; ++i) {
    if (is(call.parameters[i], "tag")) state_.tag_given(bytes_of(call.parameters[i]), accepted);
  }
  if (!accepted) return;
  if (call.cipher != nullptr) key_ = {};
  if (call.key != nullptr) {
    key_ = gcm_ ? serve::know_key(std::span<const uint8_t, Key::kBytes>(call.key, Key::kBytes))
                : serve::KnownKey{};
  }
  if (!message_.set_key(key_.schedule, key_.number,
                        state_.sealing() ? Direction::to_device : Direction::to_host)) {
    key_ = {};
  }
  if (call.iv != nullptr || broken(Mutant::zero_iv)) {
    told_ = state_.begins();
    if (told_) message_.begin(*state_.iv());
    both_ = false;
  }
  if (!state_.sealing() && unknown_tag) hand_over_tag();
}

// It may have refused halfway, and where it did nothing it would go on.
void EvpContext::after_unseen_key(bool new_message) {
  state_.key_set_elsewhere(new_message, facts(false).sealing);
}

// libcrypto would compare with the tag it made last, as far as it is not given another.
void EvpContext::hand_over_tag() {
  Tag tag = state_.tag();
  const size_t bytes = state_.tag_bytes();
  bool taken = bytes != 0;
  for (const size_t size : {kTagBytes, bytes}) {
    taken = taken && libcrypto_.ctrl(context_, kSetTag, static_cast<int>(size), tag.data()) > 0;
  }
  if (taken) state_.tag_handed_over();
}

// --- bytes

void EvpContext::distrust() {
  if (!distrusted.exchange(true)) {
    std::fprintf(stderr,
                 "sealane: an answer differed from libcrypto's: libcrypto seals from now on\n");
  }
  state_.libcrypto_goes_on();
}

int EvpContext::update(Codes codes, const Byte* in, Byte* out, size_t bytes, const Forward& forward,
                       WorkerPool* pool) {
  if (out == nullptr) return additional(codes, in, bytes, forward);
  const bool first = !state_.answering();
  if (!first && !message_.has_room(bytes)) return refuse(codes, in, out, forward);
  switch (state_.data(able())) {
    case Answer::refused:
      return refuse(codes, in, out, forward);
    case Answer::libcrypto:
      if (told_) message_.pass(in, out, bytes);
      return forward(in, out);
    case Answer::ours:
      break;
  }
  const uint64_t wanted = serve::options().verify;
  if (first && !both_) both_ = verified_messages.load(std::memory_order_relaxed) < wanted;
  pace().tell_answered(bytes);
  if (both_) return verified(codes, in, out, bytes, forward);
  message_.update(in, out, bytes, serve::options().parallel ? pool : nullptr);
  return codes.good;
}

int EvpContext::cipher(Codes codes, const Byte* in, Byte* out, size_t bytes, const Forward& forward,
                       WorkerPool* pool) {
  if (out == nullptr) return additional(codes, in, bytes, forward);
  if (state_.begins()) state_.libcrypto_goes_on();
  if (bytes != 0) return update(codes, in, out, bytes, forward, pool);
  return state_.is_over() ? refuse(codes, in, out, forward) : forward(in, out);
}

int EvpContext::additional(Codes codes, const Byte* in, size_t bytes, const Forward& forward) {
  const Answer answer = state_.additional();
  if (answer == Answer::refused) return refuse(codes, in, nullptr, forward);
  const int result = both_ || answer == Answer::libcrypto ? forward(in, nullptr) : codes.good;
  const bool accepted = codes.accepted(result);
  if (answer == Answer::ours) {  // a rule is taken out
    if (!accepted) distrust();
    return result;
  }
  const bool taken = bytes == 0 || !told_ || message_.add_additional({in, bytes});
  state_.additional_taken(accepted, taken);
  return result;
}

// What libcrypto would refuse. Where it follows, it is asked whether it does.
int EvpContext::refuse(Codes codes, const Byte* in, Byte* out, const Forward& forward) {
  if (!both_) return codes.bad;
  const bool exact = !state_.is_strict();
  const int result = forward(in, out);
  if (exact && codes.accepted(result)) distrust();
  return result;
}

// Both compute in private memory; libcrypto is believed.
int EvpContext::verified(Codes codes, const Byte* in, Byte* out, size_t bytes,
                         const Forward& forward) {
  input_.assign(in, in + bytes);
  expected_.resize(bytes + kGcmBlockBytes);
  ours_.resize(bytes);
  const int result = forward(input_.data(), expected_.data());
  const bool accepted = codes.accepted(result);
  message_.update(input_.data(), ours_.data(), bytes, nullptr);
  if (accepted) std::memcpy(out, expected_.data(), bytes);
  if (!accepted || !constant_time_equal(Bytes(expected_).first(bytes), ours_)) distrust();
  wipe(input_);
  wipe(expected_);
  wipe(ours_);
  return result;
}

// --- the end

int EvpContext::final(Codes codes, const Forward& forward) {
  const Answer answer = state_.final();
  if (answer == Answer::refused) return refuse(codes, nullptr, nullptr, forward);
  if (answer == Answer::libcrypto) {
    const int result = forward(nullptr, nullptr);
    const bool accepted = codes.accepted(result);
    tag_unread_ = tag_unread_ || (accepted && state_.sealing() && serve::options().engine);
    state_.finished_by_libcrypto(accepted);
    if (told_) message_.tag(false);
    return result;
  }
  Tag mine = message_.tag(true);
  if (both_) return final_verified(codes, mine, forward);
  if (state_.sealing()) {
    state_.sealed(mine, false);
    return codes.good;
  }
  const bool genuine = state_.is_genuine(mine);
  wipe(mine);  // a forged message would be genuine with it
  if (!genuine) message_.refuse();
  state_.opened(genuine);
  return genuine ? codes.good : codes.bad;
}

int EvpContext::final_verified(Codes codes, const Tag& mine, const Forward& forward) {
  verified_messages.fetch_add(1);
  const int result = forward(nullptr, nullptr);
  const bool accepted = codes.accepted(result);
  if (!state_.sealing()) {
    const bool agreed = accepted == state_.is_genuine(mine);
    state_.opened(accepted);
    if (!agreed) distrust();
    return result;
  }
  Tag theirs{};
  const bool read = libcrypto_.ctrl(context_, kGetTag, kTagBytes, theirs.data()) > 0;
  state_.sealed(theirs, true);
  if (!accepted || !read || theirs != mine) distrust();
  return result;
}

// --- controls and parameters

int EvpContext::control(int type, int size, void* data) {
  const size_t bytes = size > 0 ? static_cast<size_t>(size) : 0;
  if (type == kGetTag && state_.tag_is_ours()) {
    if (!state_.gives_tag(bytes)) return 0;
    if (data != nullptr) std::memcpy(data, state_.tag().data(), bytes);
    return 1;
  }
  const int result = libcrypto_.ctrl(context_, type, size, data);
  const bool accepted = result > 0;
  switch (type) {
    case kGetTag:
      break;
    case kSetTag:
      state_.tag_given({static_cast<const uint8_t*>(data), data != nullptr ? bytes : 0}, accepted);
      break;
    case kSetIvLength:
    case kSetL:
      state_.iv_length_set(facts(true).iv_bytes);
      break;
    case kSetIvFixed:
    case kGenerateIv:
    case kSetIvInvocation:
      if (accepted) state_.iv_made_elsewhere();
      break;
    case kTlsAdditional:
      if (accepted || bytes == kTlsAdditionalBytes) state_.tls_record();
      break;
    default:
      if (accepted) state_.not_understood();
      break;
  }
  return result;
}

void EvpContext::apply(const Parameter& one) {
  if (is(one, "tag")) return state_.tag_given(bytes_of(one), true);
  if (is(one, "ivlen")) return state_.iv_length_set(facts(true).iv_bytes);
  if (is(one, "tlsivfixed") || is(one, "tlsivinv")) return state_.iv_made_elsewhere();
  is(one, "tlsaad") ? state_.tls_record() : state_.not_understood();
}

int EvpContext::set_parameters(const Parameter* list) {
  const int result = libcrypto_.set_params(context_, list);
  const size_t parameters = count(list);
  if (result > 0) {
    for (size_t i = 0; i < parameters; ++i) apply(list[i]);
  } else if (parameters == 1 && is(*list, "tag")) {
    state_.tag_given(bytes_of(*list), false);
  } else if (parameters == 1 && is(*list, "tlsaad")) {
    state_.tls_record();
  } else if (parameters > 1) {
    for (size_t i = 0; i < parameters; ++i) {
      if (is(list[i], "tag")) state_.tag_given(bytes_of(list[i]), false);
    }
    state_.not_understood();
  }
  return result;
}

// The tag of a message that we sealed is known to us alone.
int EvpContext::get_parameters(Parameter* list) {
  const size_t parameters = count(list);
  std::vector<Parameter> others;
  bool generated = false;
  for (size_t i = 0; i < parameters; ++i) {
    generated = generated || is(list[i], "tlsivgen");
    if (!state_.tag_is_ours() || !is(list[i], "tag")) others.push_back(list[i]);
  }
  const bool all = others.size() == parameters;
  if (!all) others.push_back({});
  const int result = all                  ? libcrypto_.get_params(context_, list)
                     : others.size() == 1 ? 1
                                          : libcrypto_.get_params(context_, others.data());
  if (generated && result > 0) state_.iv_made_elsewhere();
  if (all) return result;
  auto other = others.begin();
  for (size_t i = 0; i < parameters; ++i) {
    Parameter& one = list[i];
    if (!is(one, "tag")) {
      one.returned_bytes = (other++)->returned_bytes;
    } else if (state_.gives_tag(one.data_bytes)) {
      if (one.data != nullptr) std::memcpy(one.data, state_.tag().data(), one.data_bytes);
      one.returned_bytes = one.data_bytes;
    } else {
      return 0;
    }
  }
  return result;
}

int EvpContext::tag_length() const {
  const bool made = state_.tag_is_ours() && state_.tag_bytes() != 0;
  return made ? static_cast<int>(kTagBytes) : libcrypto_.tag_length(context_);
}

std::shared_ptr<EvpContext> EvpContext::copied() {
  auto copy = std::make_shared<EvpContext>(nullptr, libcrypto_);
  copy->message_.go_on_from(message_);
  copy->state_ = state_.copied();
  copy->key_ = key_;
  copy->gcm_ = gcm_;
  copy->told_ = told_;
  copy->both_ = both_;
  copy->tag_unread_ = tag_unread_;
  return copy;
}

}  // namespace sealane::preload
