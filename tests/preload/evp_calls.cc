// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a driver under the runtime get from libcrypto's EVP functions what libcrypto alone gives:
// the same bytes, the same return codes, the same refusals? Each script (evp_script.h) is run twice
// in this process, once by code of the driver and once by the program's own, whose calls nobody
// answers.
//
//   evp_calls random FIRST COUNT   scripts of so many seeds; a difference is printed with its seed
//   evp_calls seen FIRST COUNT     the same without bytes or a key that libcrypto's own code (a
//   BIO)
//                                  takes: who compares answers with libcrypto's cannot know of them
//   evp_calls case NAME            one story
//
// One difference is allowed: within a message that the runtime began and that something strange
// happened to (its direction or key changes, its tag was wrong and it goes on, a call was refused
// halfway, parameters that the runtime does not know or a tag twice, an IV written meanwhile, the
// child of a fork or a BIO goes on with it) it may refuse what libcrypto would still do. It may
// never do what libcrypto refuses, nor anything else. (Where libcrypto overwrites its own input it
// is asked elsewhere: apart().)

#define OPENSSL_SUPPRESS_DEPRECATED
#include <cuda.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "preload/evp_script.h"
}

namespace {

using Script = std::vector<evp_op>;
using Outcomes = std::vector<evp_outcome>;

// IVs that libcrypto makes are the same in both runs. How they are drawn is told as a seed.
unsigned drawn = 0;
bool draws_fail = false;
int (*drawn_by)(unsigned char*, int) = nullptr;
int draw(unsigned char* out, int count) {
  if (draws_fail) return 0;
  if (drawn_by != nullptr) return drawn_by(out, count);
  for (int i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(++drawn * 29);
  return 1;
}
int draw_otherwise(const void* way, int bytes) {
  draws_fail = bytes == 1;
  drawn_by = nullptr;
  if (bytes == sizeof drawn_by) std::memcpy(&drawn_by, way, sizeof drawn_by);
  return 1;
}
int always() { return 1; }

Outcomes run(const Script& script, evp_script_run* by) {
  Outcomes outcomes(script.size());
  drawn = 0;
  by(script.data(), static_cast<int>(script.size()), outcomes.data());
  return outcomes;
}

// Why a tag of another type is not given depends on whether libcrypto has one at all.
bool is_same(const evp_op& op, const evp_outcome& a, const evp_outcome& b) {
  const bool any = op.call == EVP_CALL_GET && op.detail == EVP_LIST_TAG_OF_WRONG_TYPE;
  return a.code == b.code && a.bytes == b.bytes && a.output == b.output && a.sealing == b.sealing &&
         (any ? (a.error == 0) == (b.error == 0) : a.error == b.error);
}

// Follows libcrypto's own outcomes: where may the runtime be stricter?
class Strictness {
 public:
  // Before the outcomes of this call are compared.
  void see(const evp_op& op, const evp_outcome& libcrypto) {
    Context& c = contexts_[op.context];
    const bool accepted = libcrypto.code > 0;
    if (op.in_child) return;
    switch (op.call) {
      case EVP_CALL_INIT:
        see_init(c, op, libcrypto, accepted);
        break;
      case EVP_CALL_BIO:
        if (op.bytes == 0) {
          if (accepted) c.within = c.began = false;
          break;
        }
        if (c.within) c.strange = true;
        [[fallthrough]];
      case EVP_CALL_UPDATE:
      case EVP_CALL_CIPHER:
        if (op.detail == 0 && accepted) c.within = c.began = true;
        if (op.detail == 2 && op.call == EVP_CALL_CIPHER) see_end(c, libcrypto.code >= 0);
        // An update with no bytes is no end, wherever these are not.
        if (op.detail == 2 && op.call != EVP_CALL_CIPHER && op.bytes != 0) see_end(c, accepted);
        break;
      case EVP_CALL_FINAL:
        see_end(c, accepted);
        break;
      case EVP_CALL_CONTROL:
        if (op.api == EVP_CTRL_AEAD_SET_TAG && accepted) c.tagged = true;
        if (op.api == EVP_CTRL_AEAD_TLS1_AAD) c.strange = true;
        if (op.api == EVP_CTRL_AEAD_SET_IV_FIXED && undrawn_ && c.within) c.strange = true;
        break;
      case EVP_CALL_SET:
        see_list(c, op.detail, accepted);
        break;
      case EVP_CALL_IV:
        if (c.within) c.strange = true;
        break;
      case EVP_CALL_RANDOM:
        undrawn_ = op.detail == 1;
        break;
      case EVP_CALL_COPY:
      case EVP_CALL_DUP:
        if (accepted) contexts_[op.other] = c;
        break;
      case EVP_CALL_RESET:
      case EVP_CALL_RENEW:
        c = {};
        break;
      case EVP_CALL_ENVELOPE:
        if (op.cipher != 0) c = {};
        if (op.detail == 1) c.strange = true;
        c.sealing = libcrypto.sealing != 0;
        break;
      default:
        break;
    }
  }
  bool may_refuse(const evp_op& op) const {
    const Context& c = contexts_[op.context];
    return c.strange || (op.in_child && c.began);
  }

 private:
  struct Context {
    bool began = false;   // data came
    bool within = false;  // and no end
    bool sealing = false;
    bool tagged = false;
    bool strange = false;
  };
  static void see_init(Context& c, const evp_op& op, const evp_outcome& libcrypto, bool accepted) {
    if (op.cipher != 0) c = {};
    const bool sealing = libcrypto.sealing != 0;
    if (!accepted || (op.iv == 0 && c.within && sealing != c.sealing)) c.strange = true;
    if (op.key != 0 && op.iv == 0 && c.within) c.strange = true;
    const bool lists = (op.api == 2 || op.api == 3) && op.detail != 0;
    const int list = lists ? op.detail - 1 : EVP_LIST_EMPTY;
    if (list == EVP_LIST_IV_LENGTH && c.within) c.strange = true;
    if (op.iv != 0) c.within = c.began = false;
    see_list(c, list, accepted);
    c.sealing = sealing;
  }
  static void see_list(Context& c, int list, bool accepted) {
    const bool both = list == EVP_LIST_TAG_AND_IV_LENGTH || list == EVP_LIST_TAG_TWICE;
    if ((both || list == EVP_LIST_TAG) && accepted) c.tagged = true;
    if (both && !accepted) c.strange = true;
    if (list == EVP_LIST_TAG_TWICE && c.within) c.strange = true;
    if ((list == EVP_LIST_UNKNOWN && c.within) || list == EVP_LIST_TLS_ADDITIONAL) c.strange = true;
  }
  static void see_end(Context& c, bool accepted) {
    if (!accepted && c.within && !c.sealing && c.tagged) c.strange = true;
    if (accepted) c.within = false;
    if (accepted && c.sealing) c.tagged = true;
  }
  Context contexts_[EVP_SCRIPT_CONTEXTS];
  bool undrawn_ = false;  // an IV is refused when half of it is set
};

void print(const evp_op& op, const evp_outcome& ours, const evp_outcome& theirs) {
  static const char* const kNames[] = {
      "init", "update", "final", "cipher",  "control",  "get", "set", "copy",
      "dup",  "reset",  "renew", "lengths", "envelope", "iv",  "bio", "random"};
  std::printf(
      "  %-7s context %d>%d api %d encrypt %d cipher %d key %d iv %d detail %d store %d%s "
      "bytes %d at %d%s: %d %d %016llx %x%s, libcrypto %d %d %016llx %x\n",
      kNames[op.call], op.context, op.other, op.api, op.encrypt, op.cipher, op.key, op.iv,
      op.detail, op.store, op.opened ? " opened" : "", op.bytes, op.offset,
      op.in_child ? " in a child" : "", ours.code, ours.bytes,
      static_cast<unsigned long long>(ours.output), ours.error,
      is_same(op, ours, theirs) ? "" : "  <-- DIFFERS", theirs.code, theirs.bytes,
      static_cast<unsigned long long>(theirs.output), theirs.error);
}

uint64_t stricter = 0;  // scripts that ended with a refusal of the runtime's own

// libcrypto writes over what it has yet to read where the output lies above, and takes that for the
// input. How much depends on the CPU. So what is right is what it makes of the same bytes
// elsewhere.
Script apart(Script script) {
  for (evp_op& op : script) {
    if (op.place == EVP_PLACE_ABOVE) op.place = EVP_PLACE_GONE;
  }
  return script;
}

bool compare(const Script& script) {
  const Outcomes theirs = run(apart(script), evp_script_by_program);
  const Outcomes ours = run(script, evp_script_by_driver);
  Strictness strictness;
  for (size_t i = 0; i < script.size(); ++i) {
    strictness.see(script[i], theirs[i]);
    if (is_same(script[i], ours[i], theirs[i])) continue;
    if (ours[i].code <= 0 && strictness.may_refuse(script[i])) {
      if (script[i].in_child) continue;
      return ++stricter, true;  // what follows builds on what was not done
    }
    for (size_t k = 0; k <= i; ++k) print(script[k], ours[k], theirs[k]);
    return false;
  }
  return true;
}

// --- random scripts: messages sealed and opened again, with anything in between

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  unsigned below(unsigned bound) { return static_cast<unsigned>(engine_() >> 33) % bound; }
  bool one_in(unsigned bound) { return below(bound) == 0; }

 private:
  std::mt19937_64 engine_;
};

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  Script write() {
    const unsigned messages = 1 + random_.below(4);
    for (unsigned i = 0; i < messages; ++i) {
      if (random_.one_in(2)) {
        seal();
      } else {
        open();
      }
    }
    for (unsigned i = random_.below(3); i > 0; --i) disturb();
    return script_;
  }

