// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "evp_context.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "let_go_keys.h"
#include "os/pace.h"
#include "serve/options.h"
#include "used_iv.h"

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
constexpr unsigned kOctets = 5;  // OSSL_PARAM_OCTET_STRING

// What GCM has no use for, and OpenSSL 3 answers without looking at the message: INIT, lengths of a
// key and what it is with RC2 and RC5, random keys, MAC keys, TLS 1.1's blocks, IV's length, speed.
bool is_ignored(int control) {
  return (control >= 0x0 && control <= 0x6) || control == 0x17 ||
         (control >= 0x19 && control <= 0x1c) || control == 0x25 || control == 0x27;
}
bool is_ignored(const Parameter& one) {
  const std::string_view name = one.key;
  return name == "padding" || name == "num" || name == "keylen" || name == "rounds" ||
         name == "keybits" || name == "speed" || name == "mackey" || name == "use-bits";
}

std::atomic<bool> distrusted{false};  // an answer was wrong: never again
std::atomic<uint64_t> verified_messages{0};

bool is(const Parameter& one, std::string_view name) { return one.key == name; }

// As a tag is given. One of another type is refused and changes nothing.
bool is_tag(const Parameter& one) {
  return is(one, "tag") && (one.type == kOctets || broken(Mutant::type));
}

std::span<const uint8_t> bytes_of(const Parameter& one) {
  return {static_cast<const uint8_t*>(one.data), one.data != nullptr ? one.data_bytes : 0};
}

size_t count(const Parameter* list) {
  size_t found = 0;
  while (list != nullptr && list[found].key != nullptr) ++found;
  return found;
}

// Once.
void tell_unanswered() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  std::fprintf(stderr,
               "sealane: libcrypto takes used IVs, as OpenSSL does before 3.0.13 and 3.1.5: it "
               "seals itself, and copies gain by asynchrony alone\n");
}

bool is_named_before(const Parameter* list, const Parameter& one) {
  return std::any_of(list, &one, [&](const Parameter& other) { return is(other, one.key); });
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
  return key_.schedule != nullptr && burns_ && serve::options().engine &&
         !distrusted.load(std::memory_order_relaxed);
}

// The tag that libcrypto made is asked for while it has it.
void EvpContext::before_init(const InitCall& call) {
  see_unseen_end();
  if (tag_unread_ && call.cipher == nullptr && state_.sealing()) {
    Tag theirs{};
    if (libcrypto_.ctrl(context_, kGetTag, kTagBytes, theirs.data()) > 0) state_.tag_made(theirs);
  }
  tag_unread_ = false;
}

void EvpContext::after_init(const InitCall& call, bool accepted) {
  bool iv_length = false;
  bool tag_twice = false;
  const size_t parameters = count(call.parameters);
  for (size_t i = 0; i < parameters; ++i) {
    const Parameter& one = call.parameters[i];
    iv_length = iv_length || is(one, "ivlen");
    tag_twice = tag_twice || (is(one, "tag") && is_named_before(call.parameters, one));
  }
  const GcmState::Facts now = facts(call.cipher != nullptr || call.key != nullptr || iv_length);
  gcm_ = now.gcm;
  const std::span<const uint8_t> iv(call.iv, call.iv != nullptr ? now.iv_bytes : 0);
  const bool sealed = state_.sealing();
  state_.init({call.cipher != nullptr, call.key != nullptr, iv, iv_length, accepted}, now);
  const bool unknown_tag = state_.tag_is_ours();
  if (call.cipher != nullptr) tag_noted_ = false;
  if (parameters != 0 || !sealed) note_libcryptos_tag();
  if (!accepted) return apply_refused(call.parameters);
  for (size_t i = 0; i < parameters; ++i) {
    if (broken(Mutant::tls_in_init) && !is(call.parameters[i], "tag")) continue;
    apply(call.parameters, call.parameters[i]);
  }
  take_key(call);
  if (call.iv != nullptr || broken(Mutant::zero_iv)) {
    told_ = state_.begins();
    if (told_) message_.begin(*state_.iv());
    both_ = burnt_ = false;
  }
  // Which of two it has taken is libcrypto's to know.
  if (!state_.sealing() && unknown_tag && !tag_twice) hand_over_tag();
}

EvpContext::~EvpContext() {
  if (key_.schedule != nullptr) key_let_go();
}

