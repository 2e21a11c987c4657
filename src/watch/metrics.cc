// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/metrics.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/output_name.h"
#include "base/text.h"
#include "os/thread.h"
#include "watch/output.h"

namespace sealane::serve {

std::string metrics_path(const std::string& pattern) {
  std::string path = output_path(pattern);
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return path;
  if (path.back() != '/') path += '/';
  return concat(path, "sealane-", ::getpid(), ".prom");
}

// Without a thread there is the file at the end.
void Metrics::start(Duration every) {
  every_ = every;
  static_cast<void>(start_thread<&Metrics::keep_writing>("sealane-metrics", this));
}

void Metrics::keep_writing() {
  const int64_t ns = every_.count();
  for (;;) {
    timespec pause{ns / 1'000'000'000, ns % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    write(true);
  }
}

void Metrics::finish() noexcept {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  write(false);
}

void Metrics::write(bool running) {
  if (!stats_.has_seen_anything()) return;
  const int error_number = write_output(path_, metrics_text(stats_, process_, running));
  if (error_number != 0 && !complained_) complain(path_, error_number);
  complained_ = complained_ || error_number != 0;
}

}  // namespace sealane::serve
