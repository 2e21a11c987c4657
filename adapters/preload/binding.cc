// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "binding.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string_view>

#include "evp.h"
#include "libcrypto.h"
#include "loader.h"
#include "references.h"

namespace sealane::preload {
namespace {

struct DriverObject {
  LoadedObject object;
  void* handle = nullptr;
  std::atomic<bool> open{false};  // it has references, and they were not bound
};

// Objects are added and never taken out; beyond these are more than a driver has.
constexpr size_t kMaxObjects = 64;
constexpr size_t kMaxReferences = 256;
constexpr size_t kMaxPath = 4096;
constinit DriverObject objects[kMaxObjects];
constinit std::atomic<size_t> object_count{0};

// A slot that we have bound and the dynamic linker may still write: who called for the first time
// before that has libcrypto's address put there when it is found.
struct LateSlot {
  Reference reference;
  Change change;  // to ours
};
constexpr size_t kMaxLate = 1024;
constinit LateSlot late_slots[kMaxLate]{};
constinit std::atomic<size_t> late_count{0};

constexpr unsigned long long kNothingSeen = std::numeric_limits<unsigned long long>::max();
constinit std::atomic<unsigned long long> seen_loads{kNothingSeen};

// Who writes the above, or slots.
constinit pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
class Writing {
 public:
  Writing() { pthread_mutex_lock(&writing); }
  ~Writing() { pthread_mutex_unlock(&writing); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
};

// Who walks the dynamic linker's list has a lock of its that a fork leaves locked in the child. So
// nobody begins to while somebody forks, who waits for those that have begun: a second or so, for
// code that we do not know may have the lock too.
constinit std::atomic<int> walking{0};
constinit std::atomic<int> forking{0};
// Few pauses: each is longer than asked for where there is much to do.
constexpr int kPatience = 1000;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};

// Not usleep: a thread must not be cancelled within a fork, which would not end then.
void pause_a_little() { syscall(SYS_nanosleep, &kPause, nullptr); }

// False: somebody forks.
template <typename See>
bool walk_objects(See* see, void* data) {
  walking.fetch_add(1);
  const bool allowed = forking.load() == 0;
  if (allowed) dl_iterate_phdr(see, data);
  walking.fetch_sub(1);
  return allowed;
}

DriverObject* find(uintptr_t at) {
  const size_t count = object_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (objects[i].object.holds(at)) return &objects[i];
  }
  return nullptr;
}

DriverObject* find(const void* code) { return find(reinterpret_cast<uintptr_t>(code)); }

struct Found {
  LoadedObject object;
  char path[kMaxPath];
};

// What is needed to bind an object, taken while one is bound. Not on the stack: a thread that calls
// dlopen or dlsym may have no more than these need.
struct Room {
  Found found;
  Reference references[kMaxReferences];
  Change changes[kMaxReferences];
  uintptr_t passed[kMaxObjects];  // where objects are that were tried in vain
  size_t passed_count = 0;
  bool any_gone = false;

  void pass(uintptr_t begin) { passed[passed_count++] = begin; }
  bool has_passed(uintptr_t begin) const {
    return std::find(passed, passed + passed_count, begin) != passed + passed_count;
  }

  // Null: there is no memory.
  static std::unique_ptr<Room> take() { return std::unique_ptr<Room>(new (std::nothrow) Room); }
};

// An object of the driver that is not in the list yet. Paths are copied: the object may be gone
// when it is looked at. Without room it is only said whether there is one. What is not relocated
// yet belongs to the dynamic linker; on this thread too, if code that it runs meanwhile asks.
struct Search {
  Room* room;
  bool any = false;
  bool nothing_new = false;
  bool any_later = false;
  unsigned long long loads = 0;
  LoadedObject program{};  // the first one

  static int see(dl_phdr_info* info, size_t, void* data) {
    auto& self = *static_cast<Search*>(data);
    self.loads = info->dlpi_adds;
    self.nothing_new = self.loads == seen_loads.load();
    if (self.program.end == 0) self.program = describe(*info);
    return self.nothing_new || self.finds(*info) ? 1 : 0;
  }

