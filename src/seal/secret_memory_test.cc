// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Where keys live: can it be swapped, dumped, inherited, or outlive its use?

#include "seal/secret_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/registers_for_tests.h"
#include "seal/delivery.h"
#include "seal/engine.h"
#include "seal/find_in_memory_for_tests.h"
#include "seal/key.h"
#include "seal/native.h"
#include "seal/split_gcm.h"

namespace sealane {
namespace {

using Block = std::array<uint8_t, 100>;

// fork() with its handlers, or the bare system call without.
template <typename Body>
int in_child(bool bare, Body body) {
  const auto child = bare ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// The sanitizers put a mlock of their own, which does nothing, in its place.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLockIsReal = false;
#else
constexpr bool kLockIsReal = true;
#endif

TEST(SecretMemory, IsLockedAndLeftOutOfDumpsAndChildren) {
  const Secret<Block> secret;
  const auto flags = flags_of(secret->data());
  EXPECT_TRUE(flags.contains("dd"));
  EXPECT_TRUE(flags.contains("wf"));
  EXPECT_EQ(flags.contains("lo"), kLockIsReal && SecretMemory::state().locked);
}

TEST(SecretMemory, IsEmptyInEveryChild) {
  Secret<Block> secret;
  secret->fill(7);
  const Bytes memory = *secret;
  for (const bool bare : {false, true}) {
    EXPECT_EQ(in_child(bare, [&] { return !secret.alive() && all_zero(memory) ? 0 : 1; }), 0);
  }
  EXPECT_TRUE(secret.alive());
  EXPECT_EQ((*secret)[0], 7);
}

TEST(SecretMemory, OfAChildIsItsOwnAndLockedAgain) {
  Secret<Block> before;
  const bool locked = kLockIsReal && SecretMemory::state().locked;
  for (const bool bare : {false, true}) {
    EXPECT_EQ(in_child(bare,
                       [&] {
                         Secret<Block> own;
                         own->fill(9);
                         before = Secret<Block>();  // drops what it never had
                         const bool kept = flags_of(own->data()).contains("lo") || !locked;
                         return own.alive() && (*own)[99] == 9 && kept ? 0 : 1;
                       }),
              0);
  }
}

TEST(SecretMemory, IsWipedWithTheLastReferenceAndUsedAgain) {
  std::optional<Secret<Block>> first;
  first.emplace();
  (*first)->fill(7);
  const Bytes memory = **first;
  std::optional<Secret<Block>> second = first;
  first.reset();
  EXPECT_TRUE(second->alive());
  EXPECT_EQ(memory[0], 7);
  second.reset();
  EXPECT_TRUE(all_zero(memory));
  const uint64_t mapped = SecretMemory::state().mapped_bytes;
  for (int i = 0; i < 10'000; ++i) const Secret<Block> again;
  EXPECT_EQ(SecretMemory::state().mapped_bytes, mapped);
}

TEST(SecretMemory, AndNoOtherPlaceHoldsAKeyInUse) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  SystemRandom random;
  const Key key = Key::random(random);
  Needle needle(key.secret());
  const auto engine = chosen_engine();
  ASSERT_TRUE(engine.ok());
  if ((*engine)->name() == "openssl") GTEST_SKIP() << "OpenSSL schedules in its own memory";
  const auto aead = (*engine)->make(key);
  const auto split = SplitGcm::make(key.secret());
  std::array<uint8_t, 1024> data{};
  Tag tag;
  aead->seal(Iv{}, {}, data, data, tag);
  EXPECT_GT(places_among_secrets(needle), 0) << "the search does not find what is there";
}

#ifdef __x86_64__
// Two rounds can be turned back: who finds this and knows the counter has the key.
[[gnu::target("aes")]] Needle state_after_two_rounds(const GcmKey& key, const GcmBlock& block) {
  const auto at = [](const GcmBlock& from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data()));
  };
  __m128i state = _mm_xor_si128(at(block), at(key.round_keys[0]));
  state = _mm_aesenc_si128(state, at(key.round_keys[1]));
  state = _mm_aesenc_si128(state, at(key.round_keys[2]));
  GcmBlock bytes;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes.data()), state);
  Needle needle(bytes);
  wipe(bytes);
  return needle;
}

