// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// One call at a time, from cache: what a change to an engine or to the copy costs or gains. For
// figures to quote use `sealane bench seal`, which interleaves and reads from memory.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "seal/engine.h"
#include "seal/stream_copy.h"

namespace sealane {
namespace {

std::vector<uint8_t> random_bytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  SeededRandom(1).fill(bytes);
  return bytes;
}

Key benchmark_key() {
  SeededRandom random(2);
  return Key::random(random);
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void seal(benchmark::State& state, const Engine* engine) {
  const auto aead = engine->make(benchmark_key());
  const auto plaintext = random_bytes(static_cast<size_t>(state.range(0)));
  std::vector<uint8_t> ciphertext(plaintext.size());
  Iv iv{};
  Tag tag;
  uint64_t counter = 0;
  for (auto _ : state) {
    store_le(iv.data(), counter++);
    aead->seal(iv, {}, plaintext, ciphertext, tag);
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void open(benchmark::State& state, const Engine* engine) {
  const auto aead = engine->make(benchmark_key());
  auto bytes = random_bytes(static_cast<size_t>(state.range(0)));
  std::vector<uint8_t> opened(bytes.size());
  Tag tag;
  aead->seal(Iv{}, {}, bytes, bytes, tag);
  for (auto _ : state) {
    if (!aead->open(Iv{}, {}, bytes, tag, opened)) {
      state.SkipWithError("a genuine record was refused");
      break;
    }
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void copy(benchmark::State& state, void (*copy_bytes)(MutableBytes, Bytes)) {
  const auto source = random_bytes(static_cast<size_t>(state.range(0)));
  std::vector<uint8_t> destination(source.size());
  for (auto _ : state) {
    copy_bytes(destination, source);
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void add_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(256)->Arg(4_KiB)->Arg(64_KiB)->Arg(1_MiB);
}

void register_all() {
  for (const Engine* engine : all_engines()) {
    if (!engine->available()) continue;
    const std::string name(engine->name());
    add_sizes(benchmark::RegisterBenchmark(("seal/" + name).c_str(), seal, engine));
    add_sizes(benchmark::RegisterBenchmark(("open/" + name).c_str(), open, engine));
  }
  for (const StreamCopyPath& path : stream_copy_paths()) {
    const std::string name = "stream_copy/" + std::string(path.name);
    add_sizes(benchmark::RegisterBenchmark(name.c_str(), copy, path.copy));
  }
}

}  // namespace
}  // namespace sealane

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  sealane::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