 private:
  bool finds(const dl_phdr_info& info) {
    if (!names_driver(info.dlpi_name) || std::strlen(info.dlpi_name) >= kMaxPath) return false;
    const LoadedObject object = describe(info);
    if (find(object.begin) != nullptr) return false;
    if (room != nullptr && room->has_passed(object.begin)) return false;
    if (!is_relocated(object, program)) return any_later = true, false;
    any = true;
    if (room == nullptr) return true;
    room->found.object = object;
    std::strcpy(room->found.path, info.dlpi_name);
    return true;
  }
};

void* keep_loaded(const char* path) {
  return *path == '\0' ? nullptr : real_dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void keep_library_loaded(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) != 0 && info.dli_fname != nullptr) keep_loaded(info.dli_fname);
}

// --- where an object's slots lead

// Those that begin a message come last: who calls while the slots are written has the rest of it
// where it began.
struct References {
  References(const LoadedObject& object, Room& room)
      : list(room.references), count(find_references(object, room.references)) {
    std::partition(room.references, room.references + count, [](const Reference& one) {
      return std::strstr(evp_hooks()[one.hook].name, "Init") == nullptr;
    });
  }
  std::span<const Reference> all() const { return {list, count}; }
  const Reference* list;
  size_t count;
};

// Members are in the hooks' order.
char* place(Libcrypto& table, size_t hook) {
  return reinterpret_cast<char*>(&table) + hook * sizeof(void*);
}
void* member(Libcrypto table, size_t hook) {
  void* function = nullptr;
  std::memcpy(&function, place(table, hook), sizeof function);
  return function;
}
void set_member(Libcrypto& table, size_t hook, void* function) {
  std::memcpy(place(table, hook), &function, sizeof function);
}

// The libcrypto that one of our functions stands in front of; kMaxLibcryptos: it is not ours.
size_t behind(size_t hook, const void* function) {
  const auto& ours = evp_hooks()[hook].functions;
  return static_cast<size_t>(std::find(ours, ours + kMaxLibcryptos, function) - ours);
}

enum class Leads : uint8_t { nowhere, to_linker, to_us, to_libcrypto };
Leads where(const LoadedObject& object, const Reference& reference) {
  void* const now = read_slot(reference);
  if (now == nullptr) return Leads::nowhere;  // a weak one, which its owner asks before
  if (behind(reference.hook, now) < kMaxLibcryptos) return Leads::to_us;
  if (!object.holds(reinterpret_cast<uintptr_t>(now))) return Leads::to_libcrypto;
  return reference.kind == SlotKind::call ? Leads::to_linker : Leads::nowhere;
}

// What the object has written into its own data is its business.
bool is_still_named(const Reference& reference) {
  if (reference.kind != SlotKind::data) return true;
  Dl_info info{};
  void* const now = read_slot(reference);
  return dladdr(now, &info) != 0 && info.dli_saddr == now && info.dli_sname != nullptr &&
         std::strcmp(info.dli_sname, evp_hooks()[reference.hook].name) == 0;
}

// --- whose libcrypto is behind them

// As the dynamic linker has it: a file's header says where its program headers are in the file, and
// they may be mapped elsewhere. Empty: nobody knows.
LoadedObject object_of(const void* code) {
  struct Looking {
    uintptr_t at;
    LoadedObject found;
    static int see(dl_phdr_info* info, size_t, void* data) {
      auto& self = *static_cast<Looking*>(data);
      const LoadedObject object = describe(*info);
      if (object.holds(self.at)) self.found = object;
      return object.holds(self.at) ? 1 : 0;
    }
  } looking{reinterpret_cast<uintptr_t>(code), {}};
  for (int i = 0; !walk_objects(&Looking::see, &looking) && i < kPatience; ++i) pause_a_little();
  return looking.found;
}

template <typename Holds>
bool all_of(const Libcrypto& table, Holds&& holds) {
  constexpr size_t kFunctions = sizeof table / sizeof(void*);
  for (size_t i = 0; i < kFunctions; ++i) {
    const void* const function = member(table, i);
    if (function != nullptr && !holds(function)) return false;
  }
  return true;
}

// All of it is one object's: a scope may have some functions from here and some from there.
bool find_one_libcrypto(Libcrypto& table, void* scope) {
  if (!find_libcrypto(table, scope)) return false;
  const LoadedObject object = object_of(reinterpret_cast<const void*>(table.cipher_of));
  return all_of(table, [&](const void* function) {
    return object.holds(reinterpret_cast<uintptr_t>(function));
  });
}

enum class Kind : uint8_t {
  whole,
  part,    // of somebody who makes contexts of his own
  few,     // names, of one who stands in front of a libcrypto
  nowhere  // known: the program has no more than the jump on to a library
};