// Far down the stack, where nothing that searches it overwrites what is left; at this address.
template <typename Act>
[[gnu::noinline]] uintptr_t deep_down(Act act) {
  wipe_stack<384 << 10>();
  std::array<uint8_t, 256 << 10> above;
  wipe(above);
  act();
  auto place = reinterpret_cast<uintptr_t>(above.data());
  asm("" : "+r"(place));  // a number from here on, which clang lets a function return
  return place;
}

GcmBlock encrypted(const GcmWidth& width, const GcmKey& key, const GcmBlock& block) {
  GcmBlock made;
  width.encrypt(key, block, made);
  return made;
}
Needle take_needle(GcmBlock secret) {
  Needle needle(secret);
  wipe(secret);
  return needle;
}
Needle take_needle(GcmHash secret) {
  Needle needle({reinterpret_cast<const uint8_t*>(&secret), sizeof secret});
  wipe({reinterpret_cast<uint8_t*>(&secret), sizeof secret});
  return needle;
}

TEST(SecretMemory, AMessageLeavesNoStateOfTheCipherBehind) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  SystemRandom random;
  const Key key = Key::random(random);
  const Iv iv = {1, 2, 3};
  const std::array<uint8_t, 48> additional{9};
  std::vector<uint8_t> data(40 << 10);
  for (const GcmWidth* width : native_widths()) {
    Secret<GcmKey> scheduled;
    width->schedule(*scheduled, key.secret());
    const GcmKey& all = *scheduled;
    // Each of the last four is the hash's key, or tells it.
    Needle needles[] = {state_after_two_rounds(all, gcm_counter(iv, 256)),
                        take_needle(all.round_keys[7]),
                        take_needle(all.powers[20]),
                        take_needle(all.powers[GcmKey::kPowers - 1]),
                        take_needle(encrypted(*width, all, {})),
                        take_needle(encrypted(*width, all, gcm_counter(iv, 1))),
                        take_needle(width->hash(all, {}, additional))};
    // Behind the 256th counter with a table and without, within the last bytes, and few.
    for (const size_t bytes : {size_t{40} << 10, size_t{6} << 10, size_t{4100}, size_t{100}}) {
      for (const auto whole : {width->seal_whole, width->open_whole}) {
        if (whole == width->open_whole && bytes != 4100) continue;  // a search takes its time
        GcmPart part = {.iv = iv};
        part.in = data.data();
        part.out = data.data();
        part.bytes = bytes;
        deep_down([&] { whole(all, part, additional); });
        for (Needle& needle : needles) {
          places_among_secrets(needle);
          if (HasFailure()) {
            FAIL() << "secret " << &needle - needles << ", " << bytes << " bytes, "
                   << (whole == width->seal_whole ? "sealed" : "opened");
          }
        }
      }
    }
  }
}

// Words that only who has the key can know: what the cipher and the hash go through on their way
// to a message. Kept inverted, so that they are not found among themselves.
class WordsOnTheWay {
 public:
  WordsOnTheWay(const GcmWidth& width, const GcmKey& key, const Iv& iv, Bytes additional,
                Bytes ciphertext) {
    const uint64_t blocks = (ciphertext.size() + kGcmBlockBytes - 1) / kGcmBlockBytes;
    for (uint64_t count = 1; count < blocks + 2; ++count) add_states(key, gcm_counter(iv, count));
    GcmHash hash = width.hash(key, {}, additional);
    add(&hash, sizeof hash);
    for (size_t at = 0; at < ciphertext.size(); at += kGcmBlockBytes) {
      hash = width.hash(key, hash,
                        ciphertext.subspan(at, std::min(kGcmBlockBytes, ciphertext.size() - at)));
      add(&hash, sizeof hash);
    }
    Tag sum = width.tag(key, iv, hash, additional.size(), ciphertext.size());
    const GcmBlock mask = encrypted(width, key, gcm_counter(iv, 1));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= mask[i];
    add(sum.data(), sum.size());
    std::ranges::reverse(sum);
    add(sum.data(), sum.size());
  }

