// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/device_windows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace sealane {
namespace {

constexpr size_t kWindowBytesMin = size_t{64} << 10;
constexpr size_t kWindowBytesMax = size_t{1} << 20;  // what one message of the bus carries

}  // namespace

DeviceWindows::DeviceWindows(uint32_t ranks)
    : window_bytes_(std::clamp(kBytes / ranks, kWindowBytesMin, kWindowBytesMax)),
      windows_(kBytes / window_bytes_) {}

void DeviceWindows::note(const Status& status) {
  if (!status && !failure_) failure_ = status.error();
}

void DeviceWindows::flush(Window& window) {
  if (!window.dirty()) return;
  if (!failure_) {
    const size_t bytes = window.dirty_to - window.dirty_from;
    note(GpuMemory::loaded()->store(window.context, window.device + window.dirty_from,
                                    Bytes(window.host).subspan(window.dirty_from, bytes)));
  }
  window.dirty_from = window.dirty_to = 0;
}

void DeviceWindows::load(Window& window) {
  flush(window);
  const MutableBytes host = MutableBytes(window.host).first(window.bytes);
  if (!failure_) note(GpuMemory::loaded()->fetch(window.context, window.device, host));
  if (failure_) std::memset(host.data(), 0, host.size());
  window.loaded = true;
}

DeviceWindows::Window& DeviceWindows::window_at(GpuMemory::Context context, MutableBytes tensor,
                                                uint64_t start) {
  uint8_t* const device = tensor.data() + start;
  Window* oldest = &windows_.front();
  for (Window& window : windows_) {
    if (window.device == device) {
      window.last_use = ++uses_;
      return window;
    }
    if (window.last_use < oldest->last_use) oldest = &window;
  }
  flush(*oldest);
  oldest->device = device;
  oldest->context = context;
  oldest->bytes = std::min<uint64_t>(window_bytes_, tensor.size() - start);
  oldest->loaded = false;
  oldest->last_use = ++uses_;
  oldest->host.resize(window_bytes_);
  return *oldest;
}

template <typename Use>
void DeviceWindows::for_windows(GpuMemory::Context context, MutableBytes tensor, uint64_t at,
                                size_t count, Use use) {
  SEALANE_CHECK(at + count <= tensor.size(), "range outside of the tensor");
  for (size_t done = 0; done < count;) {
    const uint64_t start = (at + done) / window_bytes_ * window_bytes_;
    const size_t offset = at + done - start;
    const size_t piece = std::min(count - done, window_bytes_ - offset);
    use(window_at(context, tensor, start), offset, done, piece);
    done += piece;
  }
}

void DeviceWindows::read(GpuMemory::Context context, MutableBytes tensor, uint64_t at,
                         MutableBytes to) {
  for_windows(context, tensor, at, to.size(),
              [&](Window& window, size_t offset, size_t done, size_t piece) {
                const bool own = offset >= window.dirty_from && offset + piece <= window.dirty_to;
                if (!window.loaded && !own) load(window);
                std::memcpy(to.data() + done, window.host.data() + offset, piece);
              });
}

void DeviceWindows::write(GpuMemory::Context context, MutableBytes tensor, uint64_t at,
                          Bytes from) {
  for_windows(context, tensor, at, from.size(),
              [&](Window& window, size_t offset, size_t done, size_t piece) {
                const bool adjoins =
                    offset <= window.dirty_to && offset + piece >= window.dirty_from;
                if (!adjoins) flush(window);
                std::memcpy(window.host.data() + offset, from.data() + done, piece);
                window.dirty_from = window.dirty() ? std::min(window.dirty_from, offset) : offset;
                window.dirty_to = std::max(window.dirty_to, offset + piece);
              });
}

Status DeviceWindows::finish() {
  for (Window& window : windows_) {
    flush(window);
    window.device = nullptr;
    window.loaded = false;
  }
  if (!failure_) return {};
  const Error error = *failure_;
  failure_.reset();
  return error;
}

}  // namespace sealane
