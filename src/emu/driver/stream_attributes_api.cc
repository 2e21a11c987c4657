// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Attributes of streams: hints (which memory to keep in cache, how to wait) that are kept and told
// again, and the priority, which is the stream's own.

#include <array>
#include <cstring>

#include "emu/driver/api.h"

using namespace sealane::emu;

namespace {

enum Attribute : int {
  access_policy_window = 1,
  synchronization_policy = 3,
  priority = 8,
  memory_domain_map = 9,
  memory_domain = 10,
};

using Value = std::array<char, 64>;  // CUlaunchAttributeValue

struct Kept {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, std::map<int, Value>> of;  // context and stream
};

Kept& kept() {
  static Kept& made = *new Kept;  // programs call from exit handlers
  return made;
}

std::pair<uint64_t, uint64_t> key_of(const ResolvedStream& s) {
  return {s.context->id(), s.stream->id()};
}

bool settable(int attribute) {
  return attribute == access_policy_window || attribute == synchronization_policy ||
         attribute == memory_domain_map || attribute == memory_domain;
}

CUresult get(ResolvedStream& s, int attribute, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Value found{};
  if (attribute == priority) {
    const int own = s.stream->priority();
    std::memcpy(found.data(), &own, sizeof own);
  } else if (settable(attribute)) {
    const std::lock_guard lock(kept().mutex);
    const auto mine = kept().of.find(key_of(s));
    if (mine != kept().of.end() && mine->second.count(attribute) != 0) {
      found = mine->second[attribute];
    }
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(value, found.data(), found.size());
  return CUDA_SUCCESS;
}

CUresult set(ResolvedStream& s, int attribute, const void* value) {
  if (value == nullptr || !settable(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(kept().mutex);
  std::memcpy(kept().of[key_of(s)][attribute].data(), value, sizeof(Value));
  return CUDA_SUCCESS;
}

CUresult copy(CUstream to, CUstream from, DefaultStream mode) {
  return on_stream(from, mode, [&](Driver& d, ResolvedStream& source) {
    ResolvedStream target;
    const CUresult found = resolve_stream(d, to, mode, target);
    if (found != CUDA_SUCCESS) return found;
    const std::lock_guard lock(kept().mutex);
    kept().of[key_of(target)] = kept().of[key_of(source)];
    return CUDA_SUCCESS;
  });
}

}  // namespace

EMU_TWINS(cuStreamGetAttribute, _ptsz, (CUstream stream, int attribute, void* value),
          on_stream(stream, mode,
                    [&](Driver&, ResolvedStream& s) { return get(s, attribute, value); }))
EMU_TWINS(cuStreamSetAttribute, _ptsz, (CUstream stream, int attribute, const void* value),
          on_stream(stream, mode,
                    [&](Driver&, ResolvedStream& s) { return set(s, attribute, value); }))
EMU_TWINS(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), copy(to, from, mode))
