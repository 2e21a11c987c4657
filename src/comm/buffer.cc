// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace sealane {

Buffer::Buffer(std::vector<MutableBytes> tensors) : tensors_(std::move(tensors)) {
  std::erase_if(tensors_, [](MutableBytes tensor) { return tensor.empty(); });
  uint64_t at = 0;
  for (const MutableBytes tensor : tensors_) {
    starts_.push_back(at);
    at += tensor.size();
  }
  starts_.push_back(at);
}

void Buffer::locate(std::unique_ptr<DeviceWindows>& windows, uint32_t ranks) {
  const GpuMemory* gpu = GpuMemory::loaded();
  if (gpu == nullptr) return;
  for (const MutableBytes tensor : tensors_) owners_.push_back(gpu->owner(tensor.data()));
  const auto is_device = [](const auto& owner) { return owner.has_value(); };
  if (std::none_of(owners_.begin(), owners_.end(), is_device)) return owners_.clear();
  if (windows == nullptr) windows = std::make_unique<DeviceWindows>(ranks);
  windows_ = windows.get();
}

Status Buffer::problem() const {
  if (windows_ == nullptr || !windows_->failure()) return {};
  return *windows_->failure();
}

Status Buffer::finish() const { return windows_ == nullptr ? Status() : windows_->finish(); }

size_t Buffer::tensor_at(uint64_t offset) const {
  return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) -
                             starts_.begin()) -
         1;
}

uint8_t* Buffer::contiguous(uint64_t offset, size_t count) const {
  SEALANE_CHECK(count > 0 && offset + count <= bytes(), "range outside of the buffer");
  const size_t index = tensor_at(offset);
  if (offset + count > starts_[index + 1]) return nullptr;
  if (!owners_.empty() && owners_[index]) return nullptr;
  return tensors_[index].data() + (offset - starts_[index]);
}

template <typename Move>
void Buffer::for_pieces(uint64_t offset, size_t count, Move move) const {
  size_t done = 0;
  for (size_t index = tensor_at(offset); done < count; ++index) {
    const uint64_t at = offset + done - starts_[index];
    const size_t piece = std::min<size_t>(count - done, tensors_[index].size() - at);
    move(index, at, done, piece);
    done += piece;
  }
}

Bytes Buffer::read(uint64_t offset, size_t count, MutableBytes scratch) const {
  if (count == 0) return {};
  if (const uint8_t* here = contiguous(offset, count)) return {here, count};
  for_pieces(offset, count, [&](size_t index, uint64_t at, size_t done, size_t piece) {
    if (!owners_.empty() && owners_[index]) {
      windows_->read(*owners_[index], tensors_[index], at, scratch.subspan(done, piece));
    } else {
      std::memcpy(scratch.data() + done, tensors_[index].data() + at, piece);
    }
  });
  return scratch.first(count);
}

MutableBytes Buffer::target(uint64_t offset, size_t count, MutableBytes scratch) const {
  if (count == 0) return {};
  uint8_t* here = contiguous(offset, count);
  return {here != nullptr ? here : scratch.data(), count};
}

void Buffer::written(uint64_t offset, MutableBytes result) const {
  if (result.empty() || contiguous(offset, result.size()) != nullptr) return;
  for_pieces(offset, result.size(), [&](size_t index, uint64_t at, size_t done, size_t piece) {
    if (!owners_.empty() && owners_[index]) {
      windows_->write(*owners_[index], tensors_[index], at, result.subspan(done, piece));
    } else {
      std::memcpy(tensors_[index].data() + at, result.data() + done, piece);
    }
  });
}

}  // namespace sealane