  // How many of them are on the stack below this place.
  size_t below(uintptr_t place) const {
    std::vector<uint64_t> found(8 << 10);
    const size_t bytes = found.size() * sizeof found[0];
    const iovec to = {found.data(), bytes};
    const iovec from = {reinterpret_cast<void*>(place - bytes), bytes};
    EXPECT_EQ(process_vm_readv(getpid(), &to, 1, &from, 1, 0), static_cast<ssize_t>(bytes));
    return static_cast<size_t>(
        std::ranges::count_if(found, [&](uint64_t word) { return inverted_.contains(~word); }));
  }

 private:
  void add(const void* secret, size_t bytes) {
    std::array<uint64_t, 2> words;
    ASSERT_EQ(bytes, sizeof words);
    std::memcpy(words.data(), secret, bytes);
    for (const uint64_t word : words) inverted_.insert(~word);
  }
  [[gnu::target("aes")]] void add_states(const GcmKey& key, const GcmBlock& block) {
    const auto at = [](const GcmBlock& from) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data()));
    };
    __m128i state = _mm_xor_si128(at(block), at(key.round_keys[0]));
    add(&state, sizeof state);
    for (size_t round = 1; round < GcmKey::kRounds; ++round) {
      state = _mm_aesenc_si128(state, at(key.round_keys[round]));
      add(&state, sizeof state);
    }
    state = _mm_aesenclast_si128(state, at(key.round_keys[GcmKey::kRounds]));
    add(&state, sizeof state);
  }

  std::unordered_set<uint64_t> inverted_;
};

TEST(SecretMemory, AMessageLeavesNothingOfItsWayOnTheStack) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's frames are not those that ship";
  SystemRandom random;
  const Key key = Key::random(random);
  const Iv iv = {1, 2, 3};
  const std::array<uint8_t, 48> additional{9};
  std::vector<uint8_t> data(20'011, 5);
  std::vector<uint8_t> sealed(data.size());
  for (const GcmWidth* width : native_widths()) {
    Secret<GcmKey> scheduled;
    const GcmKey& all = *scheduled;
    width->schedule(*scheduled, key.secret());
    const SplitGcm split(*width, key.secret());
    const std::unique_ptr<Aead> aead = make_native_aead(*width, key);
    for (const size_t bytes : {size_t{5}, size_t{512}, size_t{700}, size_t{4096}, data.size()}) {
      GcmPart part = {.iv = iv};
      part.in = data.data();
      part.out = sealed.data();
      part.bytes = bytes;
      width->seal_whole(all, part, additional);
      const WordsOnTheWay words(*width, all, iv, additional, Bytes(sealed).first(bytes));
      const auto expect_nothing_of = [&](const char* what, auto act) {
        EXPECT_EQ(words.below(deep_down(act)), 0u) << what << ", " << bytes << " bytes";
      };
      expect_nothing_of("seal", [&] { width->seal_whole(all, part, additional); });
      expect_nothing_of("hash", [&] { part.so_far = width->hash(all, {}, additional); });
      expect_nothing_of("seal part", [&] { width->seal(all, part); });
      part.in = sealed.data();
      part.out = data.data();
      expect_nothing_of("open", [&] { width->open_whole(all, part, additional); });
      GcmHash hash;
      expect_nothing_of("open part", [&] { hash = width->open(all, part); });
      expect_nothing_of("tag", [&] { width->tag(all, iv, hash, additional.size(), bytes); });
      expect_nothing_of("join", [&] { split.join(hash, part.so_far, 5); });
      Tag tag;
      const size_t half = bytes / 2;
      const Bytes plain[] = {Bytes(data).first(half), Bytes(data).subspan(half, bytes - half)};
      const Bytes cipher[] = {Bytes(sealed).first(half), Bytes(sealed).subspan(half, bytes - half)};
      expect_nothing_of("seal pieces", [&] {
        aead->seal(iv, additional, plain, MutableBytes(sealed).first(bytes), tag);
      });
      // With more in the loop it has less room in registers.
      const size_t floats = bytes / sizeof(float) * sizeof(float);
      std::vector<uint8_t> sums(floats);
      std::vector<uint8_t> sealed_sums(floats);
      Delivery sum = in_place(Bytes(data).first(floats));
      sum.second = sum.first;
      sum.type = ElementType::float32;
      sum.op = ReduceOperator::sum;
      sum.to = sums;
      aead->seal(iv, additional, sum, sealed_sums, tag);
      const WordsOnTheWay of_sums(*width, all, iv, additional, sealed_sums);
      EXPECT_EQ(
          of_sums.below(deep_down([&] { aead->seal(iv, additional, sum, sealed_sums, tag); })), 0u)
          << "seal sums, " << bytes << " bytes";
      std::vector<uint8_t> opened(floats);
      std::vector<uint8_t> copied(data.size());
      for (const bool copies : {false, true}) {
        Delivery beside = sum;
        if (copies) {
          beside = in_place(data);
          beside.to = copied;
        }
        EXPECT_EQ(of_sums.below(deep_down([&] {
          EXPECT_TRUE(aead->open(iv, additional, sealed_sums, tag, opened, beside).ok());
        })),
                  0u)
            << "open beside, " << bytes << " bytes";
      }
      aead->seal(iv, additional, plain, MutableBytes(sealed).first(bytes), tag);
      opened.resize(bytes);
      expect_nothing_of("open pieces",
                        [&] { EXPECT_TRUE(aead->open(iv, additional, cipher, tag, opened).ok()); });
    }
  }
}