 private:
  struct Sealed {
    uint8_t key, iv, additional;
    std::vector<int16_t> pieces;
  };

  evp_op& add(int call, uint8_t context) {
    evp_op op{};
    op.call = static_cast<uint8_t>(call);
    op.context = context;
    script_.push_back(op);
    return script_.back();
  }
  uint8_t some_context() { return static_cast<uint8_t>(random_.below(EVP_SCRIPT_CONTEXTS)); }
  uint8_t byte(unsigned bound) { return static_cast<uint8_t>(random_.below(bound)); }
  int16_t length() {
    static const int16_t kLengths[] = {0, 1, 15, 16, 17, 20, 32, 48, 64, 100, 200};
    return kLengths[random_.below(std::size(kLengths))];
  }

  void maybe_disturb() {
    while (random_.one_in(6)) disturb();
  }

  // Key and IV in one call or in two, either first.
  void begin(uint8_t context, bool sealing, uint8_t key, uint8_t iv) {
    ivs_[context] = iv;
    const unsigned order = random_.below(6);
    const bool fresh = order != 5;
    evp_op& first = init(context, sealing);
    first.cipher = fresh ? 1 : 0;
    first.key = order == 1 || order == 5 ? 0 : key;
    first.iv = order == 0 || order == 2 ? 0 : iv;
    if (order == 0 || order == 3 || order == 4 || order == 5) {
      if (order == 0) init(context, sealing).iv = iv;
      return;
    }
    if (random_.one_in(5)) {
      evp_op& length = add(EVP_CALL_CONTROL, context);
      length.api = EVP_CTRL_AEAD_SET_IVLEN;
      length.bytes = static_cast<int16_t>(random_.one_in(3) ? 16 : random_.one_in(3) ? 8 : 12);
    }
    evp_op& second = init(context, sealing);
    second.key = order == 1 ? key : 0;
    second.iv = order == 2 ? iv : 0;
  }
  evp_op& init(uint8_t context, bool sealing) {
    evp_op& op = add(EVP_CALL_INIT, context);
    op.api = byte(6);
    op.encrypt = sealing ? 1 : 0;
    if ((op.api == 1 || op.api == 3) && random_.one_in(8)) op.encrypt = -1;
    return op;
  }
  uint8_t update_api(bool sealing) {
    return random_.one_in(3) ? 2 : random_.one_in(40) ? byte(3) : sealing ? 0 : 1;
  }

