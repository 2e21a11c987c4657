// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/recorder.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <vector>

#include "base/text.h"
#include "watch/actor.h"

namespace sealane::serve {
namespace {

constexpr std::string_view kHeader = "sealane-trace 1\n";
constexpr int32_t kNotReady = 600;
constexpr uint64_t kLegacy = 1;
constexpr uint64_t kPerThread = 2;

std::string hex(uint64_t value) {
  char digits[20];
  return concat("0x", std::string_view(digits, std::to_chars(digits, digits + 20, value, 16).ptr));
}

bool is_recorded(EventKind kind) {
  return kind == EventKind::copy || kind == EventKind::call || kind == EventKind::wait;
}

// Ranges of `live` (address to something with a size) that overlap [address, address + bytes).
template <typename Live, typename BytesOf>
std::vector<uint64_t> overlapping(const Live& live, uint64_t address, uint64_t bytes,
                                  BytesOf bytes_of) {
  std::vector<uint64_t> found;
  auto entry = live.upper_bound(address);
  if (entry != live.begin() && address - std::prev(entry)->first < bytes_of(*std::prev(entry))) {
    --entry;
  }
  for (; entry != live.end() && (entry->first < address || entry->first - address < bytes);
       ++entry) {
    found.push_back(entry->first);
  }
  return found;
}

}  // namespace

void Recorder::handle(const Event& event) noexcept {
  if (!is_recorded(event.kind)) return;
  const uint32_t number = actor_of(event).number;
  const std::lock_guard lock(mutex_);
  if (event.kind == EventKind::call && event.call == Call::launch_time) {
    launch_took(event.id, event.bytes);
    return;
  }
  if (event.code != 0 && event.code != kNotReady) return;
  if (!started_) file_.append(kHeader);
  started_ = true;
  thread_ = &threads_[number];
  if (thread_->number == 0) thread_->number = static_cast<uint32_t>(threads_.size());
  record(event);
  release();
  thread_->returned = options_.clock->now();
}

void Recorder::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (!started_) return;
  for (Line& waiting : held_) {
    untimed_launches_ += waiting.launch != 0 ? 1 : 0;
    waiting.launch = 0;
  }
  release();
  sources_.stop();
  file_.finish(untimed_launches_ == 0
                   ? std::string()
                   : concat("# the run times of ", untimed_launches_, " launches are unknown\n"));
}

void Recorder::record(const Event& event) {
  switch (event.kind) {
    case EventKind::copy:
      copy(event);
      break;
    case EventKind::wait:
      wait(event);
      break;
    default:
      call(event);
  }
}

void Recorder::copy(const Event& event) {
  const std::string on = stream(event);
  const bool in = event.direction == Direction::to_device;
  if (in) note_write(event);
  line(concat("copy ", in ? "h2d " : "d2h ", on, " ", hex(in ? event.device_address : event.host),
              " ", hex(in ? event.host : event.device_address), " ", event.bytes,
              event.pinned ? " pinned" : " pageable", event.asynchronous ? " async" : " sync"),
       event);
}

// What changed since the last copy was changed by the program; when, nobody knows.
void Recorder::note_write(const Event& event) {
  if (!options_.host_writes) return;
  const Range source{event.host, event.bytes};
  if (sources_.copied(source) != SourceWatch::Answer::changed) return;
  implied(concat("write ", hex(source.address), " ", source.bytes));
}

void Recorder::wait(const Event& event) {
  switch (event.call) {
    case Call::sync_context:
      return line(concat("sync context ", context(event.context)), event);
    case Call::sync_stream:
      return line(concat("sync stream ", stream(event)), event);
    case Call::sync_event:
      return line(concat("sync event ", event_object(event.object)), event);
    default:
      return;
  }
}

void Recorder::call(const Event& event) {
  switch (event.call) {
    case Call::allocate_device:
    case Call::free_device:
    case Call::allocate_host:
    case Call::free_host:
      return memory(event);
    case Call::record_event:
    case Call::wait_event:
    case Call::query_event:
    case Call::create_event:
    case Call::destroy_event:
      return event_call(event);
    default:
      return stream_call(event);
  }
}

void Recorder::stream_call(const Event& event) {
  switch (event.call) {
    case Call::launch: {
      const std::string on = stream(event);
      held_.push_back({concat("launch ", on, " "), times(event), event.id});
      if (event.id == 0) ++untimed_launches_;
      return;
    }
    case Call::device_copy:
      return line(concat("copy d2d ", stream(event), " ", hex(event.device_address), " ",
                         hex(event.object), " ", event.bytes),
                  event);
    case Call::query_stream:
      return line(concat("query stream ", stream(event)), event);
    case Call::create_context:
      (void)context(event.context);
      return;
    case Call::destroy_context:
      return destroy_context(event);
    case Call::create_stream:
      streams_.erase({event.stream, 0});  // the handle of one that is gone, used again
      (void)stream(event);
      return;
    case Call::destroy_stream: {
      const auto gone = streams_.find({event.stream, 0});
      if (gone == streams_.end()) return;
      line(concat("destroy stream s", gone->second.number), event);
      streams_.erase(gone);
      return;
    }
    default:
      return;
  }
}

void Recorder::event_call(const Event& event) {
  switch (event.call) {
    case Call::record_event: {
      const std::string recorded = event_object(event.object);
      return line(concat("record ", recorded, " ", stream(event)), event);
    }
    case Call::wait_event: {
      const std::string awaited = event_object(event.object);
      return line(concat("wait ", stream(event), " ", awaited), event);
    }
    case Call::query_event:
      return line(concat("query event ", event_object(event.object)), event);
    case Call::create_event:
      events_.erase(event.object);
      (void)event_object(event.object);
      return;
    case Call::destroy_event: {
      const auto gone = events_.find(event.object);
      if (gone == events_.end()) return;
      line(concat("destroy event e", gone->second), event);
      events_.erase(gone);
      return;
    }
    default:
      return;
  }
}