bool is_jump_on(const void* function) {
  Dl_info info{};
  ElfW(Sym)* symbol = nullptr;
  void** const at = reinterpret_cast<void**>(&symbol);
  return dladdr1(function, &info, at, RTLD_DL_SYMENT) != 0 && symbol != nullptr &&
         symbol->st_shndx == SHN_UNDEF;
}

// Of the object that this function is in, and not of those that it needs. It stays loaded if it is
// a whole libcrypto.
Kind find_by_function(Libcrypto& table, const void* function) {
  if (is_jump_on(function)) return Kind::nowhere;
  Dl_info info{};
  link_map* map = nullptr;
  void** const at = reinterpret_cast<void**>(&map);
  if (dladdr1(function, &info, at, RTLD_DL_LINKMAP) == 0) return Kind::part;
  const char* const file = *map->l_name == '\0' ? nullptr : map->l_name;  // of the program: none
  void* const library = real_dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return Kind::part;  // in a namespace of its own
  const LoadedObject object = object_of(function);
  const auto holds = [&](const void* code) {
    return object.holds(reinterpret_cast<uintptr_t>(code));
  };
  if (find_one_libcrypto(table, library) && holds(reinterpret_cast<const void*>(table.cipher_of))) {
    return Kind::whole;
  }
  const bool makes = holds(real_dlsym(library, "EVP_CIPHER_CTX_new"));
  dlclose(library);
  return makes ? Kind::part : Kind::few;
}

// Others that stand in front of a libcrypto have a few names only; but who is linked to a part, or
// to two, has contexts that are not those of one whole.
Kind find_by_slots(Libcrypto& table, const LoadedObject& object, const References& references) {
  Kind found = Kind::nowhere;
  for (const Reference& reference : references.all()) {
    if (where(object, reference) != Leads::to_libcrypto || !is_still_named(reference)) continue;
    const void* const function = read_slot(reference);
    const bool known = found == Kind::whole;
    if (known && member(table, reference.hook) == function) continue;
    Libcrypto other;
    const Kind kind = find_by_function(other, function);
    if (kind == Kind::part) return kind;
    if (kind == Kind::few && !known) found = kind;
    if (kind != Kind::whole) continue;
    if (known && std::memcmp(&table, &other, sizeof table) != 0) return Kind::part;
    table = other;
    found = kind;
  }
  return found;
}

// Slots that are open go to the first who has the name: with or without its version. The program's
// jump on to a library is none of those: calls go past it.
bool is_first_in(const Libcrypto& table, void* scope) {
  const auto hooks = evp_hooks();
  const auto is_first = [&](const char* name, const void* function) {
    const void* const first = real_dlsym(scope, name);
    return first == nullptr || function == nullptr || first == function || is_jump_on(first);
  };
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (!is_first(hooks[i].name, member(table, i))) return false;
  }
  return is_first("EVP_CIPHER_CTX_new", reinterpret_cast<const void*>(table.make));
}

bool find_by_scope(Libcrypto& table, void* own, Scope how) {
  if (how == Scope::unknown) {
    Libcrypto other;
    const bool everybodys = find_one_libcrypto(table, RTLD_DEFAULT);
    const bool owns = find_one_libcrypto(everybodys ? other : table, own);
    if (!everybodys && !owns) return false;
    if (everybodys && owns && std::memcmp(&table, &other, sizeof table) != 0) return false;
    return is_first_in(table, RTLD_DEFAULT) && is_first_in(table, own);
  }
  void* const first = how == Scope::own_first ? own : RTLD_DEFAULT;
  void* const second = how == Scope::own_first ? RTLD_DEFAULT : own;
  return (find_one_libcrypto(table, first) || find_one_libcrypto(table, second)) &&
         is_first_in(table, first);
}

// What the object calls without us.
bool find_table(Libcrypto& table, const LoadedObject& object, void* handle,
                const References& references, Scope how) {
  const Kind kind = find_by_slots(table, object, references);
  if (kind == Kind::part || kind == Kind::few) return false;
  if (kind == Kind::nowhere) {
    if (!find_by_scope(table, handle, how)) return false;
    keep_library_loaded(reinterpret_cast<const void*>(table.cipher_of));
  }
  for (const Reference& reference : references.all()) {
    if (where(object, reference) != Leads::to_libcrypto) continue;
    if (is_still_named(reference)) set_member(table, reference.hook, read_slot(reference));
  }
  return true;
}

