// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// --metrics: what Stats has counted so far, as a file for the textfile collector of Prometheus's
// node exporter. A thread of its own, asleep in between, replaces it whole every few seconds; the
// last one says that the process has ended. docs/watching.md lists every metric, and a test holds
// the list against the file.
//
// A process that is killed leaves its last file behind. One that never used the GPU writes none. A
// file that cannot be written is one line on stderr; the later attempts are silent.
//
// Thread-safe. In the child of a fork there is no thread, and the child is no sink's business.
#pragma once

#include <mutex>
#include <string>

#include "base/time.h"
#include "serve/events.h"
#include "watch/stats.h"

namespace sealane::serve {

// Of the process, on every sample.
struct MetricsOf {
  std::string pid;
  std::string command;
  double started_s = 0;  // Unix time
  unsigned workers = 0;
};

std::string metrics_text(const Stats& stats, const MetricsOf& process, bool running);

// Where a process writes: `pattern` with its number for "%p", or a file of its own if that is a
// directory.
std::string metrics_path(const std::string& pattern);

class Metrics final : public EventSink {
 public:
  // `stats` and this live until the process is gone.
  Metrics(const Stats& stats, std::string path, MetricsOf process)
      : stats_(stats), path_(std::move(path)), process_(std::move(process)) {}

  void start(Duration every);
  void handle(const Event&) noexcept override {}
  void finish() noexcept override;

 private:
  void keep_writing();
  void write(bool running);  // with the lock held

  const Stats& stats_;
  const std::string path_;
  const MetricsOf process_;
  Duration every_{};
  std::mutex mutex_;
  bool ended_ = false;
  bool complained_ = false;
};

}  // namespace sealane::serve