void Recorder::memory(const Event& event) {
  switch (event.call) {
    case Call::allocate_device:
      return allocate_device(event);
    case Call::free_device:
      if (device_.erase(event.device_address) > 0) {
        line(concat("free device ", hex(event.device_address)), event);
      }
      return;
    case Call::allocate_host:
      return allocate_host(event);
    case Call::free_host: {
      const auto gone = host_.find(event.host);
      if (gone == host_.end()) return;
      sources_.forget({event.host, gone->second});
      host_.erase(gone);
      return line(concat("free host ", hex(event.host)), event);
    }
    default:
      return;
  }
}

void Recorder::allocate_device(const Event& event) {
  if (event.bytes == 0) return;
  for (const uint64_t stale : overlapping(device_, event.device_address, event.bytes,
                                          [](const auto& e) { return e.second.bytes; })) {
    implied(concat("free device ", hex(stale)));
    device_.erase(stale);
  }
  const std::string in = context(event.context);
  device_[event.device_address] = {event.bytes, event.context};
  line(concat("alloc device ", in, " ", hex(event.device_address), " ", event.bytes), event);
}

void Recorder::allocate_host(const Event& event) {
  if (event.bytes == 0) return;
  for (const uint64_t stale :
       overlapping(host_, event.host, event.bytes, [](const auto& e) { return e.second; })) {
    implied(concat("free host ", hex(stale)));
    host_.erase(stale);
  }
  host_[event.host] = event.bytes;
  line(concat("alloc host ", event.pinned ? "pinned " : "pageable ", hex(event.host), " ",
              event.bytes),
       event);
}

// The context's streams and memory go with it.
void Recorder::destroy_context(const Event& event) {
  const auto gone = contexts_.find(event.context);
  if (gone == contexts_.end()) return;
  for (auto block = device_.begin(); block != device_.end();) {
    if (block->second.context != event.context) {
      ++block;
      continue;
    }
    implied(concat("free device ", hex(block->first)));
    block = device_.erase(block);
  }
  line(concat("destroy context c", gone->second), event);
  contexts_.erase(gone);
  std::erase_if(streams_, [&](const auto& s) { return s.second.context == event.context; });
}

void Recorder::launch_took(uint64_t launch, uint64_t ns) {
  const auto waiting = std::find_if(held_.begin(), held_.end(),
                                    [&](const Line& one) { return one.launch == launch; });
  if (launch == 0 || waiting == held_.end()) return;
  // Beyond all measure: a driver's clock that said "before it began".
  const bool possible = ns <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!possible) ++untimed_launches_;
  waiting->text += concat(possible ? ns : 0);
  waiting->launch = 0;
  waiting->text += waiting->rest;
  waiting->rest.clear();
  release();
}

// ---- Objects ----

std::string Recorder::context(Handle handle) {
  uint32_t& number = contexts_[handle];
  if (number == 0) {
    number = ++contexts_made_;
    implied(concat("create context c", number));
  }
  return concat("c", number);
}

std::string Recorder::stream(const Event& event) {
  const bool legacy = event.stream == 0 || event.stream == kLegacy;
  const bool per_thread = event.stream == kPerThread;
  const Handle of = legacy ? event.context : per_thread ? event.context ^ thread_->number : 0;
  Stream& known = streams_[{legacy ? kLegacy : event.stream, of}];
  if (known.number == 0) {
    const std::string in = context(event.context);
    known = {++streams_made_, event.context};
    const bool free = event.call == Call::create_stream && event.asynchronous;
    implied(concat("create stream s", known.number, " ", in,
                   legacy ? " legacy"
                   : free ? " nonblocking"
                          : " blocking"));
  }
  return concat("s", known.number);
}

std::string Recorder::event_object(Handle handle) {
  uint32_t& number = events_[handle];
  if (number == 0) {
    number = ++events_made_;
    implied(concat("create event e", number));
  }
  return concat("e", number);
}

// ---- Lines ----

void Recorder::line(std::string text, const Event& event) {
  held_.push_back({std::move(text) + times(event), {}, 0});
}

// A line the program did not ask for at this moment: it has no time of its own.
void Recorder::implied(const std::string& text) {
  held_.push_back({concat(text, " t", thread_->number, "\n"), {}, 0});
}

std::string Recorder::times(const Event& event) {
  std::string out = concat(" t", thread_->number);
  const Duration think = event.begin - thread_->returned.value_or(event.begin);
  if (think.count() > 0) out += concat(" +", nanoseconds(think));
  thread_->latest_ns = std::max(thread_->latest_ns, nanoseconds(event.begin.time_since_epoch()));
  return out + concat(" @", thread_->latest_ns, "\n");
}

// Writes every line that waits for nothing, and the oldest ones if too many wait.
void Recorder::release() {
  while (!held_.empty()) {
    Line& first = held_.front();
    if (first.launch != 0 && held_.size() <= kLinesHeldMax) return;
    if (first.launch != 0) ++untimed_launches_;
    file_.append(first.rest.empty() ? first.text : concat(first.text, "0", first.rest));
    held_.pop_front();
  }
}

uint64_t Recorder::nanoseconds(Duration duration) const {
  const double dilation = options_.dilation != nullptr ? options_.dilation() : 0;
  const double ns = static_cast<double>(duration.count()) / (dilation > 0 ? dilation : 1);
  return static_cast<uint64_t>(std::max(0.0, ns));
}

}  // namespace sealane::serve