  void seal() {
    const uint8_t context = some_context();
    const uint8_t store = byte(EVP_SCRIPT_STORES);
    Sealed message{
        static_cast<uint8_t>(1 + byte(3)), static_cast<uint8_t>(1 + byte(200)), byte(3), {}};
    begin(context, true, message.key, message.iv);
    maybe_disturb();
    additional(context, true, message.additional);
    for (unsigned i = random_.below(4); i > 0; --i) message.pieces.push_back(length());
    body(context, true, store, message);
    end(context, true);
    maybe_disturb();
    evp_op& tag = add(random_.one_in(4) ? EVP_CALL_GET : EVP_CALL_CONTROL, context);
    if (tag.call == EVP_CALL_CONTROL) tag.api = EVP_CTRL_AEAD_GET_TAG;
    tag.store = store;
    tag.bytes = static_cast<int16_t>(random_.one_in(8) ? random_.below(18) : 16);
    sealed_[store] = message;
    known_[store] = true;
  }

  void open() {
    const uint8_t context = some_context();
    const uint8_t store = byte(EVP_SCRIPT_STORES);
    if (!known_[store]) return seal();
    const Sealed message = sealed_[store];
    begin(context, false, message.key, message.iv);
    const bool early = random_.one_in(2);
    const bool forged = random_.one_in(4);
    if (early) give_tag(context, store, forged);
    maybe_disturb();
    additional(context, false, message.additional);
    body(context, false, store, message);
    if (!early && !random_.one_in(10)) give_tag(context, store, forged);
    end(context, false);
    if (random_.one_in(8)) {
      give_tag(context, store, false);
      end(context, false);
    }
  }

  void additional(uint8_t context, bool sealing, unsigned pieces) {
    for (unsigned i = 0; i < pieces; ++i) {
      evp_op& op = add(random_.one_in(10) ? EVP_CALL_CIPHER : EVP_CALL_UPDATE, context);
      op.api = update_api(sealing);
      op.detail = 1;
      op.bytes = static_cast<int16_t>(i == 0 ? 20 : 7);
    }
  }
  void body(uint8_t context, bool sealing, uint8_t store, const Sealed& message) {
    uint16_t offset = 0;
    for (const int16_t piece : message.pieces) {
      evp_op& op = add(random_.one_in(15) ? EVP_CALL_CIPHER : EVP_CALL_UPDATE, context);
      op.api = update_api(sealing);
      op.store = store;
      op.opened = sealing ? 0 : 1;
      op.in_place = byte(2);
      op.bytes = piece;
      op.offset = offset;
      offset = static_cast<uint16_t>(offset + piece);
      if (random_.one_in(12)) disturb();
    }
  }
  void end(uint8_t context, bool sealing) {
    if (random_.one_in(15)) {
      evp_op& op = add(random_.one_in(2) ? EVP_CALL_CIPHER : EVP_CALL_UPDATE, context);
      op.api = update_api(sealing);
      op.detail = 2;
      op.bytes = 16;
      return;
    }
    evp_op& op = add(EVP_CALL_FINAL, context);
    op.api = static_cast<uint8_t>(update_api(sealing) + (random_.one_in(3) ? 3 : 0));
    if (random_.one_in(12)) op.api = sealing ? 6 : 7;
  }
  void give_tag(uint8_t context, uint8_t store, bool forged) {
    evp_op& op = add(random_.one_in(3) ? EVP_CALL_SET : EVP_CALL_CONTROL, context);
    if (op.call == EVP_CALL_CONTROL) op.api = EVP_CTRL_AEAD_SET_TAG;
    if (op.call == EVP_CALL_SET && random_.one_in(6)) op.detail = EVP_LIST_TAG_TWICE;
    op.store = store;
    op.opened = forged ? 0 : 1;
    op.offset = 3;
    op.bytes = static_cast<int16_t>(random_.one_in(5) ? random_.below(18) : 16);
  }

  // To its present message. Nobody notices who takes that back by the same IV.
  bool has_additional(uint8_t context) const {
    bool has[EVP_SCRIPT_CONTEXTS] = {};
    for (const evp_op& op : script_) {
      const bool bytes = op.call == EVP_CALL_UPDATE || op.call == EVP_CALL_CIPHER;
      if (op.call == EVP_CALL_INIT && op.iv != 0) has[op.context] = false;
      if (bytes && op.detail == 1 && op.bytes > 0) has[op.context] = true;
      if (op.call == EVP_CALL_COPY || op.call == EVP_CALL_DUP) has[op.other] = has[op.context];
    }
    return has[context];
  }

