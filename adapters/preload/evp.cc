// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions that the driver gets in place of libcrypto's.

#include "evp.h"

#include <cxxabi.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>

#include "evp_context.h"
#include "libcrypto.h"
#include "serve/pinned_proxy.h"

namespace sealane::preload {
namespace {

std::atomic<WorkerPool*> pool{nullptr};  // null: nothing to watch or answer

EvpContexts& contexts() {
  static EvpContexts& all = *new EvpContexts;
  return all;
}

// What happens to a context inside a call that we forward for it is libcrypto's own business, also
// where it comes back to code of the driver. What happens to another context there (by a random
// generator of the driver's, for an IV) is a call as any other. (We are there from the start of a
// process, so that its place in a thread is known.)
class Inside;
[[gnu::tls_model("initial-exec")]] thread_local const Inside* innermost = nullptr;

class Inside {
 public:
  Inside(const Libcrypto& libcrypto, const Context* context)
      : libcrypto_(libcrypto), context_(context), outer_(innermost) {
    innermost = this;
  }
  ~Inside() { innermost = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  static const Libcrypto* of(const Context* context) {
    const Inside* call = innermost;
    while (call != nullptr && call->context_ != context && !broken(Mutant::nested)) {
      call = call->outer_;
    }
    return call != nullptr ? &call->libcrypto_ : nullptr;
  }

 private:
  const Libcrypto& libcrypto_;
  const Context* context_;
  const Inside* outer_;
};

// The libcrypto behind the function that was called.
[[gnu::tls_model("initial-exec")]] thread_local const Libcrypto* behind = nullptr;

// A call of the driver's: where it goes, and the context it speaks of if we follow that. `caller`
// is the libcrypto behind the function that it called.
struct Call {
  Call(const Context* spoken_of, const void* caller) : context(spoken_of) {
    libcrypto = Inside::of(context);
    nested = libcrypto != nullptr;
    if (nested) return;
    // In the child of a fork none is followed: a lock of the table may be held by a thread that is
    // gone.
    if (pool.load(std::memory_order_acquire) != nullptr) followed = contexts().find(context);
    libcrypto = followed ? &followed->libcrypto() : static_cast<const Libcrypto*>(caller);
    // Emptied where we do not see it, or another at the same place.
    if (!followed || libcrypto->cipher_of(context) != nullptr) return;
    contexts().drop(context);
    followed = nullptr;
  }
  const Context* context;
  std::shared_ptr<EvpContext> followed;
  const Libcrypto* libcrypto;
  bool nested;
};

// Nothing leaves through the driver's frames. What was thrown has ended the message, or the call.
template <typename Body>
int guarded(const Call& call, int bad, const Body& body) {
  try {
    const Inside nested(*call.libcrypto, call.context);
    return body();
  } catch (abi::__forced_unwind&) {  // a thread that is cancelled
    if (call.followed) call.followed->give_up();
    throw;
  } catch (...) {
    if (call.followed) call.followed->give_up();
    return bad;
  }
}

void follow(Call& call, Context* context) noexcept {
  try {
    call.followed = std::make_shared<EvpContext>(context, *call.libcrypto);
    contexts().put(context, call.followed);
  } catch (const std::exception&) {
    call.followed = nullptr;  // libcrypto has it alone
  }
}

void forget(const Context* context) {
  if (pool.load(std::memory_order_acquire) != nullptr) contexts().drop(context);
}

// --- what every function of a kind does; `real` makes the call

template <typename Real>
int init(Context* context, const EvpContext::InitCall& wanted, const void* caller, Real&& real) {
  Call call(context, caller);
  const bool may = !call.nested && pool.load(std::memory_order_acquire) != nullptr;
  if (may && !call.followed && wanted.cipher != nullptr) follow(call, context);
  if (!call.followed) return real(*call.libcrypto);
  const int result = guarded(call, 0, [&] {
    call.followed->before_init(wanted);
    const int made = real(*call.libcrypto);
    call.followed->after_init(wanted, made == 1);
    return made;
  });
  if (!call.followed->is_gcm()) forget(context);
  return result;
}

// A key or an IV that we do not see. A cipher empties the context first. Without one it goes on,
// and so do we: what libcrypto has not seen of a message of ours it must not go on with.
struct Unseen {
  bool cipher = false;
  bool key = false;
  bool iv = false;
};

template <typename Real>
int init_unseen(Context* context, const Unseen& set, const void* caller, Real&& real) {
  Call call(context, caller);
  if (!call.followed) return real(*call.libcrypto);
  const int result = guarded(call, 0, [&] {
    const int made = real(*call.libcrypto);
    if (set.key && !set.cipher) call.followed->after_unseen_key(set.iv && made == 1);
    return made;
  });
  if (set.cipher) forget(context);
  return result;
}

enum class Way : uint8_t { sealing, opening, either };

bool fits(Way asked, const EvpContext& followed) {
  if (asked == Way::either || broken(Mutant::direction)) return true;
  return (asked == Way::sealing) == followed.sealing();
}

template <typename Real>
int update(Way direction, Context* context, Byte* out, int* out_bytes, const Byte* in, int bytes,
           const void* caller, Real&& real) {
  Call call(context, caller);
  WorkerPool* const workers = call.nested ? nullptr : pool.load(std::memory_order_acquire);
  if (bytes > 0 && workers != nullptr) {
    in = serve::real_source(in, static_cast<uint64_t>(bytes));
    out = serve::real_destination(out, static_cast<uint64_t>(bytes));
    if (out != nullptr && serve::is_refused(out)) return 0;
  }
  const auto forward = [&](const Byte* from, Byte* to) {
    return real(*call.libcrypto, to, out_bytes, from, bytes);
  };
  const auto as_called = [&](const Byte*, Byte*) { return forward(in, out); };
  // What libcrypto refuses, or what does nothing, whatever the state.
  const bool plain = bytes <= 0 || out_bytes == nullptr;
  if (!call.followed || plain || !fits(direction, *call.followed)) {
    return call.followed ? guarded(call, 0, [&] { return forward(in, out); }) : forward(in, out);
  }
  return guarded(call, 0, [&] {
    *out_bytes = 0;
    if (in == nullptr) return call.followed->final({}, as_called);  // so it is in OpenSSL 3
    const auto count = static_cast<size_t>(bytes);
    const int result = call.followed->update({}, in, out, count, forward, workers);
    if (result == 1) *out_bytes = bytes;
    return result;
  });
}

template <typename Real>
int final(Way direction, Context* context, Byte* out, int* out_bytes, const void* caller,
          Real&& real) {
  const Call call(context, caller);
  const auto forward = [&](const Byte*, Byte*) { return real(*call.libcrypto, out, out_bytes); };
  if (!call.followed) return forward(nullptr, nullptr);
  return guarded(call, 0, [&] {
    if (out_bytes == nullptr || !fits(direction, *call.followed)) return forward(nullptr, nullptr);
    *out_bytes = 0;
    return call.followed->final({}, forward);
  });
}

int cipher(Context* context, Byte* out, const Byte* in, unsigned bytes, const void* caller) {
  const Call call(context, caller);
  WorkerPool* const workers = call.nested ? nullptr : pool.load(std::memory_order_acquire);
  if (bytes > 0 && workers != nullptr) {
    in = serve::real_source(in, bytes);
    out = serve::real_destination(out, bytes);
    if (out != nullptr && serve::is_refused(out)) return -1;
  }
  const auto forward = [&](const Byte* from, Byte* to) {
    return call.libcrypto->cipher(context, to, from, bytes);
  };
  const auto as_called = [&](const Byte*, Byte*) { return forward(in, out); };
  if (!call.followed) return forward(in, out);
  const Codes codes{static_cast<int>(bytes), -1};
  return guarded(call, -1, [&] {
    return in == nullptr ? call.followed->final(codes, as_called)
                         : call.followed->cipher(codes, in, out, bytes, forward, workers);
  });
}

// A refused copy has left `to` as it was, or empty.
int copy(Context* to, const Context* from, const void* caller) {
  const Call call(from, caller);
  if (!call.followed) {
    const int result = call.libcrypto->copy(to, from);
    if (result == 1 || call.libcrypto->cipher_of(to) == nullptr) forget(to);
    return result;
  }
  return guarded(call, 0, [&] {
    const auto copied = call.followed->copied();
    const int result = call.libcrypto->copy(to, from);
    copied->is_now(to);
    if (result == 1) contexts().put(to, copied);
    if (result != 1 && call.libcrypto->cipher_of(to) == nullptr) contexts().drop(to);
    return result;
  });
}

Context* duplicate(const Context* from, const void* caller) {
  const Call call(from, caller);
  if (call.libcrypto->dup == nullptr) return nullptr;
  if (!call.followed) return call.libcrypto->dup(from);
  Context* made = nullptr;
  guarded(call, 0, [&] {
    const auto copied = call.followed->copied();
    made = call.libcrypto->dup(from);
    if (made == nullptr) return 0;
    copied->is_now(made);
    contexts().put(made, copied);
    return 1;
  });
  return made;
}

}  // namespace

void start_answering(WorkerPool& workers) {
  contexts();  // made here, where it may throw
  pool.store(&workers);
}

void stop_answering() { pool.store(nullptr); }

}  // namespace sealane::preload

using namespace sealane::preload;

// Versions are in libcrypto.h's lists too, from where references are told apart.
#define SEALANE_EVP(type, symbol, version) \
  extern "C" __attribute__((visibility("hidden"))) type sealane_##symbol
#define CALLER behind
#define V3 "OPENSSL_3.0.0"

// `more`: parameters beside key and IV; the last are the arguments.
#define INIT(symbol, member, parameters, more, ...)                               \
  SEALANE_EVP(int, symbol, V3) parameters {                                       \
    return init(context, {cipher, key, iv, more}, CALLER,                         \
                [=](const Libcrypto& real) { return real.member(__VA_ARGS__); }); \
  }
#define WANTED Context *context, const Cipher *cipher
#define KEYED const Byte *key, const Byte *iv
INIT(EVP_EncryptInit_ex, encrypt_init_ex, (WANTED, engine_st* engine, KEYED), nullptr, context,
     cipher, engine, key, iv)
INIT(EVP_DecryptInit_ex, decrypt_init_ex, (WANTED, engine_st* engine, KEYED), nullptr, context,
     cipher, engine, key, iv)
INIT(EVP_CipherInit_ex, cipher_init_ex, (WANTED, engine_st* engine, KEYED, int encrypt), nullptr,
     context, cipher, engine, key, iv, encrypt)
INIT(EVP_EncryptInit_ex2, encrypt_init_ex2, (WANTED, KEYED, const Parameter* list), list, context,
     cipher, key, iv, list)
INIT(EVP_DecryptInit_ex2, decrypt_init_ex2, (WANTED, KEYED, const Parameter* list), list, context,
     cipher, key, iv, list)
INIT(EVP_CipherInit_ex2, cipher_init_ex2, (WANTED, KEYED, int encrypt, const Parameter* list), list,
     context, cipher, key, iv, encrypt, list)
INIT(EVP_EncryptInit, encrypt_init, (WANTED, KEYED), nullptr, context, cipher, key, iv)
INIT(EVP_DecryptInit, decrypt_init, (WANTED, KEYED), nullptr, context, cipher, key, iv)
INIT(EVP_CipherInit, cipher_init, (WANTED, KEYED, int encrypt), nullptr, context, cipher, key, iv,
     encrypt)

SEALANE_EVP(int, EVP_SealInit, V3)
(Context* context, const Cipher* cipher, Byte** keys, int* key_bytes, Byte* iv, void** people,
 int count) {
  const Unseen set{cipher != nullptr, count > 0 && people != nullptr, true};
  return init_unseen(context, set, CALLER, [=](const Libcrypto& real) {
    return real.seal_init(context, cipher, keys, key_bytes, iv, people, count);
  });
}
SEALANE_EVP(int, EVP_OpenInit, V3)
(Context* context, const Cipher* cipher, const Byte* key, int key_bytes, const Byte* iv,
 void* person) {
  const Unseen set{cipher != nullptr, person != nullptr, iv != nullptr};
  return init_unseen(context, set, CALLER, [=](const Libcrypto& real) {
    return real.open_init(context, cipher, key, key_bytes, iv, person);
  });
}
SEALANE_EVP(int, EVP_CipherInit_SKEY, "OPENSSL_3.5.0")
(Context* context, const Cipher* cipher, void* key, const Byte* iv, size_t iv_bytes, int encrypt,
 const Parameter* parameters) {
  const Unseen set{cipher != nullptr, true, iv != nullptr};
  return init_unseen(context, set, CALLER, [=](const Libcrypto& real) {
    if (real.skey_init == nullptr) return 0;
    return real.skey_init(context, cipher, key, iv, iv_bytes, encrypt, parameters);
  });
}

#define UPDATE(symbol, member, direction)                                                     \
  SEALANE_EVP(int, symbol, V3)                                                                \
  (Context * context, Byte * out, int* out_bytes, const Byte* in, int bytes) {                \
    return update(Way::direction, context, out, out_bytes, in, bytes, CALLER,                 \
                  [=](const Libcrypto& real, Byte* to, int* count, const Byte* from, int n) { \
                    return real.member(context, to, count, from, n);                          \
                  });                                                                         \
  }
UPDATE(EVP_EncryptUpdate, encrypt_update, sealing)
UPDATE(EVP_DecryptUpdate, decrypt_update, opening)
UPDATE(EVP_CipherUpdate, cipher_update, either)

#define FINAL(symbol, member, direction)                                        \
  SEALANE_EVP(int, symbol, V3)(Context * context, Byte * out, int* out_bytes) { \
    return final(Way::direction, context, out, out_bytes, CALLER,               \
                 [=](const Libcrypto& real, Byte* to, int* count) {             \
                   return real.member(context, to, count);                      \
                 });                                                            \
  }
FINAL(EVP_EncryptFinal_ex, encrypt_final_ex, sealing)
FINAL(EVP_DecryptFinal_ex, decrypt_final_ex, opening)
FINAL(EVP_CipherFinal_ex, cipher_final_ex, either)
FINAL(EVP_EncryptFinal, encrypt_final, sealing)
FINAL(EVP_DecryptFinal, decrypt_final, opening)
FINAL(EVP_CipherFinal, cipher_final, either)

// The end, and then an init with nothing.
#define ENVELOPE_FINAL(symbol, whole, end, again, direction)                    \
  SEALANE_EVP(int, symbol, V3)(Context * context, Byte * out, int* out_bytes) { \
    const void* const caller = CALLER;                                          \
    if (const Call call(context, caller); !call.followed) {                     \
      return call.libcrypto->whole(context, out, out_bytes);                    \
    }                                                                           \
    const int ended = final(Way::direction, context, out, out_bytes, caller,    \
                            [=](const Libcrypto& real, Byte* to, int* count) {  \
                              return real.end(context, to, count);              \
                            });                                                 \
    if (ended != 1) return ended;                                               \
    return init(context, {}, caller, [=](const Libcrypto& real) {               \
      return real.again(context, nullptr, nullptr, nullptr, nullptr);           \
    });                                                                         \
  }
ENVELOPE_FINAL(EVP_SealFinal, seal_final, encrypt_final_ex, encrypt_init_ex, sealing)
ENVELOPE_FINAL(EVP_OpenFinal, open_final, decrypt_final_ex, decrypt_init_ex, opening)

SEALANE_EVP(int, EVP_Cipher, V3)(Context* context, Byte* out, const Byte* in, unsigned bytes) {
  return cipher(context, out, in, bytes, CALLER);
}
// What libcrypto is asked, or we are for it.
#define ASK(symbol, parameters, member, arguments, answer)          \
  SEALANE_EVP(int, symbol, V3) parameters {                         \
    const Call call(context, CALLER);                               \
    if (!call.followed) return call.libcrypto->member arguments;    \
    return guarded(call, 0, [&] { return call.followed->answer; }); \
  }
ASK(EVP_CIPHER_CTX_ctrl, (Context * context, int type, int size, void* data), ctrl,
    (context, type, size, data), control(type, size, data))
ASK(EVP_CIPHER_CTX_get_params, (Context * context, Parameter* list), get_params, (context, list),
    get_parameters(list))
ASK(EVP_CIPHER_CTX_set_params, (Context * context, const Parameter* list), set_params,
    (context, list), set_parameters(list))
ASK(EVP_CIPHER_CTX_get_tag_length, (const Context* context), tag_length, (context), tag_length())
SEALANE_EVP(void, EVP_CIPHER_CTX_free, V3)(Context* context) {
  const Call call(context, CALLER);
  if (!call.nested) forget(context);
  call.libcrypto->free(context);
}
SEALANE_EVP(int, EVP_CIPHER_CTX_reset, V3)(Context* context) {
  const Call call(context, CALLER);
  if (!call.nested) forget(context);
  return call.libcrypto->reset(context);
}
SEALANE_EVP(int, EVP_CIPHER_CTX_copy, V3)(Context* to, const Context* from) {
  return copy(to, from, CALLER);
}
SEALANE_EVP(Context*, EVP_CIPHER_CTX_dup, "OPENSSL_3.1.0")(const Context* from) {
  return duplicate(from, CALLER);
}

namespace sealane::preload {
namespace {

// What is given away: `hook` in front of one libcrypto.
template <auto* hook, size_t libcrypto>
struct Entrance;
template <typename Result, typename... Arguments, Result (*hook)(Arguments...), size_t libcrypto>
struct Entrance<hook, libcrypto> {
  static Result enter(Arguments... arguments) {
    behind = &libcryptos[libcrypto];
    return hook(arguments...);
  }
};

template <auto* hook, size_t... libcrypto>
EvpHook in_front_of_each(const char* name, const char* version,
                         std::index_sequence<libcrypto...> /*all*/) {
  return {name, version, {reinterpret_cast<void*>(&Entrance<hook, libcrypto>::enter)...}};
}

}  // namespace

std::span<const EvpHook> evp_hooks() {
#define ENTRY(member, type, symbol, version) \
  in_front_of_each<&sealane_##symbol>(#symbol, version, std::make_index_sequence<kMaxLibcryptos>()),
  static const EvpHook kHooks[] = {SEALANE_HOOKED_LIBCRYPTO(ENTRY)
                                       SEALANE_HOOKED_NEWER_LIBCRYPTO(ENTRY)};
#undef ENTRY
  static_assert(offsetof(Libcrypto, cipher_of) == std::size(kHooks) * sizeof(void*));
  return kHooks;
}

}  // namespace sealane::preload
