// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/seal_trial.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/try.h"
#include "seal/openssl.h"
#include "seal/stream_copy.h"

namespace sealane::bench {
namespace {

constexpr const char* kMemcpy = "memcpy";
constexpr const char* kStreamCopy = "stream_copy";
constexpr const char* kOpenssl = "openssl";
std::string seal_name(const std::string& engine) { return engine + " seal"; }
std::string open_name(const std::string& engine) { return engine + " open"; }

// A slice is this long unless one record is longer: 0.03 to 0.2 ms, depending on the variant.
constexpr uint64_t kSliceBytes = 1_MiB;

// A walk of several last-level caches, but no more than a small machine can spare.
constexpr uint64_t kDramBytesMin = 64_MiB;
constexpr uint64_t kDramBytesMax = 256_MiB;

struct Record {
  Bytes source;
  MutableBytes destination;
  Iv iv;    // with which
  Tag tag;  // the source is a sealed record
};

class Walk {
 public:
  Walk(MutableBytes source, MutableBytes destination, uint64_t record_bytes) {
    records_.resize(source.size() / record_bytes);
    for (size_t i = 0; i < records_.size(); ++i) {
      records_[i].source = source.subspan(i * record_bytes, record_bytes);
      records_[i].destination = destination.subspan(i * record_bytes, record_bytes);
    }
  }

  std::vector<Record>& records() { return records_; }

  const Record& next() {
    if (at_ == records_.size()) at_ = 0;
    return records_[at_++];
  }

 private:
  std::vector<Record> records_;
  size_t at_ = 0;
};

Iv take_iv(uint64_t& counter) {
  Iv iv{};
  store_le(iv.data(), counter++);
  return iv;
}

// Seals the source in place. Which engine does it makes no difference to the others.
void seal_source(Walk& walk, const Aead& aead, MutableBytes source, uint64_t& counter) {
  for (Record& record : walk.records()) {
    const size_t offset = static_cast<size_t>(record.source.data() - source.data());
    record.iv = take_iv(counter);
    aead.seal(record.iv, {}, record.source, source.subspan(offset, record.source.size()),
              record.tag);
  }
}

// How many records a slice has, and how many of the same variant run untimed before it: what they
// bring into a small walk's cache, and the dirty lines they leave behind on a large one, make the
// slice pay for its own memory traffic rather than for its predecessor's.
struct Slice {
  size_t records;
  size_t warming;
};

Slice slice_of(Where where, uint64_t record_bytes, size_t walk_records) {
  const size_t records = std::max<size_t>(1, kSliceBytes / record_bytes);
  if (where == Where::dram) return {records, records};
  return {std::max(records, walk_records), walk_records};
}

template <typename Work>
Variant variant_of(std::string name, Walk& walk, Slice slice, Work work) {
  const auto run = [&walk, work](size_t records) {
    for (size_t i = 0; i < records; ++i) work(walk.next());
  };
  const uint64_t record_bytes = walk.records().front().source.size();
  return {std::move(name), slice.records * record_bytes, [=] { run(slice.records); },
          [=] { run(slice.warming); }};
}

Variant seal_variant(const std::string& engine, const Aead& aead, Walk& walk, Slice slice,
                     uint64_t& counter) {
  return variant_of(seal_name(engine), walk, slice, [&aead, &counter](const Record& record) {
    Tag tag;
    aead.seal(take_iv(counter), {}, record.source, record.destination, tag);
  });
}

Variant open_variant(const std::string& engine, const Aead& aead, Walk& walk, Slice slice) {
  return variant_of(open_name(engine), walk, slice, [&aead](const Record& record) {
    const Status genuine = aead.open(record.iv, {}, record.source, record.tag, record.destination);
    SEALANE_CHECK(genuine.ok(), "a record that was just sealed does not open");
  });
}

OpResult result_of(const Interleave& measured, const std::string& name,
                   const std::optional<std::string>& openssl) {
  OpResult result{measured.rate_gb_s(name), measured.ratio(name, kMemcpy), std::nullopt};
  if (openssl) result.vs_openssl = measured.ratio(name, *openssl);
  return result;
}

}  // namespace

const char* to_string(Where where) { return where == Where::l2 ? "l2" : "dram"; }

uint64_t walk_bytes(Where where, uint64_t record_bytes, const CacheSizes& caches) {
  if (where == Where::l2) {
    const uint64_t room = caches.l2_bytes / 4;  // for the source, as much for the destination
    return room - room % record_bytes;
  }
  const uint64_t wanted = std::clamp(4 * caches.last_level_bytes, kDramBytesMin, kDramBytesMax);
  const uint64_t room = std::max(std::min(wanted, available_memory_bytes() / 8), record_bytes);
  return room - room % record_bytes;
}

SealTrial::SealTrial(Buffer source, Buffer destination, const Clock& clock)
    : source_(std::move(source)), destination_(std::move(destination)), clock_(clock) {}

Result<SealTrial> SealTrial::make(const std::vector<const Engine*>& engines,
                                  uint64_t walk_bytes_max, const Clock& clock) {
  SEALANE_LET(auto source, Buffer::make(walk_bytes_max));
  SEALANE_LET(auto destination, Buffer::make(walk_bytes_max));

  SealTrial trial(std::move(source), std::move(destination), clock);
  SystemRandom random;
  const Key key = Key::random(random);  // one for all: any engine opens what another sealed
  for (const Engine* engine : engines) {
    const bool plain = engine->name() == kOpenssl;
    trial.contestants_.push_back(
        {std::string(engine->name()),
         plain ? make_openssl_aead(key, PrivateCopy::no) : engine->make(key)});
  }
  return trial;
}

TrialResult SealTrial::measure(Where where, uint64_t record_bytes, uint64_t walk_size,
                               Duration budget) {
  const MutableBytes source = source_.bytes().first(walk_size);
  Walk walk(source, destination_.bytes().first(walk_size), record_bytes);
  seal_source(walk, *contestants_.front().aead, source, sealed_);
  const Slice slice = slice_of(where, record_bytes, walk.records().size());

  std::vector<Variant> variants;
  variants.push_back(variant_of(kMemcpy, walk, slice, [](const Record& record) {
    std::memcpy(record.destination.data(), record.source.data(), record.source.size());
  }));
  variants.push_back(variant_of(kStreamCopy, walk, slice, [](const Record& record) {
    stream_copy(record.destination, record.source);
  }));
  bool with_openssl = false;
  for (const Contestant& contestant : contestants_) {
    variants.push_back(seal_variant(contestant.name, *contestant.aead, walk, slice, sealed_));
    variants.push_back(open_variant(contestant.name, *contestant.aead, walk, slice));
    with_openssl = with_openssl || contestant.name == kOpenssl;
  }

  Interleave measured(std::move(variants), clock_);
  measured.run_for(budget);

  const auto against = [&](std::string (*name)(const std::string&)) {
    return with_openssl ? std::optional(name(kOpenssl)) : std::nullopt;
  };
  TrialResult result{where,
                     record_bytes,
                     measured.rounds(),
                     measured.rate_gb_s(kMemcpy),
                     result_of(measured, kStreamCopy, std::nullopt),
                     {}};
  for (const Contestant& contestant : contestants_) {
    result.engines.push_back({contestant.name,
                              result_of(measured, seal_name(contestant.name), against(seal_name)),
                              result_of(measured, open_name(contestant.name), against(open_name))});
  }
  return result;
}

}  // namespace sealane::bench
