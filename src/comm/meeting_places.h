// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Inside of rendezvous.h: the places where ranks meet, each in a file of its own, and what they
// have in common.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "comm/rendezvous.h"

namespace sealane {

constexpr Duration kMeetingPause = std::chrono::milliseconds(2);
constexpr size_t kMeetingTextMax = 64_KiB;  // of what a rank leaves or says

std::unique_ptr<Rendezvous> meet_in_directory(std::string path);
std::unique_ptr<Rendezvous> meet_at_rank_0(std::string host, uint16_t port);
std::unique_ptr<Rendezvous> meet_in_store(ExternalStore store, std::function<bool()> given_up);

// "rank 1 of 2 of group 'default'"
std::string described(const Identity& self);

Error nobody_came(uint32_t rank, const std::string& where, const std::string& hint = {});
Error groups_differ(const Identity& theirs, const Identity& own, const std::string& where);

// What others wrote there: a file's name, "group.size.rank"; and what a guest of rank 0's says
// first, "group size" and a line's end, which is taken off the text. Nothing if it is not that.
std::optional<Identity> identity_in_name(std::string_view name);
std::optional<Identity> take_identity(std::string& text, uint32_t rank);

// Nobody waits any longer, or the process does not.
bool meeting_over(Instant deadline);

}  // namespace sealane
