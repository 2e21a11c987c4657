// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA program to be asked by `sealane attach`: it does what the letters say that come on stdin,
// one after the other, and answers each by a letter or a line on stdout.
//   s  one copy to the device and one back          r  copies until the next letter
//   f  forks; the child sleeps; prints its number   x  becomes `sleep 1000`
//   c  closes every descriptor but the first three  e  ends
//   p  poses as a runtime: a page of its own, and an answer meant for a terminal
//   d  the same with an answer of lists in lists    u  the same with bytes that are no text
//   o  opens the file that is its argument, by every number from 3 to 63 that is free
//   h  raise(SIGTERM) with a handler that calls the one before by one argument; prints the calls
//   t  raise(SIGTERM)                               k  kill() itself with it
//   b  the same where signal() took the handler and put it back
//   v  the same with System V's signal(), which puts it back for one signal
//   B  the same where the program's handler puts the one before back and calls it
// and ends with 3 if it is there after the last four.

#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "preload/must.h"
#include "watch/attach_page.h"

namespace {

using sealane::serve::AttachHead;

constexpr size_t kBytes = 1 << 20;

struct Device {
  Device() {
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc(&memory, kBytes));
  }
  void step() {
    std::vector<unsigned char> there(kBytes, ++value);
    std::vector<unsigned char> back(kBytes);
    OK(cuMemcpyHtoDAsync(memory, there.data(), kBytes, nullptr));
    OK(cuStreamSynchronize(nullptr));
    OK(cuMemcpyDtoH(back.data(), memory, kBytes));
    if (there != back) fail("wrong bytes");
  }

  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  unsigned char value = 0;
};

bool is_letter_there() {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  return poll(&in, 1, 0) > 0;
}

void say(const char* format, int number = 0) {
  std::printf(format, number);
  std::fflush(stdout);
}

void pose(const std::string& text, const char* presence) {
  const int file = memfd_create(sealane::serve::kAttachFile, MFD_ALLOW_SEALING);
  if (ftruncate(file, sealane::serve::kAttachFileBytes) != 0) fail("ftruncate");
  fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* const page =
      mmap(nullptr, sealane::serve::kAttachFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto& head = *static_cast<AttachHead*>(page);
  head = {AttachHead::kMagic, AttachHead::kVersion, getpid(), 1, 0, 0, 1, 0, {}};
  std::strcpy(head.presence.data(), presence);
  std::memcpy(static_cast<char*>(page) + sealane::serve::kAttachAnswerAt, text.data(), text.size());
  head.bytes = static_cast<uint32_t>(text.size());
}

void pose_for_terminals(const char* presence) {
  pose(R"({"command": "\u001b[1mbold", "summary": "\u001b]0;title\u0007\n\u009bA",)"
       R"( "counted_since": 7, "began": [], "page": {}, "stats": null})",
       presence);
}

void pose_with_lists() {
  const size_t deep = 120'000;
  pose("{\"stats\": " + std::string(deep, '[') + std::string(deep, ']') + "}", "deep");
}

void fork_a_sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  say("%d\n", child);
}

void open_everywhere(const char* path) {
  constexpr int kNumbersEnd = 64;
  int last = 0;
  while (last >= 0 && last < kNumbersEnd - 1) last = open(path, O_WRONLY | O_CREAT, 0600);
}

// What was there before our handlers, which call it as those do that keep one argument's worth.
struct sigaction before {};
std::atomic<int> calls{0};

void call_the_one_before(int signal) {
  std::bit_cast<void (*)(int, void*)>(before.sa_handler)(signal, std::bit_cast<void*>(1L));
}

void count_and_chain(int signal) {
  ++calls;
  call_the_one_before(signal);
}

void put_back_and_chain(int signal) {
  sigaction(signal, &before, nullptr);
  call_the_one_before(signal);
}

void handle_by(void (*handler)(int)) {
  struct sigaction ours {};
  ours.sa_handler = handler;
  sigaction(SIGTERM, &ours, &before);
}

void pause_until(const auto& is_over, int most_ms) {
  constexpr timespec kPause{0, 1'000'000};
  for (int i = 0; i < most_ms && !is_over(); ++i) nanosleep(&kPause, nullptr);
}

int calls_of_a_chain() {
  handle_by(&count_and_chain);
  raise(SIGTERM);
  pause_until([] { return calls > 1; }, 500);  // a second one would come by itself
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const bool poses = argc > 1 && std::strcmp(argv[1], "pose") == 0;
  Device* const device = poses ? nullptr : new Device;
  for (char letter = 0; read(STDIN_FILENO, &letter, 1) == 1;) {
    switch (letter) {
      case 's':
        device->step();
        break;
      case 'r':
        while (!is_letter_there()) device->step();
        break;
      case 'f':
        fork_a_sleeper();
        continue;
      case 'x':
        say("%c", letter);
        execlp("sleep", "sleep", "1000", nullptr);
        return 1;
      case 'c':
        closefrom(3);
        break;
      case 'p':
        pose_for_terminals("\033[31mred");
        break;
      case 'u':
        pose_for_terminals("\xff\xc3");
        break;
      case 'o':
        open_everywhere(argv[1]);
        break;
      case 'h':
        say("%d\n", calls_of_a_chain());
        continue;
      case 'b':
        signal(SIGTERM, signal(SIGTERM, SIG_IGN));
        raise(SIGTERM);
        pause_until([] { return false; }, 100'000);
        _exit(3);
      case 'v':
        __sysv_signal(SIGTERM, __sysv_signal(SIGTERM, SIG_IGN));
        raise(SIGTERM);
        pause_until([] { return false; }, 100'000);
        _exit(3);
      case 'B':
        handle_by(&put_back_and_chain);
        raise(SIGTERM);
        pause_until([] { return false; }, 100'000);
        _exit(3);
      case 't':
        raise(SIGTERM);
        _exit(3);
      case 'k':
        kill(getpid(), SIGTERM);
        _exit(3);
      case 'd':
        pose_with_lists();
        break;
      default:
        say("%c", letter);
        return letter == 'e' ? 0 : 2;
    }
    say("%c", letter);
  }
  return 0;
}
