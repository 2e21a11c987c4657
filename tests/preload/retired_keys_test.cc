// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's keys die with their use, in a program: a driver gives eight contexts a key each,
// lets them seal, and gives some another key, frees some and empties some. A while later none of
// the old keys is anywhere in the process, whoever had copied it, and whether the driver seals on
// or not. (A schedule begins with the key itself.)

#include <cuda.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <thread>
#include <vector>

#include "base/random.h"
#include "seal/find_in_memory_for_tests.h"

extern "C" {  // rekeyed_driver.c
EVP_CIPHER_CTX* rekeyed_new();
void rekeyed_empty(EVP_CIPHER_CTX* context);
void rekeyed_free(EVP_CIPHER_CTX* context);
int rekeyed_begin(EVP_CIPHER_CTX* context, const unsigned char* key, const unsigned char* iv);
int rekeyed_seal(EVP_CIPHER_CTX* context, unsigned char* text, int bytes, unsigned char* tag);
}

namespace sealane {
namespace {

constexpr auto kLimit = std::chrono::minutes(1);
constexpr auto kPause = std::chrono::milliseconds(200);
constexpr size_t kLarge = 400000;  // workers have parts of it
constexpr size_t kSmall = 100;

class Context {
 public:
  ~Context() { rekeyed_free(context_); }
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // A key that nobody has but the context.
  [[gnu::noinline]] Needle take_key() {
    std::array<uint8_t, 32> key;
    SystemRandom().fill(key);
    begin(key.data());
    Needle needle(key);
    wipe(key);
    return needle;
  }
  void begin(const uint8_t* key) {
    const auto number = static_cast<uint8_t>(++messages_);
    const std::array<uint8_t, 12> iv = {static_cast<uint8_t>(messages_ >> 8), number};
    EXPECT_EQ(rekeyed_begin(context_, key, iv.data()), 1);
  }
  void seal(size_t bytes) {
    std::vector<uint8_t> text(bytes, 1);
    std::array<uint8_t, 16> tag;
    EXPECT_EQ(rekeyed_seal(context_, text.data(), static_cast<int>(bytes), tag.data()), 1);
  }
  void empty() { rekeyed_empty(context_); }

 private:
  EVP_CIPHER_CTX* context_ = rekeyed_new();
  unsigned messages_ = 0;
};

// The places of the first that is anywhere.
std::string places_of_any(std::vector<Needle>& needles) {
  for (Needle& needle : needles) {
    if (std::string places = needle.places(); !places.empty()) return places;
  }
  return {};
}

// Is one of the places where the runtime has its secrets? A child of a fork has nothing of them.
bool is_among_secrets(const std::string& places) {
  std::istringstream lines(places);
  for (std::string line; std::getline(lines, line);) {
    unsigned long long begin = 0;
    if (std::sscanf(line.c_str(), "%llx-", &begin) != 1) return false;
    if (flags_of(reinterpret_cast<const void*>(begin)).contains("wf")) return true;
  }
  return false;
}

TEST(RetiredKeys, AreNowhereInTheProgram) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  std::vector<Needle> retired;
  Context goes_on;
  {
    std::array<Context, 8> contexts;
    for (Context& context : contexts) {
      retired.push_back(context.take_key());
      context.seal(kLarge);
      context.begin(nullptr);
      context.seal(kSmall);
    }
    EXPECT_TRUE(is_among_secrets(retired.front().places())) << "the runtime has not seen it";
    for (size_t i = 0; i < 3; ++i) retired.push_back(contexts[i].take_key());  // no message of it
    for (size_t i = 3; i < 5; ++i) contexts[i].empty();
  }
  Needle in_use = goes_on.take_key();
  goes_on.seal(kLarge);
  wipe_stack<(256 << 10)>();  // where those were that have returned
  std::string places;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  do {
    std::this_thread::sleep_for(kPause);
    goes_on.begin(nullptr);
    goes_on.seal(kSmall);
    places = places_of_any(retired);
  } while (!places.empty() && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(places, "");
  EXPECT_TRUE(is_among_secrets(in_use.places())) << "the one in use is there";
}

// Nothing of the driver's comes by any more.
TEST(RetiredKeys, AreNowhereInAProgramThatGoesQuiet) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  std::vector<Needle> retired;
  Context stays;
  {
    Context goes;
    retired.push_back(goes.take_key());
    goes.seal(kLarge);
    retired.push_back(stays.take_key());
    stays.seal(kLarge);
    EXPECT_TRUE(is_among_secrets(retired.front().places())) << "the runtime has not seen it";
  }
  Needle in_use = stays.take_key();
  wipe_stack<(256 << 10)>();
  std::string places;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  do {
    std::this_thread::sleep_for(kPause);
    places = places_of_any(retired);
  } while (!places.empty() && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(places, "");
  EXPECT_TRUE(is_among_secrets(in_use.places())) << "the one in use is there";
}

}  // namespace
}  // namespace sealane