  // Now and then by the child of a fork.
  void disturb() {
    disturb_here();
    evp_op& last = script_.back();
    const bool may = last.call == EVP_CALL_INIT || last.call == EVP_CALL_UPDATE ||
                     last.call == EVP_CALL_CIPHER || last.call == EVP_CALL_FINAL;
    if (may && random_.one_in(200)) last.in_child = 1;
  }
  // Any call, on any context.
  void disturb_here() {
    const uint8_t context = some_context();
    switch (random_.below(17)) {
      case 14: {
        const bool same = random_.one_in(2) && ivs_[context] != 0 && !has_additional(context);
        evp_op& op = add(random_.one_in(2) ? EVP_CALL_IV : EVP_CALL_BIO, context);
        op.iv = same ? ivs_[context] : static_cast<uint8_t>(1 + byte(200));
        op.key = random_.one_in(3) ? static_cast<uint8_t>(1 + byte(3)) : 0;
        op.store = byte(EVP_SCRIPT_STORES);
        op.bytes = op.key != 0 || random_.one_in(3) ? 0 : length();
        const bool restarts = op.call == EVP_CALL_BIO && op.bytes == 0;
        if (!restarts || random_.one_in(2)) break;
        evp_op& more = add(EVP_CALL_BIO, context);
        more.bytes = length();
        more.detail = random_.one_in(3) ? 2 : 0;
        break;
      }
      case 15: {
        if (!random_.one_in(4)) break;
        add(EVP_CALL_RANDOM, context).detail = 1;
        evp_op& op = add(EVP_CALL_CONTROL, context);
        op.api = EVP_CTRL_AEAD_SET_IV_FIXED;
        op.bytes = 4;
        add(EVP_CALL_RANDOM, context);
        break;
      }
      case 13: {
        evp_op& op = add(EVP_CALL_ENVELOPE, context);
        op.api = byte(2);
        op.cipher = random_.one_in(3) ? 1 : 0;
        op.detail = byte(2);
        break;
      }
      case 0: {
        evp_op& op = init(context, random_.one_in(2));
        op.cipher = random_.one_in(3) ? 1 : random_.one_in(6) ? byte(4) : 0;
        op.key = random_.one_in(2) ? static_cast<uint8_t>(1 + byte(3)) : 0;
        op.iv = random_.one_in(2) ? static_cast<uint8_t>(1 + byte(200)) : 0;
        op.detail = random_.one_in(3) ? byte(EVP_LISTS + 1) : 0;
        if (op.detail == EVP_LIST_TAG_AND_IV_LENGTH + 1) op.detail = EVP_LIST_IV_LENGTH + 1;
        op.store = byte(EVP_SCRIPT_STORES);
        op.opened = byte(2);
        op.bytes = static_cast<int16_t>(random_.one_in(3) ? 12 : random_.below(18));
        break;
      }
      case 1:
      case 2: {
        evp_op& op = add(EVP_CALL_UPDATE, context);
        op.api = byte(3);
        op.detail = random_.one_in(3) ? byte(3) : 0;
        op.store = byte(EVP_SCRIPT_STORES);
        op.bytes = length();
        break;
      }
      case 3: {
        evp_op& op = add(EVP_CALL_FINAL, context);
        op.api = byte(8);
        break;
      }
      case 4: {
        evp_op& op = add(EVP_CALL_CIPHER, context);
        op.detail = byte(3);
        op.store = byte(EVP_SCRIPT_STORES);
        op.bytes = length();
        break;
      }
      case 5:
      case 6:
      case 7: {
        static const uint8_t kControls[] = {EVP_CTRL_AEAD_SET_IVLEN,
                                            EVP_CTRL_AEAD_GET_TAG,
                                            EVP_CTRL_AEAD_SET_TAG,
                                            EVP_CTRL_AEAD_SET_IV_FIXED,
                                            EVP_CTRL_GCM_IV_GEN,
                                            EVP_CTRL_GCM_SET_IV_INV,
                                            EVP_CTRL_AEAD_TLS1_AAD,
                                            EVP_CTRL_CCM_SET_L,
                                            EVP_CTRL_GET_IVLEN,
                                            EVP_CTRL_INIT,
                                            EVP_CTRL_RAND_KEY,
                                            EVP_CTRL_AEAD_SET_MAC_KEY,
                                            EVP_CTRL_SET_KEY_LENGTH,
                                            EVP_CTRL_SET_SPEED,
                                            EVP_CTRL_SET_RC5_ROUNDS,
                                            EVP_CTRL_GET_RC2_KEY_BITS,
                                            EVP_CTRL_SET_PIPELINE_OUTPUT_BUFS};
        static const int16_t kSizes[] = {16, 12, 8, 4, 13, 0, 1, 7, 17, 3};
        evp_op& op = add(EVP_CALL_CONTROL, context);
        op.api = kControls[random_.below(std::size(kControls))];
        op.bytes = kSizes[random_.below(std::size(kSizes))];
        op.store = byte(EVP_SCRIPT_STORES);
        op.opened = byte(2);
        if (op.api == EVP_CTRL_GCM_SET_IV_INV) op.bytes = 8;
        if (op.api == EVP_CTRL_GCM_IV_GEN && op.bytes > 12) op.bytes = 12;
        break;
      }
      case 8: {
        evp_op& op = add(EVP_CALL_GET, context);
        op.detail = byte(EVP_LISTS);
        op.bytes = static_cast<int16_t>(random_.one_in(3) ? random_.below(18) : 16);
        if (op.detail == EVP_LIST_UNKNOWN) op.bytes = 8;
        break;
      }
      case 9: {
        evp_op& op = add(EVP_CALL_SET, context);
        op.detail = byte(EVP_LISTS);
        op.store = byte(EVP_SCRIPT_STORES);
        op.opened = byte(2);
        op.bytes = static_cast<int16_t>(random_.one_in(3) ? random_.below(18) : 12);
        break;
      }
      case 10:
      case 11: {
        evp_op& op = add(random_.one_in(2) ? EVP_CALL_COPY : EVP_CALL_DUP, context);
        op.other = static_cast<uint8_t>((context + 1 + byte(EVP_SCRIPT_CONTEXTS - 1)) %
                                        EVP_SCRIPT_CONTEXTS);
        break;
      }
      case 12:
        add(random_.one_in(2) ? EVP_CALL_RESET : EVP_CALL_RENEW, context);
        break;
      default:
        add(EVP_CALL_LENGTHS, context);
        break;
    }
  }

