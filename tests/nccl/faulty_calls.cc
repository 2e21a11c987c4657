// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "nccl/faulty_calls.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

std::atomic<long> flip_after{-1};       // bytes of large receives; -1: never
std::atomic<int> receives_to_death{0};  // that brought something; 0: never
std::atomic<int> sends_to_death{0};     // likewise
std::function<void()>* last_words = nullptr;

void maybe_die(std::atomic<int>& calls) {
  if (calls.load() <= 0 || calls.fetch_sub(1) != 1) return;
  (*last_words)();
  kill(getpid(), SIGKILL);
}

void tamper(void* data, ssize_t count) {
  if (count > 0) maybe_die(receives_to_death);
  if (count < 1024 || flip_after.load() < 0) return;
  if (flip_after.fetch_sub(count) <= count) {
    flip_after = -1;
    static_cast<uint8_t*>(data)[count / 2] ^= 0x10;
  }
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void flip_a_bit_after(long bytes) { flip_after = bytes; }
bool bit_was_flipped() { return flip_after < 0; }

void die_in(Call call, int number, std::function<void()> words) {
  last_words = new std::function<void()>(std::move(words));
  (call == Call::receive ? receives_to_death : sends_to_death) = number;
}

extern "C" [[gnu::visibility("default")]] ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto call = real<ssize_t (*)(int, msghdr*, int)>("recvmsg");
  const ssize_t count = call(socket, message, flags);
  if (count > 0) tamper(message->msg_iov[0].iov_base, count);
  return count;
}

extern "C" [[gnu::visibility("default")]] ssize_t recv(int socket, void* data, size_t bytes,
                                                       int flags) {
  static const auto call = real<ssize_t (*)(int, void*, size_t, int)>("recv");
  const ssize_t count = call(socket, data, bytes, flags);
  tamper(data, count);
  return count;
}

extern "C" [[gnu::visibility("default")]] ssize_t sendmsg(int socket, const msghdr* message,
                                                          int flags) {
  static const auto call = real<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  const ssize_t count = call(socket, message, flags);
  if (count > 0) maybe_die(sends_to_death);
  return count;
}
