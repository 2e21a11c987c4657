// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "comm/meeting_places.h"

namespace sealane {
namespace {

// In a store that the caller brings, PyTorch's say.
class StoreRendezvous final : public Rendezvous {
 public:
  StoreRendezvous(ExternalStore store, std::function<bool()> given_up)
      : store_(std::move(store)), given_up_(std::move(given_up)) {}

  Result<std::vector<std::string>> exchange(const Identity& self, const std::string& own,
                                            Instant deadline) override {
    self_ = self;
    SEALANE_TRY(store_.set(key(self, self.rank), sized(self, own)));
    std::vector<std::string> all;
    for (uint32_t rank = 0; rank < self.size; ++rank) {
      auto text = get(key(self, rank), deadline);
      if (!text && text.error().kind == ErrorKind::usage) return text.error();
      if (!text) return peer_error(concat("rank ", rank, ": ", text.error().message));
      if (text->starts_with(kGaveUp)) {
        return peer_error(concat(
            "rank ", rank, " gave up: ", printable(std::string_view(*text).substr(1), kTextShown)));
      }
      const std::string prefix = sized(self, "");
      if (!text->starts_with(prefix)) {
        return usage_error(concat("rank ", rank, " of group '", self.group,
                                  "' has another size than ", self.size,
                                  ", or another version of Sealane: give all ranks the same"));
      }
      all.push_back(text->substr(prefix.size()));
    }
    return all;
  }

  // In the place of the own address: who still waits for that finds it.
  void tell(const Identity&, const std::string&, const std::string& reason) override {
    if (std::exchange(told_, true)) return;
    static_cast<void>(store_.set(key(self_, self_.rank), kGaveUp + reason));
  }

 private:
  // A store waits in its own way: whoever may give up asks it for a little at a time. An error that
  // comes before that time is the store's own, and is told.
  Result<std::string> get(const std::string& name, Instant deadline) {
    while (true) {
      const Instant start = SteadyClock().now();
      const Duration left = std::max(deadline - start, Duration(0));
      const bool last = !given_up_ || left <= kSlice;
      auto text = store_.get(name, last ? left : kSlice);
      if (text || last || SteadyClock().now() < start + kSlice) return text;
      if (given_up_()) return given_up_error();
    }
  }

  static std::string sized(const Identity& self, const std::string& own) {
    return concat(self.size, "\n", own);
  }
  static constexpr const char* kGaveUp = "!";
  static constexpr Duration kSlice = std::chrono::milliseconds(100);
  static constexpr size_t kTextShown = 256;
  Identity self_;
  bool told_ = false;
  static std::string key(const Identity& self, uint32_t rank) {
    return concat("sealane/", self.group, "/", rank);
  }
  ExternalStore store_;
  std::function<bool()> given_up_;
};

}  // namespace

std::unique_ptr<Rendezvous> meet_in_store(ExternalStore store, std::function<bool()> given_up) {
  return std::make_unique<StoreRendezvous>(std::move(store), std::move(given_up));
}

}  // namespace sealane
