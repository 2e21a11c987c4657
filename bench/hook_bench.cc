// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call costs that the preload catches and has nothing to do for: the same calls on the
// emulated GPU without the preload, with it and CC mode off, with it switched off, and with it and
// CC mode on; once as the program is linked and once by an address that it has asked for. And a
// call of libcrypto's that is the program's own business.
//
// A nanosecond is less than the difference between two moments, and between two processes, whose
// code and data lie elsewhere. So all settings run side by side, each a process on the same core,
// and take turns in slices of a few microseconds; what counts is the difference within a round.
// Its median is the set's; a set of new processes then does the same. Printed are the median of the
// sets and the range in which all but the two outermost of each side lie.

#include <cuda.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

constexpr int kSets = 21;
constexpr int kOutside = 2;  // sets on each side that the range leaves out
constexpr int kRounds = 150;
constexpr int kCalls = 500;    // of a slice that are timed,
constexpr int kUntimed = 100;  // and before: another process had the core

enum Way : uint8_t { linked, looked_up };
struct Kind {
  const char* call;
  Way way;
};
constexpr std::array<Kind, 5> kKinds = {{{"cuStreamWaitEvent", linked},
                                         {"cuStreamWaitEvent", looked_up},
                                         {"cuEventQuery", linked},
                                         {"cuEventQuery", looked_up},
                                         {"EVP_EncryptUpdate", linked}}};
using Figures = std::array<double, kKinds.size()>;

struct Setting {
  const char* name;
  const char* cc;
  bool preload;
  bool disabled;
  size_t base;  // the setting it is compared with
};
constexpr std::array<Setting, 5> kSettings = {{{"CC off", "off", false, false, 0},
                                               {"CC off, preload", "off", true, false, 0},
                                               {"CC on", "on", false, false, 2},
                                               {"CC on, disabled", "on", true, true, 2},
                                               {"CC on, preload", "on", true, false, 2}}};

void ok(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "hook_bench: CUDA error %d\n", code);
  std::exit(1);
}

template <typename Call>
double ns_per_call(const Call& call) {
  for (int i = 0; i < kUntimed; ++i) ok(call());
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) ok(call());
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  return took.count() / kCalls;
}

template <typename Function>
Function* look_up(const char* name) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  ok(cuGetProcAddress(name, &found, 12000, 0, &status));
  return reinterpret_cast<Function*>(found);
}

// A process that is measured. A carried copy first, so that there is a lane and the stream is
// known. Each byte it reads is the number of a kind; it answers with the figure.
int serve() {
  constexpr size_t kBytes = 1 << 20;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr there = 0;
  void* here = nullptr;
  ok(cuInit(0));
  ok(cuDeviceGet(&device, 0));
  ok(cuCtxCreate(&context, nullptr, 0, device));
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ok(cuMemAlloc(&there, kBytes));
  ok(cuMemAllocHost(&here, kBytes));
  ok(cuMemcpyHtoDAsync(there, here, kBytes, stream));
  ok(cuEventRecord(event, stream));
  ok(cuStreamSynchronize(stream));
  auto* const wait = look_up<CUresult(CUstream, CUevent, unsigned)>("cuStreamWaitEvent");
  auto* const query = look_up<CUresult(CUevent)>("cuEventQuery");
  EVP_CIPHER_CTX* const cipher = EVP_CIPHER_CTX_new();
  constexpr std::array<unsigned char, 32> kKey{1};
  std::array<unsigned char, 16> block{};
  int bytes = 0;
  EVP_EncryptInit_ex(cipher, EVP_aes_256_ctr(), nullptr, kKey.data(), block.data());
  const auto encrypt = [&] {
    const int size = static_cast<int>(block.size());
    const int made = EVP_EncryptUpdate(cipher, block.data(), &bytes, block.data(), size);
    return made == 1 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  };
  for (uint8_t kind = 0; read(STDIN_FILENO, &kind, 1) == 1;) {
    double took = 0;
    switch (kind) {
      case 0:
        took = ns_per_call([&] { return cuStreamWaitEvent(stream, event, 0); });
        break;
      case 1:
        took = ns_per_call([&] { return wait(stream, event, 0); });
        break;
      case 2:
        took = ns_per_call([&] { return cuEventQuery(event); });
        break;
      case 3:
        took = ns_per_call([&] { return query(event); });
        break;
      default:
        took = ns_per_call(encrypt);
    }
    if (write(STDOUT_FILENO, &took, sizeof took) != sizeof took) return 1;
  }
  return 0;
}

