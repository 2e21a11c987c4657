// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "emu/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "base/text.h"
#include "emu/config/identity.h"

namespace sealane::emu {
namespace {

// Reads variables one by one and remembers the first that makes no sense.
class Reader {
 public:
  explicit Reader(Lookup lookup) : lookup_(lookup) {}

  std::optional<std::string_view> text(const char* name) {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  void flag(const char* name, bool& out) {
    const auto value = text(name);
    if (!value) return;
    if (*value == "on" || *value == "1") {
      out = true;
    } else if (*value == "off" || *value == "0") {
      out = false;
    } else {
      complain(name, *value, "on or off");
    }
  }

  // A whole number, with an optional K, M or G for powers of 1024.
  template <typename Int>
  void number(const char* name, Int& out, uint64_t least, uint64_t most) {
    const auto value = text(name);
    if (!value) return;
    const auto parsed = parse_bytes(*value);
    if (!parsed || *parsed < least || *parsed > most) {
      return complain(name, *value, concat("a number from ", least, " to ", most));
    }
    out = static_cast<Int>(*parsed);
  }

  template <typename Enum, size_t N>
  void word(const char* name, Enum& out, const std::pair<std::string_view, Enum> (&words)[N]) {
    const auto value = text(name);
    if (!value) return;
    std::string known;
    for (const auto& [word, meaning] : words) {
      if (word == *value) {
        out = meaning;
        return;
      }
      known += known.empty() ? concat(word) : concat(", ", word);
    }
    complain(name, *value, concat("one of ", known));
  }

  void complain(const char* name, std::string_view value, std::string_view wanted) {
    if (problem_.empty()) problem_ = concat(name, " is '", value, "', it must be ", wanted);
  }

  static std::optional<uint64_t> parse_bytes(std::string_view word) {
    uint64_t value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr == word.data()) return std::nullopt;
    const std::string_view unit(parsed.ptr, static_cast<size_t>(word.end() - parsed.ptr));
    constexpr std::string_view kUnits = "KMG";
    if (unit.empty()) return value;
    const size_t power = kUnits.find(unit);
    if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
    const uint64_t scale = uint64_t{1} << (10 * (power + 1));
    if (value > UINT64_MAX / scale) return std::nullopt;
    return value * scale;
  }

  const std::string& problem() const { return problem_; }