// Registers are not memory until somebody saves them: nothing of a key or a message is in them.
TEST(SecretMemory, NothingIsLeftInVectorRegisters) {
  SystemRandom random;
  const Key key = Key::random(random);
  const Iv iv = {1, 2, 3};
  const std::array<uint8_t, 48> additional{9};
  std::vector<uint8_t> data(20'011, 5);
  const auto read = VectorRegisters::way_to_read();
  VectorRegisters left;
  const auto expect_nothing = [&](const char* what) {
    EXPECT_EQ(left.used(), 0u) << what;
    clear_vector_registers();  // of libc's, which a narrow loop does not touch
  };
  for (const GcmWidth* width : native_widths()) {
    Secret<GcmKey> scheduled;
    GcmKey& all = *scheduled;
    const auto secret = key.secret();
    clear_vector_registers();
    width->schedule(all, secret);
    (left.*read)();
    expect_nothing("schedule");
    GcmBlock mask;
    width->encrypt(all, {}, mask);
    (left.*read)();
    expect_nothing("encrypt");
    wipe(mask);
    width->hash(all, {}, additional);
    (left.*read)();
    expect_nothing("hash");
    const SplitGcm split(*width, secret);
    (left.*read)();
    expect_nothing("split");
    split.join({1, 2}, {3, 4}, 5);
    (left.*read)();
    expect_nothing("join");
    for (const size_t bytes : {size_t{0}, size_t{5}, size_t{512}, size_t{700}, data.size()}) {
      GcmPart part = {.iv = iv};
      part.in = data.data();
      part.out = data.data();
      part.bytes = bytes;
      for (const auto some : {width->seal, width->open}) {
        some(all, part);
        (left.*read)();
        expect_nothing("part");
      }
      for (const auto whole : {width->seal_whole, width->open_whole}) {
        const Tag tag = whole(all, part, additional);
        (left.*read)();
        expect_nothing("message");
        EXPECT_NE(tag, Tag{});
      }
    }
  }
}
#endif

}  // namespace
}  // namespace sealane