  Random random_;
  Script script_;
  Sealed sealed_[EVP_SCRIPT_STORES];
  bool known_[EVP_SCRIPT_STORES] = {};
  uint8_t ivs_[EVP_SCRIPT_CONTEXTS] = {};  // of the messages that were begun, in each context
};

int random_scripts(uint64_t first, uint64_t count, bool all_seen) {
  uint64_t calls = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Script script = Writer(seed).write();
    if (all_seen) {
      std::erase_if(script, [](const evp_op& op) {
        return op.call == EVP_CALL_BIO && (op.bytes != 0 || op.key != 0);
      });
    }
    calls += script.size();
    if (compare(script)) continue;
    std::printf("seed %llu differs\n", static_cast<unsigned long long>(seed));
    return 1;
  }
  std::printf("ok: %llu sequences, %llu calls, 0 differences (stricter in %llu)\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(stricter));
  return 0;
}

// --- stories

evp_op init(int encrypt, int cipher, int key, int iv) {
  evp_op op{};
  op.call = EVP_CALL_INIT;
  op.api = 1;
  op.encrypt = static_cast<int8_t>(encrypt);
  op.cipher = static_cast<uint8_t>(cipher);
  op.key = static_cast<uint8_t>(key);
  op.iv = static_cast<uint8_t>(iv);
  return op;
}
evp_op data(int bytes, int store = 0, bool opened = false) {
  evp_op op{};
  op.call = EVP_CALL_UPDATE;
  op.api = opened ? 1 : 0;
  op.bytes = static_cast<int16_t>(bytes);
  op.store = static_cast<uint8_t>(store);
  op.opened = opened ? 1 : 0;
  return op;
}
evp_op additional(int bytes, bool opening = false) {
  evp_op op = data(bytes);
  op.api = opening ? 1 : 0;
  op.detail = 1;
  return op;
}
evp_op no_bytes() {
  evp_op op = data(0);
  op.api = 2;
  op.detail = 2;
  return op;
}
evp_op end(bool opening = false) {
  evp_op op{};
  op.call = EVP_CALL_FINAL;
  op.api = opening ? 1 : 0;
  return op;
}
evp_op control(int type, int bytes, int offset = 3) {
  evp_op op{};
  op.call = EVP_CALL_CONTROL;
  op.api = static_cast<uint8_t>(type);
  op.bytes = static_cast<int16_t>(bytes);
  op.offset = static_cast<uint16_t>(offset);
  return op;
}
evp_op tag() { return control(EVP_CTRL_AEAD_GET_TAG, 16); }
evp_op forged_tag() { return control(EVP_CTRL_AEAD_SET_TAG, 16); }
evp_op genuine_tag() {
  evp_op op = forged_tag();
  op.opened = 1;
  return op;
}
evp_op on(int context, evp_op op) {
  op.context = static_cast<uint8_t>(context);
  return op;
}
evp_op sealed_for(int people) {
  evp_op op{};
  op.call = EVP_CALL_ENVELOPE;
  op.detail = static_cast<uint8_t>(people);
  return op;
}
evp_op opened_by(int people) {
  evp_op op = sealed_for(people);
  op.api = 1;
  return op;
}
// More than one part of it, if it is long.
evp_op placed(evp_place place, bool opening, int kib = 0) {
  evp_op op = data(1000, 0, opening);
  op.place = static_cast<uint8_t>(place);
  op.kib = static_cast<uint16_t>(kib);
  return op;
}
evp_op copy_to(int other) {
  evp_op op{};
  op.call = EVP_CALL_COPY;
  op.other = static_cast<uint8_t>(other);
  return op;
}

