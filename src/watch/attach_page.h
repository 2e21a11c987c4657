// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How `sealane attach` and a running process meet: a file without a name (memfd) that the process
// keeps open. Whoever may look at the process's descriptors (the kernel says who: the same user, or
// root) finds it in /proc/PID/fd; there is no path anybody else could make first. Its beginning:
//
//   the process writes   magic, version, pid, answers, presence; then, for an answer: sequence (odd
//                        meanwhile), the text behind the head, bytes, answered, sequence
//   who asks writes      asked: one more than it was
//
// Neither side believes what the other wrote: the process looks at nothing but whether `asked`
// changed; who asks gets it all through parse_attach_head(). Integers are the machine's own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace sealane::serve {

constexpr const char* kAttachFile =
    "sealane-attach";  // in /proc: "/memfd:sealane-attach (deleted)"
constexpr size_t kAttachFileBytes = 256 << 10;
constexpr size_t kAttachAnswerAt = 4096;
constexpr size_t kAttachAnswerBytesMax = kAttachFileBytes - kAttachAnswerAt;

struct AttachHead {
  static constexpr std::array<char, 16> kMagic{"sealane-attach"};
  static constexpr uint32_t kVersion = 1;

  std::array<char, 16> magic;
  uint32_t version;
  int32_t pid;       // as the process itself sees it
  uint32_t answers;  // 0: it is there, and has nothing to tell but `presence`
  uint32_t asked;
  uint32_t sequence;
  uint32_t answered;  // the value of `asked` that the answer is for
  uint32_t bytes;     // of the answer
  std::array<char, 212> presence;
};
static_assert(std::is_trivially_copyable_v<AttachHead> && sizeof(AttachHead) == 256);

// Nothing, if it is not such a file's head: text that does not end, an answer that is too long.
inline std::optional<AttachHead> parse_attach_head(std::span<const uint8_t> bytes) {
  AttachHead head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool ends =
      std::find(head.presence.begin(), head.presence.end(), '\0') != head.presence.end();
  const bool known = head.magic == AttachHead::kMagic && head.version == AttachHead::kVersion;
  if (!known || !ends || head.bytes > kAttachAnswerBytesMax) return std::nullopt;
  return head;
}

}  // namespace sealane::serve