 private:
  Lookup lookup_;
  std::string problem_;
};

constexpr std::pair<std::string_view, Reach> kReaches[] = {{"helper", Reach::helper},
                                                           {"deepbind", Reach::deepbind},
                                                           {"dlsym", Reach::dlsym},
                                                           {"linked", Reach::linked},
                                                           {"own", Reach::own}};
constexpr std::pair<std::string_view, Attack> kAttacks[] = {
    {"flip", Attack::flip}, {"drop", Attack::drop},         {"duplicate", Attack::duplicate},
    {"swap", Attack::swap}, {"truncate", Attack::truncate}, {"replay", Attack::replay}};

constexpr std::pair<std::string_view, bool> kPageable[] = {{"blocking", false}, {"async", true}};
constexpr std::pair<std::string_view, bool> kMapped[] = {{"copied", false}, {"live", true}};

constexpr std::pair<std::string_view, bool> kMachineCode[] = {{"refuse", false}, {"skip", true}};

// flip@3 or flip@3:to_host
void read_adversary(Reader& reader, Adversary& out) {
  constexpr const char* kName = "SEALANE_EMU_ADVERSARY";
  constexpr std::string_view kWanted =
      "ACTION@N[:to_device|:to_host] with an action of flip, drop, duplicate, swap, truncate, "
      "replay";
  const auto value = reader.text(kName);
  if (!value) return;
  const size_t at = value->find('@');
  const size_t colon = std::min(value->find(':'), value->size());
  if (at == std::string_view::npos || at > colon) return reader.complain(kName, *value, kWanted);
  const std::string_view action = value->substr(0, at);
  const auto known = std::find_if(std::begin(kAttacks), std::end(kAttacks),
                                  [&](const auto& attack) { return attack.first == action; });
  const auto message = Reader::parse_bytes(value->substr(at + 1, colon - at - 1));
  const std::string_view side = value->substr(colon);
  const bool side_known = side.empty() || side == ":to_device" || side == ":to_host";
  if (known == std::end(kAttacks) || !message || *message == 0 || !side_known) {
    return reader.complain(kName, *value, kWanted);
  }
  out = {known->second, *message, side == ":to_host" ? Direction::to_host : Direction::to_device};
}

// 9.0 or 90
void read_capability(Reader& reader, int& out) {
  constexpr const char* kName = "SEALANE_EMU_COMPUTE_CAPABILITY";
  const auto value = reader.text(kName);
  if (!value) return;
  std::string digits(*value);
  if (const size_t dot = digits.find('.'); dot != std::string::npos && dot + 2 == digits.size()) {
    digits.erase(dot, 1);
  }
  const auto number = Reader::parse_bytes(digits);
  if (!number || *number < 50 || *number > 129) {
    return reader.complain(kName, *value, "a number from 5.0 to 12.9");
  }
  out = static_cast<int>(*number);
}

// memory, races, or both with a comma
void read_checks(Reader& reader, Config& out) {
  constexpr const char* kName = "SEALANE_EMU_CHECK";
  const auto value = reader.text(kName);
  if (!value) return;
  for (std::string_view rest = *value; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    if (word != "memory" && word != "races") {
      return reader.complain(kName, *value, "memory, races or memory,races");
    }
    (word == "memory" ? out.check_memory : out.check_races) = true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

void read_time(Reader& reader, Config& out) {
  const auto pacing = reader.text("SEALANE_EMU_PACING");
  if (pacing && *pacing != "none" && *pacing != "model") {
    reader.complain("SEALANE_EMU_PACING", *pacing, "none or model");
  }
  out.paced = pacing && *pacing == "model";
  out.dilation = out.paced ? automatic_dilation(std::thread::hardware_concurrency()) : 1;
  const auto dilation = reader.text("SEALANE_EMU_DILATION");
  if (!dilation || *dilation == "auto") return;
  double value = 0;
  const auto parsed = std::from_chars(dilation->data(), dilation->data() + dilation->size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == dilation->data() + dilation->size();
  if (!whole || !(value >= 1) || !(value <= 10000)) {
    return reader.complain("SEALANE_EMU_DILATION", *dilation, "auto or a number from 1 to 10000");
  }
  if (out.paced) out.dilation = value;
}

// The GPU an entry of CUDA_VISIBLE_DEVICES names: the number it begins with, whatever comes behind
// (CUDA reads it as strtoul does), or the beginning of a UUID that no other GPU's shares. -1: none.
int find_visible(std::string_view entry, int gpus) {
  int number = -1;
  const size_t sign = entry.starts_with('+') ? 1 : 0;
  const auto parsed = std::from_chars(entry.data() + sign, entry.data() + entry.size(), number);
  if (parsed.ec == std::errc()) return number < gpus ? number : -1;
  if (entry.size() <= 4 || !entry.starts_with("GPU-")) return -1;
  int found = -1;
  for (int i = 0; i < gpus; ++i) {
    if (!std::string_view(uuid_text(i)).starts_with(entry)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

// As CUDA reads it: the first entry that names no GPU ends the list, one named twice empties it.
std::vector<int> read_visible(const char* list, int gpus) {
  std::vector<int> out;
  if (list == nullptr) {
    for (int i = 0; i < gpus; ++i) out.push_back(i);
    return out;
  }
  std::string_view rest = list;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view entry = rest.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    const int found = find_visible(entry, gpus);
    if (found < 0) break;
    if (std::find(out.begin(), out.end(), found) != out.end()) return {};
    out.push_back(found);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

// Engines take most of what a GPU says it has, so it must not have more than this machine can give.
uint64_t default_memory(const Config& config) {
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<uint64_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
  const uint64_t share = pages * page / 2 / static_cast<uint64_t>(std::max(1, config.gpus));
  const auto modelled = static_cast<uint64_t>(config.model.gpu_memory_bytes);
  return std::max<uint64_t>(64_MiB, std::min(modelled, share)) & ~(2_MiB - 1);
}

}  // namespace

double automatic_dilation(unsigned cores) {
  // The host's real work must fit in its modelled time. One core: stock sealing modelled at
  // 11 GB/s is done by a libcrypto of 4 GB/s here. All cores: whatever fills a modelled link of
  // 55 GB/s is sealed by workers, published and verified here at 2 to 3 GB/s for each of our cores.
  return std::max(4.0, std::ceil(40.0 / std::max(1u, cores)));
}

Result<Config> read_config(Lookup lookup) {
  Reader reader(lookup);
  Config out;
  const auto words = reader.text("SEALANE_EMU_MODEL");
  auto model = parse_model(words.value_or(std::string_view()));
  if (!model) return model.error();
  out.model = *model;
  out.queues = static_cast<int>(std::clamp(out.model.gpu_queues, 1.0, 32.0));
  out.message_bytes_max = static_cast<uint64_t>(std::max(64.0, out.model.message_bytes_max));
  out.rotation_bytes = static_cast<uint64_t>(out.model.key_rotation_bytes);
  out.contexts_max = static_cast<uint64_t>(std::max(1.0, out.model.contexts_max));

  reader.flag("SEALANE_EMU_CC", out.cc);
  reader.number("SEALANE_EMU_GPUS", out.gpus, 0, 16);
  out.visible = read_visible(lookup("CUDA_VISIBLE_DEVICES"), out.gpus);
  reader.number("SEALANE_EMU_MEMORY", out.memory_bytes, 1_MiB, uint64_t{1} << 42);
  if (const auto name = reader.text("SEALANE_EMU_NAME")) out.gpu_name = *name;
  reader.word("SEALANE_EMU_REACH", out.reach, kReaches);
  reader.flag("SEALANE_EMU_STAGED", out.staged);
  reader.flag("SEALANE_EMU_AAD", out.additional_data);
  reader.number("SEALANE_EMU_UPDATES", out.updates, 1, 64);
  reader.flag("SEALANE_EMU_FRESH_CONTEXTS", out.fresh_contexts);
  reader.flag("SEALANE_EMU_SEAL_THREAD", out.seal_thread);
  reader.flag("SEALANE_EMU_WIPES", out.wipes);
  reader.number("SEALANE_EMU_CHATTER", out.chatter, 0, 1000000);
  reader.number("SEALANE_EMU_QUEUES", out.queues, 1, 32);
  reader.flag("SEALANE_EMU_MEMOPS", out.stream_memory_operations);
  reader.word("SEALANE_EMU_PAGEABLE", out.pageable_async, kPageable);
  reader.word("SEALANE_EMU_MAPPED", out.mapped_live, kMapped);
  reader.number("SEALANE_EMU_MESSAGE", out.message_bytes_max, 64, 64_MiB);
  reader.number("SEALANE_EMU_SLOTS", out.bounce_slots, 1, 64);
  reader.number("SEALANE_EMU_ROTATE", out.rotation_bytes, 1, uint64_t{1} << 50);
  reader.number("SEALANE_EMU_CONTEXTS", out.contexts_max, 1, 1024);
  read_capability(reader, out.compute_capability);
  read_checks(reader, out);
  reader.word("SEALANE_EMU_MACHINE_CODE", out.skip_machine_code, kMachineCode);
  reader.number("SEALANE_EMU_WORKERS", out.workers, 0, 1024);
  read_adversary(reader, out.adversary);
  read_time(reader, out);
  if (const auto kernels = reader.text("SEALANE_EMU_KERNELS")) out.kernels = *kernels;
  if (const auto stats = reader.text("SEALANE_EMU_STATS")) out.stats = *stats;
  if (!reader.problem().empty()) return usage_error(reader.problem());
  if (out.memory_bytes == 0) out.memory_bytes = default_memory(out);
  return out;
}

const Config* config() {
  static const Config* const read = []() -> const Config* {
    auto parsed = read_config([](const char* name) -> const char* { return std::getenv(name); });
    if (parsed) return new Config(std::move(*parsed));
    std::fprintf(stderr, "sealane emulated GPU: %s\n", parsed.error().message.c_str());
    return nullptr;
  }();
  return read;
}

}  // namespace sealane::emu