evp_op ended_by_envelope(bool opening = false) {
  evp_op op = end();
  op.api = opening ? 7 : 6;
  return op;
}
evp_op iv_written(int iv) {
  evp_op op{};
  op.call = EVP_CALL_IV;
  op.iv = static_cast<uint8_t>(iv);
  return op;
}
evp_op by_bio(int bytes) {
  evp_op op = data(bytes);
  op.call = EVP_CALL_BIO;
  return op;
}
evp_op ended_by_bio(int bytes) {
  evp_op op = by_bio(bytes);
  op.detail = 2;
  return op;
}
evp_op iv_by_bio(int iv) {
  evp_op op = by_bio(0);
  op.iv = static_cast<uint8_t>(iv);
  return op;
}
evp_op key_by_bio(int key, int iv) {
  evp_op op = iv_by_bio(iv);
  op.key = static_cast<uint8_t>(key);
  return op;
}
evp_op unseen(evp_op op) {
  op.api = op.call == EVP_CALL_INIT ? 6 : 3;
  return op;
}
evp_op without_input(int call) {
  evp_op op = data(64);
  op.call = static_cast<uint8_t>(call);
  op.api = 2;
  op.detail = 2;
  return op;
}
evp_op new_one() {
  evp_op op{};
  op.call = EVP_CALL_RENEW;
  op.detail = 1;
  return op;
}
evp_op drawn_from(int way) {
  evp_op op{};
  op.call = EVP_CALL_RANDOM;
  op.detail = static_cast<uint8_t>(way);
  return op;
}
evp_op parameters(int call, int list, int bytes, bool opened = false) {
  evp_op op{};
  op.call = static_cast<uint8_t>(call);
  op.detail = static_cast<uint8_t>(list);
  op.bytes = static_cast<int16_t>(bytes);
  op.opened = opened ? 1 : 0;
  op.offset = 3;
  return op;
}
evp_op get(int list, int bytes) { return parameters(EVP_CALL_GET, list, bytes); }
evp_op set(int list, int bytes, bool opened = false) {
  return parameters(EVP_CALL_SET, list, bytes, opened);
}
evp_op with(int list, evp_op init, int bytes = 16) {
  init.api = 3;
  init.detail = static_cast<uint8_t>(list + 1);
  init.bytes = static_cast<int16_t>(bytes);
  return init;
}
evp_op in_child(evp_op op) {
  op.in_child = 1;
  return op;
}
Script controls_within() {
  Script script = {init(1, 1, 2, 5), data(20)};
  for (const int type : {0x0, 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x17, 0x1c, 0x25, 0x27}) {
    script.push_back(control(type, 16));
    script.push_back(data(20));
  }
  for (const evp_op& op :
       {set(EVP_LIST_PADDING, 0), set(EVP_LIST_EMPTY, 0), data(12), end(), tag()}) {
    script.push_back(op);
  }
  return script;
}

