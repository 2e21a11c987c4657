// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Is the engine chosen for this CPU one that works, and does a name that is none get a clear
// answer?

#include "seal/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "seal/engine_check.h"
#include "seal/engines_for_tests.h"

namespace sealane {
namespace {

TEST(Engine, ChosenOnePassesItsSelfTest) {
  const auto engine = chosen_engine();
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_TRUE(self_test(**engine, openssl_engine()).ok());
}

TEST(Engine, EveryCodePathPassesTheSelfTest) {
  for (const Engine* engine : engines_under_test()) {
    EXPECT_TRUE(self_test(*engine, openssl_engine()).ok()) << engine->version();
  }
}

TEST(Engine, UnknownNameListsThoseThereAre) {
  const auto engine = find_engine("rot13");
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::usage);
  EXPECT_NE(engine.error().message.find("openssl"), std::string::npos);
}

// An engine with one fault each: the self-test is what stands between it and people's data.
class FaultyAead final : public Aead {
 public:
  enum class Fault { wrong_ciphertext, accepts_everything };
  FaultyAead(std::unique_ptr<Aead> real, Fault fault) : real_(std::move(real)), fault_(fault) {}

 private:
  void do_seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
               MutableBytes ciphertext, Tag& tag) const override {
    real_->seal(iv, additional, plaintext, ciphertext, tag);
    // Right for short inputs, wrong in the wide code path: a known answer alone would not see it.
    if (fault_ == Fault::wrong_ciphertext && ciphertext.size() > 1024) ciphertext[1024] ^= 1;
  }
  bool do_open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
               MutableBytes plaintext) const override {
    const bool genuine = real_->open(iv, additional, ciphertext, tag, plaintext).ok();
    return genuine || fault_ == Fault::accepts_everything;
  }

  std::unique_ptr<Aead> real_;
  Fault fault_;
};

class FaultyEngine final : public Engine {
 public:
  explicit FaultyEngine(FaultyAead::Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "faulty"; }
  std::string version() const override { return "faulty"; }
  Status available() const override { return {}; }
  std::unique_ptr<Aead> make(const Key& key) const override {
    return std::make_unique<FaultyAead>(openssl_engine().make(key), fault_);
  }

 private:
  FaultyAead::Fault fault_;
};

TEST(Engine, SelfTestRefusesAnEngineThatSealsWrongOrOpensAnything) {
  for (const auto fault :
       {FaultyAead::Fault::wrong_ciphertext, FaultyAead::Fault::accepts_everything}) {
    const Status status = self_test(FaultyEngine(fault), openssl_engine());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::crypto);
  }
}

// Time that passes with records alone: each takes its time, and twice that for as long as the core
// wakes up.
class WakingClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void pass(Duration took) { now_ += ++records_ <= 8 ? 2 * took : took; }

 private:
  Instant now_{};
  int records_ = 0;
};

class TimedEngine final : public Engine {
 public:
  TimedEngine(WakingClock& clock, Duration took) : clock_(clock), took_(took) {}
  std::string_view name() const override { return "timed"; }
  std::string version() const override { return "timed"; }
  Status available() const override { return {}; }
  std::unique_ptr<Aead> make(const Key&) const override {
    return std::make_unique<TimedAead>(clock_, took_);
  }

 private:
  class TimedAead final : public Aead {
   public:
    TimedAead(WakingClock& clock, Duration took) : clock_(clock), took_(took) {}

   private:
    void do_seal(const Iv&, Bytes, std::span<const Bytes>, MutableBytes, Tag&) const override {
      clock_.pass(took_);
    }
    bool do_open(const Iv&, Bytes, std::span<const Bytes>, const Tag&,
                 MutableBytes) const override {
      return false;
    }
    WakingClock& clock_;
    Duration took_;
  };
  WakingClock& clock_;
  Duration took_;
};

TEST(Engine, TheOneMeasuredFirstDoesNotPayForWakingTheCore) {
  WakingClock clock;
  const TimedEngine first(clock, Duration(5000));
  const TimedEngine slow(clock, Duration(50'000));
  const TimedEngine last(clock, Duration(5000));
  const Engine* const engines[] = {&first, &slow, &last};
  const auto rates = measure_rates(engines, clock);
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_EQ(rates[0].gb_per_s, rates[2].gb_per_s);
  EXPECT_LT(rates[1].gb_per_s, rates[0].gb_per_s);
  EXPECT_EQ(fastest(rates), &first);
}

}  // namespace
}  // namespace sealane