[[noreturn]] void give_up() {
  std::fprintf(stderr, "hook_bench: a run failed\n");
  std::exit(1);
}

// Such a process, seen from outside.
class Served {
 public:
  explicit Served(const Setting& setting) {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) give_up();
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
      setenv("SEALANE_EMU_CC", setting.cc, 1);
      setenv("LD_LIBRARY_PATH", SEALANE_EMU_DIR, 1);
      if (setting.preload) setenv("LD_PRELOAD", SEALANE_PRELOAD, 1);
      if (setting.disabled) setenv("SEALANE_DISABLE", "1", 1);
      execl("/proc/self/exe", "hook_bench", "--serve", nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    ask_ = to[1];
    answer_ = from[0];
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    close(ask_);
    close(answer_);
    waitpid(child_, nullptr, 0);
  }

  double measure(uint8_t kind) const {
    double took = 0;
    const bool asked = write(ask_, &kind, 1) == 1;
    if (!asked || read(answer_, &took, sizeof took) != sizeof took) give_up();
    return took;
  }

 private:
  pid_t child_ = -1;
  int ask_ = -1;
  int answer_ = -1;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What one set found, of each setting: ns of a call, and how much more that is than its base.
struct Found {
  Figures ns;
  Figures more;
};

std::array<Found, kSettings.size()> run_set() {
  std::array<std::unique_ptr<Served>, kSettings.size()> served;
  for (size_t i = 0; i < served.size(); ++i) served[i] = std::make_unique<Served>(kSettings[i]);
  std::array<Found, kSettings.size()> found{};
  for (uint8_t kind = 0; kind < kKinds.size(); ++kind) {
    std::array<std::vector<double>, kSettings.size()> ns;
    std::array<std::vector<double>, kSettings.size()> more;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < served.size(); ++i) ns[i].push_back(served[i]->measure(kind));
      for (size_t i = 0; i < served.size(); ++i) {
        more[i].push_back(ns[i].back() - ns[kSettings[i].base].back());
      }
    }
    for (size_t i = 0; i < served.size(); ++i) {
      found[i].ns[kind] = median(ns[i]);
      found[i].more[kind] = median(more[i]);
    }
  }
  return found;
}

void print(const Setting& setting, const Kind& kind, const std::vector<double>& ns,
           std::vector<double> more) {
  fmt::print("{:<15} {:<18} {:<9} {:7.1f}", setting.name, kind.call,
             kind.way == linked ? "linked" : "looked up", median(ns));
  if (setting.preload) {
    std::sort(more.begin(), more.end());
    fmt::print("  {:+6.1f}   {:+.1f} to {:+.1f}", median(more), more[kOutside],
               more[more.size() - 1 - kOutside]);
  }
  fmt::print("\n");
}

// All on the core we are on, so that nobody compares two cores.
void stay_here() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) return serve();
  stay_here();
  std::vector<std::array<Found, kSettings.size()>> sets;
  for (int set = 0; set < kSets; ++set) sets.push_back(run_set());
  fmt::print(
      "MEASURED on the emulated GPU, ns per call and how much more the preload makes of it:\n"
      "medians of {} sets of processes, {} rounds of {} calls each; the range leaves out {} sets "
      "on "
      "each side\n",
      kSets, kRounds, kCalls, kOutside);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      std::vector<double> ns;
      std::vector<double> more;
      for (const auto& set : sets) {
        ns.push_back(set[i].ns[kind]);
        more.push_back(set[i].more[kind]);
      }
      print(kSettings[i], kKinds[kind], ns, std::move(more));
    }
  }
}