// --- under the lock

void* bound_value(const LoadedObject& object, const Reference& one, size_t libcrypto) {
  void* const now = read_slot(one);
  void* const behind_us = member(libcryptos[libcrypto], one.hook);
  const Leads leads = where(object, one);
  if (behind_us == nullptr || leads == Leads::nowhere || leads == Leads::to_us) return now;
  if (one.kind == SlotKind::data && now != behind_us) return now;
  return evp_hooks()[one.hook].functions[libcrypto];
}

// Nothing is allocated under the lock: what an allocator asks may come to bind_late_slots().
void note_late(const LoadedObject& object, const References& references, const Change* changes) {
  size_t count = late_count.load();
  for (size_t i = 0; i < references.count && count < kMaxLate; ++i) {
    const Reference& one = references.list[i];
    void* const ours = changes[i].to;
    const size_t libcrypto = behind(one.hook, ours);
    if (libcrypto == kMaxLibcryptos || !can_be_late(object, one)) continue;
    late_slots[count++] = {one, {member(libcryptos[libcrypto], one.hook), ours}};
  }
  late_count.store(count);
}

void bind_slots(const LoadedObject& object, const References& references, const Libcrypto& table,
                Change* changes) {
  const size_t libcrypto = keep_libcrypto(table);
  if (libcrypto == kMaxLibcryptos) return;
  for (size_t i = 0; i < references.count; ++i) {
    const Reference& one = references.list[i];
    changes[i].from = read_slot(one);
    changes[i].to = bound_value(object, one, libcrypto);
  }
  if (write_slots(object, references.all(), {changes, references.count})) {
    note_late(object, references, changes);
  }
}

// Did it have any of ours?
bool unbind_slots(const LoadedObject& object, Room& room) {
  const References references(object, room);
  Change* const changes = room.changes;
  bool any = false;
  for (size_t i = 0; i < references.count; ++i) {
    const Reference& one = references.list[i];
    void* const now = read_slot(one);
    const size_t libcrypto = behind(one.hook, now);
    const bool ours = libcrypto < kMaxLibcryptos;
    changes[i] = {now, ours ? member(libcryptos[libcrypto], one.hook) : now};
    any = any || ours;
  }
  write_slots(object, references.all(), {changes, references.count});
  return any;
}

// --- events

// Null: it is gone, or another one is at its path.
void* keep_loaded(const Found& found) {
  void* const handle = keep_loaded(found.path);
  link_map* map = nullptr;
  const bool same = handle != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 &&
                    map->l_addr == found.object.base;
  return same ? handle : nullptr;
}

void add(Room& room, Scope how) {
  const Found& found = room.found;
  void* const handle = keep_loaded(found);
  if (handle == nullptr) {
    room.any_gone = true;
    return room.pass(found.object.begin);
  }
  const References references(found.object, room);
  Libcrypto table;
  const bool known =
      references.count > 0 && find_table(table, found.object, handle, references, how);

  const Writing alone;
  const size_t at = object_count.load();
  if (find(found.object.begin) != nullptr) return;  // another thread was faster
  if (at == kMaxObjects) return room.pass(found.object.begin);
  objects[at].object = found.object;
  objects[at].handle = handle;
  const bool binds = known && is_binding();
  objects[at].open = references.count > 0 && !binds;
  if (binds) bind_slots(found.object, references, table, room.changes);
  object_count.store(at + 1, std::memory_order_release);
}

// There may be a libcrypto for it by now.
void try_again(DriverObject& driver, Room& room) {
  const References references(driver.object, room);
  Libcrypto table;
  if (!find_table(table, driver.object, driver.handle, references, Scope::unknown)) return;
  const Writing alone;
  if (!is_binding() || !driver.open.exchange(false)) return;
  bind_slots(driver.object, references, table, room.changes);
}

// What the dynamic linker has written over since.
void bind_late_slots() {
  if (late_count.load() == 0) return;
  const Writing alone;
  for (size_t i = 0; is_binding() && i < late_count.load(); ++i) {
    replace_in_slot(late_slots[i].reference, late_slots[i].change);
  }
}

bool any_open() {
  const size_t count = object_count.load();
  return std::any_of(objects, objects + count,
                     [](const DriverObject& one) { return one.open.load(); });
}

