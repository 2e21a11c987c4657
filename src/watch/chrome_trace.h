// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --trace: what happened when, as a Chrome trace (https://ui.perfetto.dev opens it). One process of
// the trace is the program, with its threads, our lanes and our workers; one more for each GPU has
// the copies as they travelled, by direction, who leads the predictors for it, and what is in its
// slots. An arrow leads from the call that asked for a copy to the lane that carried it.
//
// Times are device time, as in stats.h. The file grows while the program runs; a program that is
// killed leaves a file without its end, which Perfetto reads.
//
// Thread-safe: one line is made at a time, under a lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "serve/events.h"
#include "watch/actor.h"
#include "watch/output.h"

namespace sealane::serve {

class ChromeTrace final : public EventSink {
 public:
  // `origin` is the trace's time 0: before the first event.
  ChromeTrace(std::string path, Instant origin, double (*dilation)())
      : file_(std::move(path)), origin_(origin), dilation_(dilation) {}

  void handle(const Event& event) noexcept override;
  void finish() noexcept override;

 private:
  // Where a slice is shown.
  struct Track {
    uint32_t process;
    uint32_t thread;
  };
  static constexpr uint32_t kProgram = 1;
  static constexpr uint32_t kFirstGpu = 100;

  void name_thread(const Actor& actor, const Event& event);
  void name_gpu(uint8_t device);
  void slice(const Event& event, Track track, const std::string& name, std::string_view category);
  void arrow(const Event& event, Track track, const char* phase, Instant at);
  void show_on_gpu(const Event& event);
  void show_speculation(const Event& event);
  void metadata(const char* what, Track track, std::string_view name);
  void begin_line();
  void end_line();
  double microseconds(Duration duration) const;

  std::mutex mutex_;
  StreamFile file_;
  const Instant origin_;
  double (*const dilation_)();
  JsonWriter json_;
  bool started_ = false;
  std::vector<Role> named_;  // by thread number
  std::vector<bool> gpus_;   // by ordinal
};

}  // namespace sealane::serve