void EvpContext::take_key(const InitCall& call) {
  if (key_.schedule != nullptr && (call.cipher != nullptr || call.key != nullptr)) key_let_go();
  if (call.cipher != nullptr) key_ = {};
  if (call.key != nullptr) {
    key_ = gcm_ ? serve::know_key(std::span<const uint8_t, Key::kBytes>(call.key, Key::kBytes))
                : serve::KnownKey{};
    burns_ = gcm_ && refuses_burnt_ivs(libcrypto_, libcrypto_.cipher_of(context_)) &&
             !broken(Mutant::takes_used_ivs);
    if (gcm_ && !burns_) tell_unanswered();
  }
  if (!message_.set_key(key_.schedule, key_.number,
                        state_.sealing() ? Direction::to_device : Direction::to_host)) {
    key_ = {};
  }
}

// It may have refused halfway, and where it did nothing it would go on.
void EvpContext::after_unseen_key(bool new_message) {
  state_.key_set_elsewhere(new_message, facts(false).sealing);
}

// libcrypto would compare with the tag it made last, as far as it is not given another. For one
// that is lost it gets nobody's: an end with a wrong tag spoils a message, one without does not.
void EvpContext::hand_over_tag() {
  Tag tag = state_.tag();
  bool taken = !state_.tag_is_lost() || getrandom(tag.data(), tag.size(), 0) == kTagBytes;
  const size_t bytes = state_.tag_bytes() != 0 ? state_.tag_bytes() : kTagBytes;
  for (const size_t size : {kTagBytes, bytes}) {
    taken = taken && libcrypto_.ctrl(context_, kSetTag, static_cast<int>(size), tag.data()) > 0;
  }
  if (taken) state_.tag_handed_over();
}

// --- bytes

// Somebody whom we do not see may have written the IV (EVP_CIPHER_CTX_iv_noconst) or set another:
// then libcrypto has the message. Asked before libcrypto takes it, and at the first byte.
void EvpContext::check_iv() {
  if (!state_.begins() || broken(Mutant::unasked)) return;
  if (has_iv(libcrypto_, context_, *state_.iv())) return;
  state_.libcrypto_goes_on();
  told_ = false;
}

// The first byte. Somebody may also have used the context since it was given its IV.
bool EvpContext::take_over() {
  check_iv();
  if (!state_.may_begin()) return false;
  if (!broken(Mutant::unasked) && !takes_additional(libcrypto_, context_)) return false;
  both_ = verified_messages.load(std::memory_order_relaxed) < serve::options().verify;
  if (both_) return true;
  if (!has_our_key()) return false;
  if (broken(Mutant::unburnt)) return true;
  burnt_ = !broken(Mutant::burning_fails) && burn_iv(libcrypto_, context_, state_.iv_bytes());
  const bool known = tag_noted_ && state_.tag_is_ours();
  tag_noted_ = true;
  if (!known) note_libcryptos_tag();
  return burnt_;
}

// Somebody whom we do not see may have set another, with the same IV or none. Under the old one the
// keystream may have been used.
bool EvpContext::has_our_key() {
  if (broken(Mutant::unasked) || broken(Mutant::unkeyed)) return true;
  GcmBlock first;
  key_.schedule->keystream(*state_.iv(), 0, first);
  const bool ours = held_key_.makes(context_, first);
  wipe(first);
  return ours;
}

std::optional<Tag> EvpContext::libcryptos_tag() const {
  Tag made{};
  libcrypto_.mark_errors();
  const int result = libcrypto_.ctrl(context_, kGetTag, kTagBytes, made.data());
  libcrypto_.drop_errors();
  return result > 0 ? std::optional(made) : std::nullopt;
}

// While the last message that was sealed in this context is one of ours.
bool EvpContext::watches_tag() const {
  return tag_noted_ && state_.sealing() && (burnt_ || state_.tag_is_ours());
}

// After what may have changed it before our eyes.
void EvpContext::note_libcryptos_tag() {
  if (watches_tag()) noted_tag_ = libcryptos_tag();
}

// Who sealed a whole message in this context past us, under the same IV even, has left its tag:
// that message was the last one, and it is over.
void EvpContext::see_unseen_end() {
  if (!watches_tag() || broken(Mutant::unasked) || broken(Mutant::begun_anew)) return;
  if (libcryptos_tag() == noted_tag_) return;
  state_.finished_by_libcrypto(true);
  burnt_ = told_ = tag_noted_ = false;
  tag_unread_ = true;
}

