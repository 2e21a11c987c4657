// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <dlfcn.h>
#include <linux/capability.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "preload/trouble.h"

extern "C" {  // by_parameters.c
int seal_by_parameters(const unsigned char* key, const unsigned char* iv, const unsigned char* in,
                       unsigned char* out, int bytes, unsigned char* tag);
int open_by_parameters(const unsigned char* key, const unsigned char* iv, const unsigned char* in,
                       unsigned char* out, int bytes, unsigned char* tag, int early);
}

namespace sealane::test {
namespace {

std::atomic<int> threads_left{-1};  // -1: no bound
std::atomic<int> swaps_told{-1};    // -1: what the system says

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_preload(const void* code) {
  Dl_info info{};
  return dladdr(code, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libsealane-preload") != nullptr;
}

bool may_start(const void* caller) {
  if (threads_left.load() < 0 || !is_preload(caller)) return true;
  return threads_left.fetch_sub(1) > 0 || (threads_left.store(0), false);
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> found;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  DIR* directory = opendir(tasks.c_str());
  while (const dirent* entry = directory != nullptr ? readdir(directory) : nullptr) {
    char name[32] = {};
    const std::string path = tasks + "/" + entry->d_name + "/comm";
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) continue;
    const bool ours = std::fgets(name, sizeof name, file) != nullptr &&
                      std::strncmp(name, "sealane-worker", 14) == 0;
    std::fclose(file);
    if (ours) found.push_back(static_cast<pid_t>(std::atol(entry->d_name)));
  }
  if (directory != nullptr) closedir(directory);
  return found;
}

// Holds one thread for some milliseconds. False: not allowed here.
bool stall(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return errno == ESRCH;
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return false;
  int status = 0;
  waitpid(thread, &status, __WALL);
  usleep(15000);
  ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  return true;
}

[[noreturn]] void stall_again_and_again(pid_t parent, int from_parent, int to_parent) {
  char go = 0;
  int stalls = 0;
  if (read(from_parent, &go, 1) == 1) {
    while (kill(parent, 0) == 0) {
      fd_set ready;
      FD_ZERO(&ready);
      FD_SET(from_parent, &ready);
      timeval now{0, 3000};
      if (select(from_parent + 1, &ready, nullptr, nullptr, &now) != 0) break;
      for (const pid_t thread : threads_of(parent)) {
        if (!stall(thread)) stalls = 1000000;
        ++stalls;
      }
    }
  }
  if (write(to_parent, &stalls, sizeof stalls) < 0) _exit(1);
  _exit(0);
}

}  // namespace

void allow_threads(int count) { threads_left.store(count); }

void refuse_locking(bool swaps) {
  swaps_told.store(swaps ? 1 : 0);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_MEMLOCK, &none);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return;
  data[CAP_IPC_LOCK / 32].effective &= ~(1U << (CAP_IPC_LOCK % 32));
  syscall(SYS_capset, &header, data);
}

bool encrypts() {
  const unsigned char key[32] = {1};
  const unsigned char iv[12] = {2};
  unsigned char text[64] = {3};
  unsigned char sealed[64];
  unsigned char opened[64];
  unsigned char tag[16];
  int bytes = 0;
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  bool good = EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key, iv) == 1 &&
              EVP_EncryptUpdate(context, sealed, &bytes, text, sizeof text) == 1 &&
              EVP_EncryptFinal_ex(context, sealed, &bytes) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) == 1;
  good = good && EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key, iv) == 1 &&
         EVP_DecryptUpdate(context, opened, &bytes, sealed, sizeof sealed) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1 &&
         EVP_DecryptFinal_ex(context, opened, &bytes) == 1;
  EVP_CIPHER_CTX_free(context);
  return good && std::memcmp(text, opened, sizeof text) == 0;
}

// What one sealed the other opens, whoever computed it, and not if a bit of it is wrong.
bool seals_by_parameters() {
  const std::vector<unsigned char> key(32, 4);
  const std::vector<unsigned char> iv(12, 5);
  const std::vector<unsigned char> text(300001, 6);
  std::vector<unsigned char> sealed(text.size());
  std::vector<unsigned char> opened(text.size());
  unsigned char tag[16] = {};
  const auto bytes = static_cast<int>(text.size());
  if (seal_by_parameters(key.data(), iv.data(), text.data(), sealed.data(), bytes, tag) != 1)
    return false;
  for (const int early : {0, 1}) {
    opened.assign(text.size(), 0);
    if (open_by_parameters(key.data(), iv.data(), sealed.data(), opened.data(), bytes, tag,
                           early) != 1) {
      return false;
    }
    if (opened != text) return false;
  }
  int some = 0;
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();  // libcrypto's own opinion
  const bool same =
      EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key.data(), iv.data()) == 1 &&
      EVP_DecryptUpdate(context, opened.data(), &some, sealed.data(), bytes) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1 &&
      EVP_DecryptFinal_ex(context, opened.data(), &some) == 1;
  EVP_CIPHER_CTX_free(context);
  tag[3] ^= 1;
  const bool refused =
      open_by_parameters(key.data(), iv.data(), sealed.data(), opened.data(), bytes, tag, 0) != 1;
  return same && refused;
}

Staller::Staller() {
  int there[2] = {};
  int back[2] = {};
  if (pipe(there) != 0 || pipe(back) != 0) std::abort();
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) {
    close(there[1]);
    stall_again_and_again(parent, there[0], back[1]);
  }
  close(there[0]);
  close(back[1]);
  prctl(PR_SET_PTRACER, child_, 0, 0, 0);
  to_child_ = there[1];
  from_child_ = back[0];
}

Staller::~Staller() {
  if (to_child_ >= 0) close(to_child_);
  close(from_child_);
  waitpid(child_, nullptr, 0);
}

void Staller::begin() {
  if (write(to_child_, "x", 1) != 1) std::abort();
}

int Staller::end() {
  close(to_child_);
  to_child_ = -1;
  int stalls = 0;
  return read(from_child_, &stalls, sizeof stalls) == sizeof stalls ? stalls : 0;
}

}  // namespace sealane::test

extern "C" {

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) {
  static const auto real = sealane::test::next(&pthread_create, "pthread_create");
  if (!sealane::test::may_start(__builtin_return_address(0))) return EAGAIN;
  return real(thread, attributes, body, argument);
}

// What the system says of swap space; everything else is what it is.
__attribute__((visibility("default"))) FILE* fopen(const char* path, const char* mode) {
  static const auto real = sealane::test::next(&fopen, "fopen");
  const int told = sealane::test::swaps_told.load();
  if (told < 0 || std::strcmp(path, "/proc/swaps") != 0) return real(path, mode);
  static char swaps[] = "Filename Type Size Used Priority\n/swap file 1024 0 -2\n";
  static char none[] = "Filename Type Size Used Priority\n";
  return told == 1 ? fmemopen(swaps, sizeof swaps - 1, "r") : fmemopen(none, sizeof none - 1, "r");
}
}
