// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --observe: checks, from what happens, everything Sealane assumes about the driver and the program
// (findings.h), lets the predictors run in the shadow, and ends with a page on stderr. It answers
// nothing, copies nothing and calls neither driver nor libcrypto.
//
// How messages find their copy: a message on the thread that asked for the copy carries the copy's
// number; one on another thread is taken for the copy in whose time it was sealed. What is left
// over when the copies are served is the driver's own.
//
// Safe anywhere: of the program's memory it touches nothing; some sources of large copies are
// guarded against writes for a few copies (source_watch.h).
//
// Thread-safe: one lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/lane/iv_follower.h"
#include "core/predict/tournament.h"
#include "serve/events.h"
#include "watch/findings.h"
#include "watch/source_watch.h"

namespace sealane::serve {

struct ObserverOptions {
  StockCosts costs;
  double (*dilation)() = nullptr;  // as in StatsOptions; not null on the emulated GPU
  unsigned workers = 1;
  double (*measure_engine)() = nullptr;  // GB/s of our engine on one core; asked once, at the end
  std::string (*speculation)(unsigned workers) = nullptr;  // Findings::speculation; the same
};

class Observer final : public EventSink {
 public:
  explicit Observer(ObserverOptions options)
      : options_(std::move(options)), predictors_(kPredictLimits), sources_(kSourceLimits) {}

  void handle(const Event& event) noexcept override;
  void finish() noexcept override;

  Findings findings() const;
  std::string page() const { return findings_page(findings(), options_.costs); }
  void write(JsonWriter& json) const { write_findings(json, findings(), options_.costs); }

 private:
  // A message that came by.
  struct Seen {
    Range place;  // of its bytes, as the driver named it
    Instant begin{};
    Instant end{};
    Direction direction{};
    bool own_thread = false;
    double aead_s = 0;
    uint64_t key = 0;
  };
  struct ChannelName {
    uint64_t key;
    uint64_t tail;  // of the IV: channel and mask
    auto operator<=>(const ChannelName&) const = default;
  };
  static constexpr uint64_t kLargeBytes = 64 << 10;  // what is swapped is larger
  static constexpr size_t kStrayMax = 4096;
  static constexpr size_t kCopiesOpenMax = 1024;
  static constexpr size_t kChannelsMax = 1024;
  static constexpr PredictLimits kPredictLimits{.transfers_max = size_t{1} << 15};
  // A sample: what is guarded costs the program a little.
  static constexpr SourceLimits kSourceLimits{.range_bytes_min = kLargeBytes,
                                              .ranges_max = 64,
                                              .bytes_max = uint64_t{1} << 30,
                                              .checks_max = 4};

  void message(const Event& event);
  void keep(uint64_t copy, const Seen& seen);
  void copy(const Event& event);
  void claim(const Event& copy);
  std::vector<Seen> messages_of(const Event& copy);
  void judge(const Event& copy);
  void try_guard(const Event& copy);
  Findings::Way& way(Direction direction);
  double seconds(Duration duration) const;
  double aead_seconds(const Event& message) const;
  bool is_paced() const { return options_.dilation != nullptr && options_.dilation() > 0; }

  const ObserverOptions options_;
  mutable std::mutex mutex_;
  Findings found_;
  Instant first_{};
  Instant last_{};
  std::map<uint64_t, std::vector<Seen>> by_copy_;
  std::deque<Seen> stray_;  // of copies on other threads, or the driver's own
  struct Channel {
    IvFollower follower;
    uint64_t broken = 0;  // IVs that were not their predecessor's neighbour
  };
  std::map<ChannelName, Channel> channels_;
  std::set<uint64_t> keys_;
  // By context and direction: a second key took the place of the first.
  std::map<std::pair<uint64_t, Direction>, std::set<uint64_t>> keys_of_;
  Tournament predictors_;
  SourceWatch sources_;
  bool said_ = false;
};

}  // namespace sealane::serve
