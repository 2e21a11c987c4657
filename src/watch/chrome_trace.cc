// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/chrome_trace.h"

#include "base/figures.h"
#include "watch/stats.h"

namespace sealane::serve {
namespace {

constexpr std::string_view kBegin = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
constexpr std::string_view kEnd = "\n]}\n";

std::string name_of(const Event& event) {
  const bool in = event.direction == Direction::to_device;
  switch (event.kind) {
    case EventKind::copy:
      return concat(in ? "copy to device " : "copy to host ", bytes_text(event.bytes));
    case EventKind::carried:
      return concat(in ? "carry to device " : "carry to host ", bytes_text(event.bytes));
    case EventKind::message:
      if (event.answer == Answer::slot) return concat("hit ", bytes_text(event.bytes));
      return concat(in ? "seal " : "open ", bytes_text(event.bytes));
    case EventKind::sealed:
      return concat(event.asynchronous ? "seal ahead " : "seal ", bytes_text(event.bytes));
    case EventKind::part:
      return concat("part ", bytes_text(event.bytes));
    default:
      return event.text != nullptr ? event.text : "call";
  }
}

std::string_view category_of(EventKind kind) {
  switch (kind) {
    case EventKind::copy:
      return "copy";
    case EventKind::carried:
      return "lane";
    case EventKind::message:
      return "message";
    case EventKind::part:
      return "worker";
    case EventKind::sealed:
      return "ahead";
    case EventKind::wait:
      return "wait";
    default:
      return "call";
  }
}

bool is_slice(const Event& event) {
  switch (event.kind) {
    case EventKind::copy:
    case EventKind::carried:
    case EventKind::message:
    case EventKind::part:
    case EventKind::sealed:
    case EventKind::wait:
      return true;
    case EventKind::call:
      return event.call != Call::launch_time;
    default:
      return false;
  }
}

}  // namespace

void ChromeTrace::handle(const Event& event) noexcept {
  const Actor& actor = actor_of(event);
  const std::lock_guard lock(mutex_);
  const Track track{kProgram, actor.number};
  if (!started_) {
    file_.append(kBegin);
    metadata("process_name", {kProgram, 0}, "program");
  }
  name_thread(actor, event);
  if (is_slice(event)) slice(event, track, name_of(event), category_of(event.kind));
  if (event.kind == EventKind::copy && event.route == Route::carried) {
    arrow(event, track, "s", event.end);
  }
  if (event.kind == EventKind::carried) arrow(event, track, "f", event.begin);
  show_on_gpu(event);
  show_speculation(event);
}

void ChromeTrace::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (started_) file_.finish(kEnd);
}

// The device's own side of a copy: while the driver had it.
void ChromeTrace::show_on_gpu(const Event& event) {
  const bool travels = event.kind == EventKind::carried ||
                       (event.kind == EventKind::copy && event.route != Route::carried);
  if (!travels) return;
  name_gpu(event.device);
  const uint32_t row = event.direction == Direction::to_device ? 1 : 2;
  slice(event, {kFirstGpu + event.device, row}, bytes_text(event.bytes), "bus");
}

// Who leads is an instant on a row of its own, what slots hold a counter.
void ChromeTrace::show_speculation(const Event& event) {
  if (event.kind != EventKind::leader && event.kind != EventKind::slots) return;
  name_gpu(event.device);
  begin_line();
  json_.field("pid", kFirstGpu + event.device).field("tid", 3);
  json_.field("ts", microseconds(event.begin - origin_));
  if (event.kind == EventKind::slots) {
    json_.field("ph", "C").field("name", concat("slots of lane ", event.lane));
    json_.begin_object("args").field("bytes", event.bytes).end_object();
  } else {
    const bool silent = event.text == nullptr || *event.text == '\0';
    json_.field("ph", "i").field("s", "t").field("cat", "ahead");
    json_.field("name",
                concat("lane ", event.lane, ": ", silent ? "nobody" : event.text, " leads"));
  }
  end_line();
}

void ChromeTrace::name_thread(const Actor& actor, const Event& event) {
  if (named_.size() <= actor.number) named_.resize(actor.number + 1, Role::unknown);
  if (named_[actor.number] == actor.role) return;
  named_[actor.number] = actor.role;
  const bool lane = actor.role == Role::lane;
  metadata("thread_name", {kProgram, actor.number},
           lane ? concat("lane ", event.lane, " of GPU ", event.device)
                : concat(to_string(actor.role), " ", actor.number));
}

void ChromeTrace::name_gpu(uint8_t device) {
  if (gpus_.size() <= device) gpus_.resize(size_t{device} + 1, false);
  if (gpus_[device]) return;
  gpus_[device] = true;
  metadata("process_name", {kFirstGpu + device, 0}, concat("GPU ", device));
  metadata("thread_name", {kFirstGpu + device, 1}, "to device");
  metadata("thread_name", {kFirstGpu + device, 2}, "to host");
  metadata("thread_name", {kFirstGpu + device, 3}, "prediction");
}

void ChromeTrace::metadata(const char* what, Track track, std::string_view name) {
  begin_line();
  json_.field("ph", "M").field("name", what).field("pid", track.process).field("tid", track.thread);
  json_.begin_object("args").field("name", name).end_object();
  end_line();
}

void ChromeTrace::slice(const Event& event, Track track, const std::string& name,
                        std::string_view category) {
  begin_line();
  json_.field("ph", "X").field("name", name).field("cat", category);
  json_.field("pid", track.process).field("tid", track.thread);
  json_.field("ts", microseconds(event.begin - origin_))
      .field("dur", microseconds(event.end - event.begin));
  json_.begin_object("args");
  if (event.kind == EventKind::copy) {
    json_.field("route", to_string(event.route));
    json_.field("memory", event.pinned ? "pinned" : "pageable");
    json_.field("call", event.asynchronous ? "async" : "sync");
  }
  if (event.kind == EventKind::carried) json_.field("lane", uint64_t{event.lane});
  if (event.kind == EventKind::message) json_.field("by", to_string(event.answer));
  if (event.id != 0) json_.field("id", event.id);
  if (event.bytes != 0) json_.field("bytes", event.bytes);
  if (event.stream != 0) json_.field("stream", event.stream);
  if (event.code != 0) json_.field("code", event.code);
  json_.end_object();
  end_line();
}

void ChromeTrace::arrow(const Event& event, Track track, const char* phase, Instant at) {
  begin_line();
  json_.field("ph", phase).field("name", "copy").field("cat", "copy").field("id", event.id);
  if (*phase == 'f') json_.field("bp", "e");
  json_.field("pid", track.process)
      .field("tid", track.thread)
      .field("ts", microseconds(at - origin_));
  end_line();
}

void ChromeTrace::begin_line() {
  if (started_) file_.append(",\n");
  started_ = true;
  json_.clear();
  json_.begin_object();
}

void ChromeTrace::end_line() {
  json_.end_object();
  file_.append(json_.text());
}

double ChromeTrace::microseconds(Duration duration) const {
  const double dilation = dilation_ != nullptr ? dilation_() : 0;
  return static_cast<double>(duration.count()) / 1e3 / (dilation > 0 ? dilation : 1);
}

}  // namespace sealane::serve
