// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Another process's runtime, asked for its figures (watch/attach_page.h). What comes
// from there may be anything: it is read by pread into our own memory, never mapped, and parsed
// there.
//
// Not synchronised.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"
#include "watch/attach_page.h"

namespace sealane::cli {

class Attached {
 public:
  // Errors say why not: no such process, not allowed, no Sealane in it, no GPU used yet.
  static Result<Attached> find(pid_t pid);

  bool answers() const { return head_.answers != 0; }
  std::string presence() const;  // what is on in it; may hold any character

  // An object with "command", "counted_since", "began", "summary", "stats" and, if it observes,
  // "page". A process answers when it next calls the GPU's driver.
  Result<nlohmann::json> ask(std::chrono::milliseconds patience);

 private:
  Attached(pid_t pid, Descriptor process, Descriptor file, const serve::AttachHead& head)
      : pid_(pid), process_(std::move(process)), file_(std::move(file)), head_(head) {}
  bool has_ended() const;
  Result<std::string> read_answer(uint32_t asked);  // empty: not there yet

  pid_t pid_;
  Descriptor process_;  // a pidfd
  Descriptor file_;
  serve::AttachHead head_;
};

}  // namespace sealane::cli