// Who set an IV without our seeing it, be it the same, began another message, which is libcrypto's:
// the IV is not used any more, whatever was done with it since. (Where libcrypto computes too it
// takes no additional data until then.) Who wrote one has changed nothing for libcrypto, but that
// cannot be told apart, and it refuses.
bool EvpContext::still_ours() {
  if (broken(Mutant::unasked)) return true;
  see_unseen_end();
  if (!state_.answering()) return false;
  const bool burnt = burnt_ && !broken(Mutant::begun_anew);
  if (has_iv(libcrypto_, context_, *state_.iv()) &&
      (burnt ? has_used_iv(libcrypto_, context_) : !takes_additional(libcrypto_, context_))) {
    return true;
  }
  state_.not_understood();
  burnt_ = told_ = false;
  return false;
}

void EvpContext::give_up() {
  state_.give_up();
  if (gcm_ && state_.iv_bytes() != 0) burn_iv(libcrypto_, context_, state_.iv_bytes());
  told_ = false;
}

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
  const bool goes_on = state_.answering();
  if (goes_on && still_ours() && !message_.has_room(bytes)) return refuse(codes, in, out, forward);
  switch (state_.data(goes_on || (able() && take_over()))) {
    case Answer::refused:
      return refuse(codes, in, out, forward);
    case Answer::libcrypto:
      if (told_ && !burnt_) message_.pass(in, out, bytes);
      return forward(in, out);
    case Answer::ours:
      break;
  }
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
  const bool nothing = state_.answering() && !both_ && still_ours();
  return nothing ? codes.good : forward(in, out);
}

