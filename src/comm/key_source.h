// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A group's key from where people keep keys, so that no file has to hold it:
//   SEALANE_KEY_CMD=COMMAND                  what the command writes to standard output
//   SEALANE_KEY_FILE=kbs:///REPO/TYPE/TAG    a resource of a key broker, fetched by the guest's
//                                            confidential data hub after it was attested
// Both give what a key file holds: one line of 64 hexadecimal digits. The hub is asked over its
// REST socket inside the guest (SEALANE_HUB: "127.0.0.1:8006" or "unix:PATH"); an address that is
// not this guest's own is refused, because the answer comes in the clear.
//
// Concurrency: each call stands for itself. A call ends at its deadline, whoever does not answer or
//              answers byte by byte.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "seal/key.h"

namespace sealane {

constexpr const char* kHubDefault = "127.0.0.1:8006";
constexpr Duration kKeyPatience = std::chrono::seconds(60);  // where nobody is in more of a hurry

bool is_hub_resource(const std::string& name);  // "kbs://..."

// `hub` empty: kHubDefault. A usage error says what is wrong with the name, the address or the
// answer, an io error that nobody answers; neither contains anything of the answer.
Result<Key> key_from_hub(const std::string& resource, const std::string& hub,
                         Instant deadline = SteadyClock().now() + kKeyPatience);

// What a hub's answer for that resource carries, inside of it; a usage error as above.
Result<std::string_view> body_of(std::string_view answer, const std::string& resource);

// Run by the shell. A usage error if it fails or writes something else than a key.
Result<Key> key_from_command(const std::string& command,
                             Instant deadline = SteadyClock().now() + kKeyPatience);

}  // namespace sealane
