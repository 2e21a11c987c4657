// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the calls of libcrypto come to the runtime that a library of the driver's makes, whatever its
// references are and however it was loaded?
//   bound WHEN LIBRARY ours|libcryptos
// WHEN it is loaded: before cuInit (`before`), afterwards (`after`), with RTLD_DEEPBIND (`deep`),
// by its bare name (`named`), by a thread with the least stack there is (`cramped`), before a
// cuInit that fails and one that does not (`refused`); with a first call that was looked for while
// the slots were bound (`written-back`). The last argument: is the runtime called, or
// has it nothing to do?
//
// Who is called the program sees from the stack, while libcrypto allocates memory in a call. Built
// for a fixed address it has jumps on to libcrypto, which are the functions' addresses everywhere.

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "must.h"

extern "C" void* __libc_malloc(size_t bytes);

namespace {

constexpr int kLooks = 8;  // the call is on each stack, and each takes its time

thread_local bool looking = false;
thread_local int allocations = 0;
thread_local bool preload_called = false;

bool is_of_preload(const void* code) {
  Dl_info where{};
  return dladdr(code, &where) != 0 && std::strstr(where.dli_fname, "libsealane-preload") != nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (looking && allocations < kLooks) {
    looking = false;  // whoever looks may allocate too
    void* frames[64];
    const int count = backtrace(frames, 64);
    for (int i = 0; i < count; ++i) preload_called = preload_called || is_of_preload(frames[i]);
    ++allocations;
    looking = true;
  }
  return __libc_malloc(bytes);
}

namespace {

using Begin = int(EVP_CIPHER_CTX*, const EVP_CIPHER*, const unsigned char*, const unsigned char*);
using Seal = int(EVP_CIPHER_CTX*, unsigned char*, int, unsigned char*);

template <typename Function>
Function* find(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr) fail(name);
  return found;
}

Begin* begin = nullptr;
Seal* seal = nullptr;

#ifdef BOUND_AT_A_FIXED_ADDRESS
// Addresses in instructions, which the dynamic linker cannot change.
void check_jumps() {
  void* const functions[] = {
      reinterpret_cast<void*>(EVP_EncryptInit_ex), reinterpret_cast<void*>(EVP_EncryptUpdate),
      reinterpret_cast<void*>(EVP_EncryptFinal_ex), reinterpret_cast<void*>(EVP_CIPHER_CTX_new)};
  for (void* volatile function : functions) {
    Dl_info where{};
    if (dladdr(function, &where) == 0 || std::strstr(where.dli_fname, "fixed") == nullptr) {
      fail("its address is libcrypto's");
    }
  }
}
#else
void check_jumps() {}
#endif

void* load(const char* file, int flags) {
  void* const library = dlopen(file, RTLD_LOCAL | flags);
  if (library == nullptr) fail(dlerror());
  return library;
}

// What dlopen needs is a part of that. Nobody gets away with more: there is nothing below.
void* load_with_little_stack(const char* file) {
  struct Job {
    const char* file;
    void* opened;
  } job{file, nullptr};
  constexpr size_t kBelow = 1 << 20;
  const auto least = static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN));
  void* const memory =
      mmap(nullptr, kBelow + least, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  void* const stack = static_cast<char*>(memory) + kBelow;
  mprotect(stack, least, PROT_READ | PROT_WRITE);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, least);
  const auto work = [](void* data) -> void* {
    auto& mine = *static_cast<Job*>(data);
    mine.opened = dlopen(mine.file, RTLD_LAZY | RTLD_LOCAL);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, work, &job) != 0) fail("no thread");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (job.opened == nullptr) fail("a thread with little stack could not load it");
  return job.opened;
}

