// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "attach.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/json_writer.h"
#include "base/text.h"
#include "os/thread.h"
#include "serve/process.h"
#include "watch/attach_page.h"
#include "watch/observer.h"
#include "watch/stats.h"

namespace sealane::preload {
namespace {

using serve::AttachHead;
using serve::Lookup;
using serve::Stats;
using serve::StatsOptions;
using serve::Watchers;

// Counts from the middle of a run: what began before has no time, and is left out.
class CountsFromNow final : public serve::EventSink {
 public:
  explicit CountsFromNow(Stats& stats) : stats_(stats) {}
  void handle(const serve::Event& event) noexcept override {
    if (event.begin == Instant{} && event.end != Instant{}) return;
    stats_.handle(event);
  }
  void finish() noexcept override {}

 private:
  Stats& stats_;
};

// The page and who answers. Never deleted.
class Desk {
 public:
  Desk(uint8_t* page, Watchers watchers, StatsOptions later)
      : page_(page),
        watchers_(watchers),
        later_(std::move(later)),
        since_start_(watchers.stats != nullptr) {}

  // Has somebody asked since? True once per question.
  bool is_rung() {
    if (word(&AttachHead::asked).load(std::memory_order_relaxed) == heard_.load()) return false;
    return !answering_.exchange(true);
  }
  void answer();
  void give_up() { answering_.store(false); }

 private:
  std::atomic_ref<uint32_t> word(uint32_t AttachHead::*which) {
    return std::atomic_ref(reinterpret_cast<AttachHead*>(page_)->*which);
  }
  std::string text();
  void write(uint32_t asked, const std::string& text);

  uint8_t* const page_;
  Watchers watchers_;  // changed by whoever answers
  const StatsOptions later_;
  const bool since_start_;
  std::atomic<uint32_t> heard_{0};
  std::atomic<bool> answering_{false};
};

std::atomic<Desk*> desk{nullptr};

std::string Desk::text() {
  bool began = false;
  if (watchers_.stats == nullptr) {
    auto& stats = *new Stats(later_);
    serve::process().sinks.add(*new CountsFromNow(stats));
    watchers_.stats = &stats;
    began = true;
  }
  JsonWriter json;
  json.begin_object().field("command", printable(program_invocation_short_name, 64));
  json.field("counted_since", since_start_ ? "start" : "attach").field("began", began);
  json.field("summary", watchers_.stats->summary());
  if (watchers_.observer != nullptr) json.field("page", watchers_.observer->page());
  return concat(json.text(), ", \"stats\": ", watchers_.stats->json(), "}");
}

void Desk::answer() {
  const uint32_t asked = word(&AttachHead::asked).load();
  heard_.store(asked);
  try {
    std::string told = text();
    if (told.size() > serve::kAttachAnswerBytesMax) told = R"({"error": "the answer is too long"})";
    write(asked, told);
  } catch (...) {  // out of memory, or a broken invariant: nobody but who asks may notice
  }
  answering_.store(false);
}

void Desk::write(uint32_t asked, const std::string& text) {
  const uint32_t before = word(&AttachHead::sequence).load();
  word(&AttachHead::sequence).store(before | 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::memcpy(page_ + serve::kAttachAnswerAt, text.data(), text.size());
  word(&AttachHead::bytes).store(static_cast<uint32_t>(text.size()));
  word(&AttachHead::answered).store(asked);
  word(&AttachHead::sequence).store((before | 1) + 1);
}

// The descriptor stays open and is never used again: the program may close it, or put another file
// in its place. All its memory is there from the start, so that writing cannot fail, and it can be
// cut by nobody.
uint8_t* make_page() {
  const int file = ::memfd_create(serve::kAttachFile, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return nullptr;
  void* page = MAP_FAILED;
  if (::posix_fallocate(file, 0, serve::kAttachFileBytes) == 0 &&
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    page = ::mmap(nullptr, serve::kAttachFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (page == MAP_FAILED) {
    ::close(file);
    return nullptr;
  }
  ::madvise(page, serve::kAttachFileBytes, MADV_DONTFORK);
  return static_cast<uint8_t*>(page);
}

// The head is whole before its magic is there. Null: not wanted, or there is no such thing here.
uint8_t* open_page(Lookup lookup, const std::string& presence, bool answers) {
  const char* wanted = lookup("SEALANE_ATTACH");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return nullptr;
  uint8_t* const page = make_page();
  if (page == nullptr) return nullptr;
  auto& head = *reinterpret_cast<AttachHead*>(page);
  head.version = AttachHead::kVersion;
  head.pid = ::getpid();
  head.answers = answers ? 1 : 0;
  const size_t length = std::min(presence.size(), head.presence.size() - 1);
  std::copy_n(presence.begin(), length, head.presence.begin());
  std::atomic_thread_fence(std::memory_order_release);
  head.magic = AttachHead::kMagic;
  return page;
}

}  // namespace

void open_to_attach(Lookup lookup, const std::string& presence, Watchers watchers,
                    StatsOptions later) {
  uint8_t* const page = open_page(lookup, presence, true);
  if (page != nullptr) desk.store(new Desk(page, watchers, std::move(later)));
}

void open_to_attach(Lookup lookup, const std::string& presence) {
  open_page(lookup, presence, false);
}

void notice_attach() {
  Desk* const here = desk.load(std::memory_order_acquire);
  if (here == nullptr || !here->is_rung()) return;
  if (!start_thread<&Desk::answer>("sealane-attach", here)) here->give_up();
}

void close_to_attach() { desk.store(nullptr); }

}  // namespace sealane::preload
