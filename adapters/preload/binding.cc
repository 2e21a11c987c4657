// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "binding.h"

#include <dlfcn.h>
#include <pthread.h>

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
  std::atomic<bool> open{false};  // it has references, and there was no libcrypto for them
};

// Objects are added and never taken out; beyond these are more than a driver has.
constexpr size_t kMaxObjects = 64;
constexpr size_t kMaxReferences = 256;
constexpr size_t kMaxPath = 4096;
constinit DriverObject objects[kMaxObjects];
constinit std::atomic<size_t> object_count{0};
constinit std::atomic<unsigned long long> seen_loads{
    std::numeric_limits<unsigned long long>::max()};

// Who writes the above, or slots.
constinit pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
class Writing {
 public:
  Writing() { pthread_mutex_lock(&writing); }
  ~Writing() { pthread_mutex_unlock(&writing); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
};
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

  // Null: there is no memory.
  static std::unique_ptr<Room> take() { return std::unique_ptr<Room>(new (std::nothrow) Room); }
};

// An object of the driver that is not in the list yet, after `skip` others. Paths are copied: the
// object may be gone when it is looked at. Without room it is only said whether there is one.
struct Search {
  size_t skip;
  Room* room;
  bool any = false;
  unsigned long long loads = 0;

  static int see(dl_phdr_info* info, size_t, void* data) {
    auto& self = *static_cast<Search*>(data);
    self.loads = info->dlpi_adds;
    if (info->dlpi_adds == seen_loads.load()) return 1;  // nothing new
    if (!names_driver(info->dlpi_name) || std::strlen(info->dlpi_name) >= kMaxPath) return 0;
    const LoadedObject object = describe(*info);
    if (find(object.begin) != nullptr || self.skip-- > 0) return 0;
    self.any = true;
    if (self.room == nullptr) return 1;
    self.room->found.object = object;
    std::strcpy(self.room->found.path, info->dlpi_name);
    return 1;
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

struct References {
  References(const LoadedObject& object, Room& room)
      : list(room.references), count(find_references(object, room.references)) {}
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

enum class Kind : uint8_t { whole, part, none };

// Is the library that this function is of a whole libcrypto? It stays loaded then. (None: we cannot
// have it. Of the program itself an address may lead on to a library.)
Kind find_by_function(Libcrypto& table, const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return Kind::none;
  void* const library = real_dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return Kind::none;
  if (find_libcrypto(table, library)) return Kind::whole;
  dlclose(library);
  return Kind::part;
}

// Others that stand in front of a libcrypto have a few names only; but who is linked to nothing but
// a part has contexts that are no whole one's.
Kind find_by_slots(Libcrypto& table, const LoadedObject& object, const References& references) {
  Kind found = Kind::none;
  for (const Reference& reference : references.all()) {
    if (where(object, reference) != Leads::to_libcrypto) continue;
    const Kind kind = find_by_function(table, read_slot(reference));
    if (kind == Kind::whole) return kind;
    if (kind == Kind::part) found = kind;
  }
  return found;
}

bool find_by_scope(Libcrypto& table, void* own, Scope how) {
  if (how == Scope::unknown) {
    Libcrypto other;
    const bool everybodys = find_libcrypto(table, RTLD_DEFAULT);
    if (!find_libcrypto(everybodys ? other : table, own)) return everybodys;
    return !everybodys || std::memcmp(&table, &other, sizeof table) == 0;
  }
  const bool own_first = how == Scope::own_first;
  return find_libcrypto(table, own_first ? own : RTLD_DEFAULT) ||
         find_libcrypto(table, own_first ? RTLD_DEFAULT : own);
}

// What the object calls without us.
bool find_table(Libcrypto& table, const LoadedObject& object, void* handle,
                const References& references, Scope how) {
  const Kind kind = find_by_slots(table, object, references);
  if (kind == Kind::part) return false;
  if (kind == Kind::none) {
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

void bind_slots(const LoadedObject& object, const References& references, const Libcrypto& table,
                Change* changes) {
  const size_t libcrypto = keep_libcrypto(table);
  if (libcrypto == kMaxLibcryptos) return;
  for (size_t i = 0; i < references.count; ++i) {
    const Reference& one = references.list[i];
    changes[i].from = read_slot(one);
    changes[i].to = bound_value(object, one, libcrypto);
  }
  write_slots(object, references.all(), {changes, references.count});
}

void unbind_slots(const LoadedObject& object, Room& room) {
  const References references(object, room);
  Change* const changes = room.changes;
  for (size_t i = 0; i < references.count; ++i) {
    const Reference& one = references.list[i];
    void* const now = read_slot(one);
    const size_t libcrypto = behind(one.hook, now);
    const bool ours = libcrypto < kMaxLibcryptos;
    changes[i] = {now, ours ? member(libcryptos[libcrypto], one.hook) : now};
  }
  write_slots(object, references.all(), {changes, references.count});
}

// --- events

// The object was seen, so it is mapped; once the dynamic linker has given a handle to it, it is
// relocated too, whichever thread is loading it. False: it is gone.
bool add(Room& room, Scope how) {
  const Found& found = room.found;
  void* const handle = keep_loaded(found.path);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return false;
  if (map->l_addr != found.object.base) return false;  // another one at its path
  const References references(found.object, room);
  Libcrypto table;
  const bool known =
      references.count > 0 && find_table(table, found.object, handle, references, how);

  const Writing alone;
  const size_t at = object_count.load();
  if (find(found.object.begin) != nullptr) return true;  // another thread was faster
  if (at == kMaxObjects) return false;
  objects[at].object = found.object;
  objects[at].handle = handle;
  objects[at].open = references.count > 0 && !known;
  if (known && is_binding()) bind_slots(found.object, references, table, room.changes);
  object_count.store(at + 1, std::memory_order_release);
  return true;
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

bool any_open() {
  const size_t count = object_count.load();
  return std::any_of(objects, objects + count,
                     [](const DriverObject& one) { return one.open.load(); });
}

// All that was loaded up to now, whoever loads more meanwhile. False: there is no memory for it.
bool bind_what_is_new(Scope how, unsigned long long& loads) {
  std::unique_ptr<Room> room;
  for (size_t gone = 0;;) {
    Search search{.skip = gone, .room = room.get()};
    dl_iterate_phdr(&Search::see, &search);
    loads = search.loads;
    if (loads == seen_loads.load()) return true;
    if (!room && (search.any || any_open())) {
      room = Room::take();
      if (!room) return false;
      continue;
    }
    if (!search.any) break;
    gone += add(*room, how) ? 0 : 1;
  }
  for (size_t i = 0; room && i < object_count.load(); ++i) {
    if (objects[i].open.load()) try_again(objects[i], *room);
  }
  return true;
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
  pthread_atfork(nullptr, nullptr, [] {
    writing = PTHREAD_MUTEX_INITIALIZER;
    binding_on.store(false);
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

void bind_driver(Scope how) {
  unsigned long long loads = 0;
  if (!is_binding() || !bind_what_is_new(how, loads) || loads == seen_loads.load()) return;
  seen_loads.store(loads);
  dlerror();  // what we did not find is nobody's error
}

void start_binding() {
  binding_on.store(true);
  bind_driver(Scope::unknown);
}

void stop_binding() {
  const auto room = Room::take();  // without, they pass on what they are asked
  const Writing alone;
  binding_on.store(false);
  for (size_t i = 0; room && i < object_count.load(); ++i) unbind_slots(objects[i].object, *room);
}

void* hook_for_libcrypto(const char* name, void* real) {
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
