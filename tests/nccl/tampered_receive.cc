// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// An attacker on the wire and a killer at the table, for any plugin that receives by libc: takes
// the place of recv and recvmsg in the process it is linked into, and when told to flips one bit of
// what came, once, or ends the process in the middle of a receive.

#include "nccl/tampered_receive.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

std::atomic<long> flip_after{-1};  // bytes of large receives; -1: never
std::atomic<int> die_after{0};     // receives that brought something; 0: never

void tamper(void* data, ssize_t count) {
  if (count > 0 && die_after.load() > 0 && die_after.fetch_sub(1) == 1) kill(getpid(), SIGKILL);
  if (count < 1024 || flip_after.load() < 0) return;
  if (flip_after.fetch_sub(count) <= count) {
    flip_after = -1;
    static_cast<uint8_t*>(data)[count / 2] ^= 0x10;
  }
}

}  // namespace

void flip_a_bit_after(long bytes) { flip_after = bytes; }
void die_in_receive(int number) { die_after = number; }
bool bit_was_flipped() { return flip_after < 0; }

extern "C" [[gnu::visibility("default")]] ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto real =
      reinterpret_cast<ssize_t (*)(int, msghdr*, int)>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t count = real(socket, message, flags);
  if (count > 0) tamper(message->msg_iov[0].iov_base, count);
  return count;
}

extern "C" [[gnu::visibility("default")]] ssize_t recv(int socket, void* data, size_t bytes,
                                                       int flags) {
  static const auto real =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, int)>(dlsym(RTLD_NEXT, "recv"));
  const ssize_t count = real(socket, data, bytes, flags);
  tamper(data, count);
  return count;
}
