// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One hop of a sealed reduction from memory: open what came, add what is ours, seal the sum. Three
// passes over the whole message, as a library on top of a library does it, against one pass record
// by record, as the collectives do it: opened and verified into a scratch record, added while it is
// sealed.

#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "seal/delivery.h"
#include "seal/engine.h"
#include "seal/reduce.h"

namespace sealane {
namespace {

constexpr size_t kRecordBytes = 64_KiB;
constexpr size_t kRecords = 1024;  // 64 MiB: from memory, not from cache

struct Hop {
  Hop() : aead((*chosen_engine())->make(key())), tags(kRecords), out_tags(kRecords) {
    for (auto* buffer : {&own, &incoming, &opened, &outgoing})
      buffer->resize(kRecordBytes * kRecords);
    SeededRandom(1).fill(own);
    for (size_t i = 0; i < kRecords; ++i) {
      aead->seal(iv(i), {}, at(own, i), mutable_at(incoming, i), tags[i]);
    }
  }

  static Key key() {
    SeededRandom random(2);
    return Key::random(random);
  }
  static Iv iv(uint64_t number) {
    Iv iv{};
    store_le(iv.data(), number);
    return iv;
  }
  static Bytes at(const std::vector<uint8_t>& buffer, size_t i) {
    return Bytes(buffer).subspan(i * kRecordBytes, kRecordBytes);
  }
  static MutableBytes mutable_at(std::vector<uint8_t>& buffer, size_t i) {
    return MutableBytes(buffer).subspan(i * kRecordBytes, kRecordBytes);
  }

  bool open(size_t i, MutableBytes out) const {
    return aead->open(iv(i), {}, at(incoming, i), tags[i], out).ok();
  }
  // Every round of the benchmark seals the same bytes under the same positions, and nobody sees it.
  void seal(size_t i, Bytes sum) {
    aead->seal(iv(kRecords + i), {}, sum, mutable_at(outgoing, i), out_tags[i]);
  }
  void seal(size_t i, const Delivery& sum) {
    aead->seal(iv(kRecords + i), {}, sum, mutable_at(outgoing, i), out_tags[i]);
  }

  std::unique_ptr<Aead> aead;
  std::vector<uint8_t> own, incoming, opened, outgoing;
  std::vector<Tag> tags, out_tags;
};

Hop& hop() {
  static Hop shared;
  return shared;
}

void three_passes(benchmark::State& state) {
  Hop& h = hop();
  bool genuine = true;
  for (auto _ : state) {
    for (size_t i = 0; i < kRecords; ++i) genuine &= h.open(i, Hop::mutable_at(h.opened, i));
    reduce(ElementType::float32, ReduceOperator::sum, h.opened, h.own, h.opened);
    for (size_t i = 0; i < kRecords; ++i) h.seal(i, Hop::at(h.opened, i));
  }
  if (!genuine) state.SkipWithError("a genuine record was refused");
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kRecordBytes * kRecords));
}

void fused(benchmark::State& state) {
  Hop& h = hop();
  alignas(64) static uint8_t scratch[kRecordBytes];
  bool genuine = true;
  for (auto _ : state) {
    for (size_t i = 0; i < kRecords; ++i) {
      genuine &= h.open(i, scratch);
      h.seal(i, Delivery{scratch, Hop::at(h.own, i), ElementType::float32, ReduceOperator::sum,
                         scratch, false});
    }
  }
  if (!genuine) state.SkipWithError("a genuine record was refused");
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kRecordBytes * kRecords));
}

BENCHMARK(three_passes)->Unit(benchmark::kMillisecond);
BENCHMARK(fused)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sealane

BENCHMARK_MAIN();
