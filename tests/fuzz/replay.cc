// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: on every file of its corpus and on seeded random inputs, so
// that targets cannot rot in ordinary builds.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  int inputs = 0;
  std::vector<std::vector<uint8_t>> corpus;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  for (const auto& input : corpus) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++inputs;
  }
  sealane::SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> input;
    if (!corpus.empty() && random.chance(0.7)) {
      input = corpus[random.below(corpus.size())];
      for (uint64_t flips = random.between(1, 4); flips > 0 && !input.empty(); --flips) {
        input[random.below(input.size())] = static_cast<uint8_t>(random.next());
      }
      if (random.chance(0.2)) input.resize(random.below(input.size() + 1));
    } else {
      input.resize(random.below(512));
      random.fill(input);
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++inputs;
  }
  std::printf("%d inputs\n", inputs);
}