int EvpContext::additional(Codes codes, const Byte* in, size_t bytes, const Forward& forward) {
  check_iv();
  if (state_.answering()) still_ours();
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

// What libcrypto refuses. If it does not, somebody set an IV without our seeing it: another one, or
// the same, and it took additional data again. If neither, and it has followed, one of us is wrong.
int EvpContext::refuse(Codes codes, const Byte* in, Byte* out, const Forward& forward) {
  const bool wrong = both_ && has_iv(libcrypto_, context_, *state_.iv()) &&
                     (broken(Mutant::unasked) || !takes_additional(libcrypto_, context_));
  const int result = forward(in, out);
  if (!codes.accepted(result)) return result;
  wrong ? distrust() : state_.libcrypto_goes_on();
  burnt_ = told_ = false;
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
  if (state_.answering()) still_ours();
  const Answer answer = state_.final();
  if (answer != Answer::ours) {
    const bool refused = answer == Answer::refused;
    const int result =
        refused ? refuse(codes, nullptr, nullptr, forward) : forward(nullptr, nullptr);
    const bool accepted = codes.accepted(result);
    if (refused && !accepted) return result;
    tag_unread_ = tag_unread_ || (accepted && state_.sealing() && serve::options().engine);
    state_.finished_by_libcrypto(accepted);
    if (told_ && !burnt_) message_.tag(false);
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
  state_.opened(genuine);
  return genuine ? codes.good : refuse(codes, nullptr, nullptr, forward);
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
  see_unseen_end();
  if (type == kGetTag && state_.tag_is_ours()) {
    if (!state_.gives_tag(bytes)) return refuse_tag();
    if (data != nullptr) std::memcpy(data, state_.tag().data(), bytes);
    return 1;
  }
  const int result = libcrypto_.ctrl(context_, type, size, data);
  const bool accepted = result > 0;
  note_libcryptos_tag();
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
      if (accepted && !is_ignored(type)) state_.not_understood();
      break;
  }
  return result;
}

// With libcrypto's error. No tag has so many bytes.
int EvpContext::refuse_tag() {
  Byte none[kTagBytes + 1];
  return libcrypto_.ctrl(context_, kGetTag, sizeof none, none);
}

// One of a list that was accepted. Which of two tags counts is not the same in all versions.
void EvpContext::apply(const Parameter* list, const Parameter& one) {
  if (is(one, "tag")) {
    if (is_named_before(list, one) && !broken(Mutant::twice)) return state_.not_understood();
    return state_.tag_given(bytes_of(one), true);
  }
  if (is(one, "ivlen")) return state_.iv_length_set(facts(true).iv_bytes);
  if (is(one, "tlsivfixed") || is(one, "tlsivinv")) return state_.iv_made_elsewhere();
  if (is(one, "tlsaad")) return state_.tls_record();
  if (!is_ignored(one)) state_.not_understood();
}

// How far a longer list came is not known.
void EvpContext::apply_refused(const Parameter* list) {
  const size_t parameters = count(list);
  for (size_t i = 0; i < parameters; ++i) {
    if (is_tag(list[i])) state_.tag_given(bytes_of(list[i]), false);
    if (is_tag(list[i]) && parameters > 1) state_.tag_overwritten();
    if (is(list[i], "tlsaad")) state_.tls_record();
  }
  if (parameters > 1) state_.not_understood();
}

int EvpContext::set_parameters(const Parameter* list) {
  see_unseen_end();
  const int result = libcrypto_.set_params(context_, list);
  note_libcryptos_tag();
  const size_t parameters = count(list);
  if (result <= 0) {
    apply_refused(list);
    return result;
  }
  for (size_t i = 0; i < parameters; ++i) apply(list, list[i]);
  return result;
}

// Of a parameter that is named twice, does this libcrypto give both? OpenSSL 3.0 gives the first,
// 3.3 both. Asked of it by one that it has. None: it refuses such lists.
std::optional<bool> EvpContext::gives_both() const {
  constexpr unsigned kUnsigned = 2;  // OSSL_PARAM_UNSIGNED_INTEGER
  constexpr size_t kUntouched = SIZE_MAX;
  size_t bytes[2];
  Parameter list[] = {{"ivlen", kUnsigned, &bytes[0], sizeof bytes[0], kUntouched},
                      {"ivlen", kUnsigned, &bytes[1], sizeof bytes[1], kUntouched},
                      {}};
  libcrypto_.mark_errors();
  const int result = libcrypto_.get_params(context_, list);
  libcrypto_.drop_errors();
  if (result <= 0) return std::nullopt;
  return list[1].returned_bytes != kUntouched;
}

// The tag of a message that we sealed is known to us alone.
int EvpContext::get_parameters(Parameter* list) {
  see_unseen_end();
  const size_t parameters = count(list);
  std::vector<Parameter> others;
  bool generated = false;
  bool twice = false;
  for (size_t i = 0; i < parameters; ++i) {
    generated = generated || is(list[i], "tlsivgen");
    twice = twice || (is(list[i], "tag") && is_named_before(list, list[i]));
    if (!state_.tag_is_ours() || !is(list[i], "tag")) others.push_back(list[i]);
  }
  const std::optional<bool> both = twice ? gives_both() : false;
  const bool all = others.size() == parameters || !both;
  if (!all) others.push_back({});
  const int result = all                  ? libcrypto_.get_params(context_, list)
                     : others.size() == 1 ? 1
                                          : libcrypto_.get_params(context_, others.data());
  if (generated && result > 0) state_.iv_made_elsewhere();
  if (all) return result;
  auto other = others.begin();
  bool given = false;
  for (size_t i = 0; i < parameters; ++i) {
    Parameter& one = list[i];
    if (!is(one, "tag")) {
      one.returned_bytes = (other++)->returned_bytes;
      continue;
    }
    if (given && !*both && !broken(Mutant::twice)) continue;
    if (!is_tag(one) || !state_.gives_tag(one.data_bytes)) return refuse_tag();
    if (one.data != nullptr) std::memcpy(one.data, state_.tag().data(), one.data_bytes);
    one.returned_bytes = one.data_bytes;
    given = true;
  }
  return result;
}

int EvpContext::tag_length() const {
  const bool made = state_.tag_is_ours() && state_.tag_bytes() != 0;
  return made ? static_cast<int>(state_.tag_bytes()) : libcrypto_.tag_length(context_);
}

std::shared_ptr<EvpContext> EvpContext::copied() {
  auto copy = std::make_shared<EvpContext>(nullptr, libcrypto_);
  copy->message_.go_on_from(message_);
  copy->state_ = state_.copied();
  copy->key_ = key_;
  copy->gcm_ = gcm_;
  copy->told_ = told_;
  copy->both_ = both_;
  copy->burnt_ = burnt_;
  copy->tag_noted_ = tag_noted_;
  copy->noted_tag_ = noted_tag_;
  copy->burns_ = burns_;
  copy->tag_unread_ = tag_unread_;
  return copy;
}

}  // namespace sealane::preload
