// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// How `sealane bench allreduce` talks to the ranks it measures, whatever they are made of: each
// rank has two named pipes, one that commands come from and one that answers go to. A rank blocks
// in read() between commands, so a system that is not being measured takes no core from the others.
//   command   OP BYTES ITERATIONS CHECK        e.g. "allreduce 1048576 20 1"; "quit" ends the rank
//   answer    WRONG T1 T2 …                    wrong elements, ns of each iteration
//             "error TEXT"                     the rank has given up
// Self-contained: baselines include it without linking anything of ours.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace sealane::bench {

struct WorkerCommand {
  std::string op;
  uint64_t bytes = 0;
  uint32_t iterations = 0;
  bool check = false;
};

inline std::string command_pipe(const std::string& base, int rank) {
  return base + "." + std::to_string(rank) + ".commands";
}
inline std::string answer_pipe(const std::string& base, int rank) {
  return base + "." + std::to_string(rank) + ".answers";
}

// The rank's end of the two pipes.
class WorkerPipes {
 public:
  WorkerPipes(const std::string& base, int rank)
      : commands_(command_pipe(base, rank)), answers_(answer_pipe(base, rank)) {
    answers_ << "0\n" << std::flush;  // present
  }

  bool next(WorkerCommand& command) {
    std::string line;
    if (!std::getline(commands_, line)) return false;
    std::istringstream words(line);
    return static_cast<bool>(words >> command.op >> command.bytes >> command.iterations >>
                             command.check);
  }

  void answer(uint64_t wrong, const std::vector<uint64_t>& times_ns) {
    answers_ << wrong;
    for (const uint64_t ns : times_ns) answers_ << ' ' << ns;
    answers_ << '\n' << std::flush;
  }

  void fail(const std::string& why) { answers_ << "error " << why << '\n' << std::flush; }

 private:
  std::ifstream commands_;
  std::ofstream answers_;
};

// Small integers, so that float32 sums are exact in any order; cheap, for they are made and checked
// for every size.
inline float contribution(int rank, uint64_t index) {
  return static_cast<float>((index + static_cast<uint64_t>(rank) * 31) % 251);
}

// Runs the operation once untimed, which also lets all ranks arrive, then times every iteration.
template <typename Run>
std::vector<uint64_t> timed_iterations(uint32_t iterations, Run run) {
  std::vector<uint64_t> times;
  auto last = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < iterations; ++i) {
    run();
    const auto now = std::chrono::steady_clock::now();
    times.push_back(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - last).count()));
    last = now;
  }
  return times;
}

// What an operation needs and gives: elements of float32 in and out per rank, as nccl-tests counts
// them (BYTES is the larger of both), and the right result.
struct WorkerShape {
  uint64_t in = 0;
  uint64_t out = 0;

  WorkerShape(const std::string& op, uint64_t bytes, int size) {
    const uint64_t all = bytes / sizeof(float);
    const uint64_t part = all / static_cast<uint64_t>(size);
    in = op == "all_gather" ? part : op == "reduce_scatter" ? part * size : all;
    out = op == "reduce_scatter" ? part : op == "all_gather" ? part * size : all;
  }
};

inline float expected_result(const std::string& op, int rank, int size, uint64_t out_count,
                             uint64_t index) {
  if (op == "broadcast") return contribution(0, index);
  if (op == "all_gather") {
    const uint64_t part = out_count / static_cast<uint64_t>(size);
    return contribution(static_cast<int>(index / part), index % part);
  }
  const uint64_t at =
      op == "reduce_scatter" ? out_count * static_cast<uint64_t>(rank) + index : index;
  float sum = 0;
  for (int r = 0; r < size; ++r) sum += contribution(r, at);
  return sum;
}

inline uint64_t count_wrong(const std::string& op, int rank, int size,
                            const std::vector<float>& out) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < out.size(); ++i) {
    wrong += out[i] != expected_result(op, rank, size, out.size(), i) ? 1 : 0;
  }
  return wrong;
}

inline std::vector<float> make_contribution(int rank, uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = contribution(rank, i);
  return values;
}

}  // namespace sealane::bench