const std::map<std::string, Script>& stories() {
  static const std::map<std::string, Script> all = {
      {"iv-before-key",
       {init(1, 1, 0, 5), init(1, 0, 2, 0), data(20), end(), tag(), init(1, 0, 0, 6), data(20),
        end(), tag()}},
      {"key-without-iv",
       {init(1, 1, 2, 0), data(20), end(), tag(), init(1, 0, 3, 0), data(20), end(), tag()}},
      {"iv-length-first",
       {init(1, 1, 0, 0), control(EVP_CTRL_AEAD_SET_IVLEN, 16), init(1, 0, 2, 5), data(40), end(),
        tag(), init(1, 0, 0, 6), data(40), end(), tag()}},
      {"iv-length-later",
       {init(1, 1, 2, 5), data(40), end(), tag(), control(EVP_CTRL_AEAD_SET_IVLEN, 16),
        init(1, 0, 0, 5), data(40), end(), tag(), control(EVP_CTRL_AEAD_SET_IVLEN, 8),
        init(1, 0, 0, 5), data(40), end(), tag()}},
      {"generated-iv",
       {init(1, 1, 2, 5), data(20), end(), tag(), control(EVP_CTRL_AEAD_SET_IV_FIXED, 4),
        control(EVP_CTRL_GCM_IV_GEN, 8), data(33), end(), tag(), control(EVP_CTRL_GCM_IV_GEN, 8),
        data(33), end(), tag()}},
      {"opened-after-sealing",
       {init(1, 1, 2, 5), data(20), end(), tag(), init(0, 0, 0, 6), forged_tag(), data(20, 0, true),
        end(true), init(0, 0, 0, 5), control(EVP_CTRL_AEAD_SET_TAG, 16, 9), data(20, 0, true),
        end(true)}},
      {"keyed-to-seal", {init(1, 1, 2, 0), init(0, 0, 0, 6), forged_tag(), data(20), end(true)}},
      {"update-after-final",
       {init(1, 1, 2, 5), data(20), end(), data(20), end(), tag(), data(40), additional(8), tag()}},
      {"envelope-for-nobody-within",
       {init(1, 1, 2, 5), data(20), sealed_for(0), data(20), end(), tag(), init(0, 0, 0, 5),
        control(EVP_CTRL_AEAD_SET_TAG, 16, 9), data(20, 0, true), opened_by(0), data(20, 0, true),
        end(true)}},
      {"late-additional-data",
       {init(1, 1, 2, 5), additional(20), data(20), additional(20), data(20), end(), tag()}},
      {"copy-of-finished",
       {init(1, 1, 2, 5), data(20), end(), copy_to(1), on(1, data(20)), on(1, tag()),
        on(1, init(1, 0, 0, 6)), on(1, data(20)), on(1, end()), on(1, tag()), tag()}},
      {"copy-within",
       {init(1, 1, 2, 5), additional(20), data(20), copy_to(1), data(30), on(1, data(7)), end(),
        tag(), on(1, end()), on(1, tag())}},
      {"output-gone-before-the-end",
       {init(0, 1, 2, 5), forged_tag(), placed(EVP_PLACE_GONE, true), end(true), init(0, 0, 0, 6),
        forged_tag(), placed(EVP_PLACE_GONE, true, 1024), end(true)}},
      {"output-below-its-input",
       {init(1, 1, 2, 5), placed(EVP_PLACE_BELOW, false, 16384), placed(EVP_PLACE_BELOW, false),
        end(), tag(), init(0, 0, 0, 5), forged_tag(), placed(EVP_PLACE_BELOW, true, 16384),
        placed(EVP_PLACE_BELOW, true), end(true)}},
      {"output-above-its-input",
       {init(1, 1, 2, 5), placed(EVP_PLACE_ABOVE, false, 16384), placed(EVP_PLACE_ABOVE, false),
        end(), tag(), init(0, 0, 0, 5), forged_tag(), placed(EVP_PLACE_ABOVE, true, 16384),
        placed(EVP_PLACE_ABOVE, true), end(true)}},
      {"no-bytes-are-no-end",
       {init(0, 1, 2, 5), forged_tag(), data(20, 0, true), no_bytes(), end(true),
        data(20, 0, true)}},
      {"forked-within",
       {init(1, 1, 2, 5), in_child(data(20)), data(20), in_child(data(20)), in_child(end()),
        in_child(init(1, 0, 0, 6)), data(20), end(), tag(), in_child(data(20)), in_child(end()),
        init(0, 0, 0, 5), forged_tag(), data(40, 0, true), in_child(end(true)), end(true)}},
      {"ended-by-envelope",
       {init(1, 1, 2, 5), data(20), ended_by_envelope(), tag(), data(20), ended_by_envelope(),
        init(0, 0, 0, 5), set(EVP_LIST_TAG, 16, true), data(20, 0, true), ended_by_envelope(true),
        init(0, 0, 0, 5), forged_tag(), data(20, 0, true), ended_by_envelope(true)}},
      {"bio-goes-on", {init(1, 1, 2, 5), data(20), by_bio(20), end(), tag()}},
      {"bio-began", {init(1, 1, 2, 5), by_bio(20), data(20), end(), tag(), data(20), by_bio(20)}},
      {"bio-began-under-another-key",
       {init(1, 1, 2, 0), init(1, 0, 0, 5), by_bio(20), init(1, 0, 3, 0), data(20), end(), tag(),
        init(1, 0, 0, 6), data(20), end(), tag()}},
      {"bio-gives-a-key",
       {init(1, 1, 2, 5), by_bio(20), key_by_bio(3, 5), data(20), end(), tag(), init(1, 0, 0, 6),
        data(20), end(), tag(), init(1, 0, 2, 7), data(20), end(), tag()}},
      {"bio-gives-a-key-after-additional-data",
       {init(1, 1, 2, 5), additional(20), key_by_bio(3, 0), data(20), end(), tag()}},
      {"bio-gives-a-key-to-open",
       {init(1, 1, 3, 5), data(20), end(), tag(), init(0, 1, 2, 5), key_by_bio(3, 5), genuine_tag(),
        data(20, 0, true), end(true)}},
      {"key-set-unseen",
       {init(1, 1, 2, 5), unseen(data(20)), unseen(init(1, 0, 3, 5)), data(20), end(), tag(),
        init(1, 0, 0, 6), data(20), end(), tag()}},
      {"bio-gives-an-iv",
       {init(1, 1, 2, 5), data(20), iv_by_bio(6), data(20), end(), tag(), iv_by_bio(7), data(20),
        end(), tag(), init(1, 0, 0, 8), data(20), end(), tag(), iv_by_bio(9), end(), tag()}},
      {"bio-gives-the-same-iv",
       {init(1, 1, 2, 5), data(20), iv_by_bio(5), end(), tag(), init(1, 0, 0, 6), data(20),
        iv_by_bio(6), data(20), end(), tag()}},
      {"bio-gives-the-same-iv-and-bytes",
       {init(1, 1, 2, 5), data(16), iv_by_bio(5), by_bio(64), data(32), end(), tag(),
        init(1, 0, 0, 6), additional(20), data(16), iv_by_bio(6), by_bio(64), end(), tag()}},
      {"bio-has-the-same-message-within",
       {init(1, 1, 2, 5), data(16), iv_by_bio(5), ended_by_bio(64), data(32), end(), tag(),
        init(1, 0, 0, 6), data(16), iv_by_bio(6), ended_by_bio(64), end(), tag()}},
      {"bio-gives-the-same-iv-and-bytes-to-open",
       {init(1, 1, 2, 5), data(64), end(), tag(), init(0, 1, 2, 5), data(64, 0, true), iv_by_bio(5),
        genuine_tag(), by_bio(64), end(true)}},
      {"bio-gives-the-same-iv-after-the-end",
       {init(1, 1, 2, 5), data(20), end(), tag(), iv_by_bio(5), data(20), end(), tag(),
        init(1, 0, 0, 6), data(20), end(), iv_by_bio(6), additional(20), data(20), end(), tag()}},
      {"bio-gives-an-iv-after-additional-data",
       {init(1, 1, 2, 5), additional(20), iv_by_bio(6), data(20), end(), tag()}},
      {"bio-has-a-message-within",
       {init(1, 1, 2, 5), data(20), iv_by_bio(6), by_bio(20), data(20), end(), tag()}},
      {"bio-frees-its-context",
       {init(1, 1, 2, 5), data(20), iv_by_bio(6), on(1, new_one()), on(1, data(20)), on(1, end()),
        on(1, tag())}},
      {"iv-written",
       {init(1, 1, 2, 0), init(1, 0, 0, 5), iv_written(6), data(20), end(), tag(), init(1, 0, 0, 5),
        iv_written(7), data(20), end(), tag()}},
      {"iv-written-within", {init(1, 1, 2, 5), data(20), iv_written(6), data(20), end(), tag()}},
      {"iv-written-for-additional-data",
       {init(1, 1, 2, 5), iv_written(6), additional(20), iv_written(5), data(20), end(), tag()}},
      {"iv-half-drawn",
       {init(1, 1, 2, 5), drawn_from(1), control(EVP_CTRL_AEAD_SET_IV_FIXED, 4), drawn_from(0),
        data(20), end(), tag(), init(1, 0, 0, 6), data(20), end(), tag()}},
      {"drawn-from-a-message",
       {init(1, 1, 2, 5), data(8), drawn_from(2), on(1, init(1, 1, 3, 5)),
        on(1, control(EVP_CTRL_AEAD_SET_IV_FIXED, 4)), on(1, control(EVP_CTRL_GCM_IV_GEN, 8)),
        on(1, data(20)), on(1, end()), on(1, tag()), drawn_from(0), data(8), end(), tag()}},
      {"message-begun-by-drawing",
       {init(1, 1, 2, 5), drawn_from(2), on(1, init(1, 1, 3, 5)),
        on(1, control(EVP_CTRL_AEAD_SET_IV_FIXED, 4)), drawn_from(0), data(8), end(), tag()}},
      {"tls-record-in-init",
       {with(EVP_LIST_TLS_ADDITIONAL, init(1, 1, 2, 5)), init(1, 0, 0, 6), data(20), end()}},
      {"tls-record-without-input",
       {init(1, 1, 2, 5), control(EVP_CTRL_AEAD_SET_IV_FIXED, 4),
        control(EVP_CTRL_AEAD_TLS1_AAD, 13), without_input(EVP_CALL_CIPHER), init(1, 0, 0, 6),
        control(EVP_CTRL_AEAD_SET_IV_FIXED, 4), control(EVP_CTRL_AEAD_TLS1_AAD, 13),
        without_input(EVP_CALL_UPDATE)}},
      {"tls-iv-in-init",
       {with(EVP_LIST_IV, init(1, 1, 2, 5), 4), control(EVP_CTRL_GCM_IV_GEN, 8), data(20), end(),
        tag(), with(EVP_LIST_IV, init(1, 0, 0, 6), 4), data(20), end(), tag()}},
      {"tag-twice-wrong-first",
       {init(1, 1, 2, 5), data(20), end(), tag(), init(0, 0, 0, 5), set(EVP_LIST_TAG_TWICE, 16),
        data(20, 0, true), end(true)}},
      {"tag-twice-wrong-first-within",
       {init(1, 1, 2, 5), data(20), end(), tag(), init(0, 0, 0, 5), data(20, 0, true),
        set(EVP_LIST_TAG_TWICE, 16), end(true)}},
      {"tag-twice-in-init",
       {init(1, 1, 2, 5), data(20), end(), tag(), get(EVP_LIST_TAG_TWICE, 16),
        with(EVP_LIST_TAG_TWICE, init(0, 0, 0, 5)), data(20, 0, true), end(true)}},
      {"tag-overwritten",
       {on(1, init(1, 1, 2, 6)), on(1, additional(20)), on(1, end()), on(1, tag()),
        init(1, 1, 2, 5), data(20), end(), set(EVP_LIST_TAG_AND_IV_LENGTH, 9), init(0, 0, 0, 6),
        additional(20, true), end(true), genuine_tag(), end(true)}},
      {"tag-overwritten-before-data",
       {on(1, init(1, 1, 2, 6)), on(1, data(20)), on(1, end()), on(1, tag()), init(1, 1, 2, 5),
        data(20, 1), end(), set(EVP_LIST_TAG_AND_IV_LENGTH, 9), init(0, 0, 0, 6), data(20, 0, true),
        end(true), genuine_tag(), end(true)}},
      {"tag-of-another-type",
       {init(1, 1, 2, 5), data(20), end(), set(EVP_LIST_TAG_OF_WRONG_TYPE, 16), tag(),
        get(EVP_LIST_TAG_OF_WRONG_TYPE, 16), tag()}},
      {"controls-within", controls_within()},
      {"refused-with-reasons",
       {init(1, 1, 2, 5), data(20), additional(20), end(), data(20), additional(20), end(),
        control(EVP_CTRL_AEAD_GET_TAG, 17), control(EVP_CTRL_AEAD_GET_TAG, 0),
        get(EVP_LIST_TAG, 17), init(0, 0, 0, 5), data(20, 0, true), end(true), tag()}},
  };
  return all;
}