// The driver did not start: its libraries are nobody's but the program's, who can unload them.
void check_refused(const char* opener) {
  if (cuInit(99) == CUDA_SUCCESS) fail("cuInit took any flags");
  void* const library = load(opener, RTLD_NOW);
  find<void*(const char*, int)>(library, "bound_open");
  dlclose(library);
  if (dlopen(opener, RTLD_LAZY | RTLD_NOLOAD) != nullptr) fail("a library stays");
  dlerror();
}

// What the dynamic linker does when it has found where a first call leads, begun before its slot
// was bound.
void write_back(void* library, const char* function) {
  void* const address = dlsym(RTLD_DEFAULT, function);
  link_map* map = nullptr;
  if (address == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) fail(function);
  ElfW(Addr) calls = 0, bytes = 0, symbols = 0, names = 0;
  for (const auto* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_JMPREL) calls = entry->d_un.d_ptr;
    if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
  }
  for (ElfW(Addr) at = calls; at < calls + bytes; at += sizeof(ElfW(Rela))) {
    const auto* const call = reinterpret_cast<const ElfW(Rela)*>(at);
    const auto& symbol = reinterpret_cast<const ElfW(Sym)*>(symbols)[ELF64_R_SYM(call->r_info)];
    if (std::strcmp(reinterpret_cast<const char*>(names) + symbol.st_name, function) != 0) continue;
    *reinterpret_cast<void**>(map->l_addr + call->r_offset) = address;
    return;
  }
  fail("no such call");
}

// GCM's test case 14.
void check_sealing(bool ours) {
  if (begin == nullptr || seal == nullptr) fail("the library did not say where it is");
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  const EVP_CIPHER* const cipher = EVP_aes_256_gcm();
  constexpr unsigned char kZeros[32] = {};
  unsigned char text[16] = {};
  unsigned char tag[16] = {};
  looking = true;
  const int begun = begin(context, cipher, kZeros, kZeros);
  looking = false;
  if (begun != 1 || seal(context, text, sizeof text, tag) != 1) fail("it was refused");
  if (text[0] != 0xce || text[1] != 0xa7) fail("wrong bytes");
  if (tag[0] != 0xd0 || tag[15] != 0x19) fail("wrong tag");
  if (allocations == 0) fail("libcrypto allocates nothing: nobody was seen");
  if (preload_called != ours) fail(ours ? "the runtime was not called" : "the runtime was called");
  EVP_CIPHER_CTX_free(context);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void bound_is_here(Begin* its_begin,
                                                                     Seal* its_seal) {
  begin = its_begin;
  seal = its_seal;
}

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: bound WHEN LIBRARY ours|libcryptos");
  const std::string when = argv[1];
  check_jumps();
  void* frames[1];
  backtrace(frames, 1);  // loads what it needs
  if (when == "before" || when == "refused") load(argv[2], RTLD_LAZY);
  const std::string opener = std::string(argv[2]).substr(0, std::strrchr(argv[2], '/') - argv[2]) +
                             "/libsealane-emu-bound-opener.so";
  if (when == "refused") check_refused(opener.c_str());
  auto* const open = find<void*(const char*, int)>(load(opener.c_str(), RTLD_NOW), "bound_open");
  const OneDevice device(4096);
  if (when == "unasked") {
    if (open(argv[2], RTLD_LAZY) == nullptr) fail(dlerror());
  } else {
    const char* const file = when == "named" ? std::strrchr(argv[2], '/') + 1 : argv[2];
    void* const library = when == "cramped"
                              ? load_with_little_stack(file)
                              : load(file, RTLD_LAZY | (when == "deep" ? RTLD_DEEPBIND : 0));
    begin = find<Begin>(library, "bound_begin");
    seal = find<Seal>(library, "bound_seal");
    if (when == "written-back") {
      write_back(library, "EVP_EncryptFinal_ex");
      find<pid_t()>(RTLD_DEFAULT, "getpid");
    }
  }
  if (dlerror() != nullptr) fail("an error that nobody made");
  check_sealing(std::strcmp(argv[3], "ours") == 0);
  std::puts("ok");
}