// All that was loaded up to now, whoever loads more meanwhile. What could not be seen or had now is
// looked for again the next time, as all is if there is no memory.
void bind_what_is_new(Scope how, int patience) {
  std::unique_ptr<Room> room;
  for (;;) {
    Search search{.room = room.get()};
    while (!walk_objects(&Search::see, &search)) {
      if (patience-- == 0) return;
      pause_a_little();
    }
    if (search.nothing_new) return;
    if (!room && (search.any || any_open())) {
      room = Room::take();
      if (!room) return;
      continue;
    }
    const bool full = room && room->passed_count == kMaxObjects;
    if (search.any && !full) {
      add(*room, how);
      continue;
    }
    for (size_t i = 0; room && i < object_count.load(); ++i) {
      if (objects[i].open.load()) try_again(objects[i], *room);
    }
    if (!search.any_later && !(room && room->any_gone)) seen_loads.store(search.loads);
    dlerror();  // what we did not find is nobody's error
    return;
  }
}

// What the dynamic linker is asked may ask for memory, and the allocator ask us. (Of the storage
// that is there without asking.)
__attribute__((tls_model("initial-exec"))) constinit thread_local bool binding_now = false;

void bind_driver(Scope how, int patience) {
  if (!is_binding() || binding_now) return;
  binding_now = true;
  bind_what_is_new(how, patience);
  bind_late_slots();
  binding_now = false;
}

// Our function in front of what dlsym found, if that is of a whole OpenSSL 3.
void* in_front_of(void* function, size_t hook) {
  Libcrypto table;
  if (find_by_function(table, function) != Kind::whole) return nullptr;
  if (member(table, hook) != function) return nullptr;
  const Writing alone;
  const size_t libcrypto = keep_libcrypto(table);
  return libcrypto < kMaxLibcryptos ? evp_hooks()[hook].functions[libcrypto] : nullptr;
}

// Who held the lock is not in the child. What was half written there is not counted, or written
// again. (Nor is the list of hooks half made.) A child asks the dynamic linker nothing on our
// account unless it calls cuInit itself: a lock of that one's may be held for good, too.
__attribute__((constructor)) void be_ready_to_fork() {
  evp_hooks();
  const auto prepare = [] {
    forking.fetch_add(1);
    for (int i = 0; walking.load() > 0 && i < kPatience; ++i) pause_a_little();
  };
  const auto go_on = [] { forking.fetch_sub(1); };
  pthread_atfork(prepare, go_on, [] {
    writing = PTHREAD_MUTEX_INITIALIZER;
    binding_on.store(false);
    walking.store(0);
    forking.store(0);
  });
}

}  // namespace

constinit std::atomic<bool> binding_on{false};

bool names_driver(const char* path) {
  const std::string_view whole = path;
  const std::string_view file = whole.substr(whole.rfind('/') + 1);
  return file.starts_with("libcuda.so") || file.starts_with("libnvidia-") ||
         file.starts_with("libsealane-emu-");
}

bool in_driver(const void* code) { return find(code) != nullptr; }

void bind_driver(Scope how) { bind_driver(how, kPatience); }

void bind_driver_by_the_way() { bind_driver(Scope::unknown, 0); }

void start_binding() {
  if (!binding_on.exchange(true)) seen_loads.store(kNothingSeen);
  bind_driver(Scope::unknown);
}

void stop_binding() {
  const auto room = Room::take();  // without, they pass on what they are asked
  const Writing alone;
  binding_on.store(false);
  for (size_t i = 0; room && i < object_count.load(); ++i) {
    if (unbind_slots(objects[i].object, *room)) objects[i].open.store(true);
  }
  if (room) late_count.store(0);
}

// By RTLD_DEFAULT everybody's names come first; then those of what the caller needs, which are not
// ours to find.
void* hook_for_libcrypto(void* handle, const char* name, const void* caller) {
  void* real = real_dlsym(handle, name);
  const DriverObject* const asks = find(caller);
  if (real == nullptr && handle == RTLD_DEFAULT && asks != nullptr) {
    real = real_dlsym(asks->handle, name);
  }
  const auto hooks = evp_hooks();
  for (size_t i = 0; real != nullptr && i < hooks.size(); ++i) {
    if (std::strcmp(hooks[i].name, name) != 0) continue;
    void* const ours = in_front_of(real, i);
    if (ours != nullptr) dlerror();  // of names that a libcrypto may be without
    return ours;
  }
  return nullptr;
}

}  // namespace sealane::preload