// Then nothing differs, whichever rule is taken out.
const char* why_unanswered() {
  const unsigned long version = OpenSSL_version_num();
  if (version < 0x300000d0 || (version >= 0x30100000 && version < 0x30100050)) {
    return "OpenSSL takes used IVs before 3.0.13 and 3.1.5";
  }
  const bool fast = __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  return fast ? nullptr : "no AES or no PCLMUL";
}

}  // namespace

int main(int argc, char** argv) {
  RAND_METHOD deterministic{};
  deterministic.bytes = &draw;
  deterministic.pseudorand = &draw;
  deterministic.seed = &draw_otherwise;
  deterministic.status = &always;
  RAND_set_rand_method(&deterministic);
  if (cuInit(0) != CUDA_SUCCESS) return std::printf("no driver\n"), 1;
  if (const char* const why = why_unanswered()) std::printf("nothing is answered here: %s\n", why);
  const std::string what = argc > 1 ? argv[1] : "";
  if ((what == "random" || what == "seen") && argc == 4) {
    return random_scripts(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                          what == "seen");
  }
  if (what == "case" && argc == 3 && stories().contains(argv[2])) {
    const bool same = compare(stories().at(argv[2]));
    std::printf(same ? "ok\n" : "differs\n");
    return same ? 0 : 1;
  }
  std::printf("usage: evp_calls random|seen FIRST COUNT | case NAME, one of:\n");
  for (const auto& [name, script] : stories()) std::printf("  %s\n", name.c_str());
  return 2;
}
