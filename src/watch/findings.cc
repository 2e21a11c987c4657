// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "watch/findings.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"

namespace sealane::serve {
namespace {

using State = Check::State;

constexpr double kAskingS = 3e-6;  // to hand a copy to a lane; measured on a 2-core VM

double as_double(uint64_t value) { return static_cast<double>(value); }
uint64_t bytes_of(const Findings& f) { return f.to_device.bytes + f.to_host.bytes; }
uint64_t seen_of(const Findings& f) { return f.to_device.seen_bytes + f.to_host.seen_bytes; }
uint64_t messages_of(const Findings& f) { return f.to_device.messages + f.to_host.messages; }

bool sees_everything(const Findings& f) {
  return bytes_of(f) > 0 && as_double(seen_of(f)) >= 0.999 * as_double(bytes_of(f));
}

Check seen(const Findings& f) {
  Check out{State::unknown, "copies' bytes pass libcrypto", "no copies"};
  if (bytes_of(f) == 0) return out;
  out.found = concat(percent_of(as_double(seen_of(f)), as_double(bytes_of(f))), " of ",
                     bytes_text(bytes_of(f)));
  out.state = sees_everything(f) ? State::holds : State::fails;
  return out;
}

Check iv_law(const Findings& f) {
  Check out{State::unknown, "IVs count up behind a mask", "no messages"};
  if (f.ivs == 0) return out;
  out.found = concat(grouped(f.ivs - f.ivs_broken), " of ", grouped(f.ivs), " messages, ",
                     f.channels, f.channels == 1 ? " channel" : " channels");
  out.state = f.ivs_broken == 0 ? State::holds : State::fails;
  return out;
}

Check message_size(const Findings& f) {
  Check out{State::unknown, "messages of at most 1 MiB", "no messages"};
  if (messages_of(f) == 0) return out;
  out.found = concat(grouped(messages_of(f)), ", the largest ", bytes_text(f.message_bytes_max));
  out.state = f.message_bytes_max <= (1 << 20) ? State::holds : State::differs;
  return out;
}

Check source(const Findings& f) {
  Check out{State::unknown, "sealed from where the program has it", "no messages"};
  const uint64_t direct = f.to_device.direct_bytes + f.to_host.direct_bytes;
  if (seen_of(f) == 0) return out;
  out.found = concat(percent_of(as_double(direct), as_double(seen_of(f))),
                     " of the bytes; the rest is staged by the driver");
  if (direct == seen_of(f)) out.found = "every byte";
  out.state = direct == seen_of(f) ? State::holds : State::differs;
  return out;
}

Check thread(const Findings& f) {
  Check out{State::unknown, "sealed on the thread that copies", "no messages"};
  const uint64_t own = f.to_device.own_thread_bytes + f.to_host.own_thread_bytes;
  if (seen_of(f) == 0) return out;
  out.found = own == seen_of(f) ? "every byte"
                                : concat(percent_of(as_double(own), as_double(seen_of(f))),
                                         " of the bytes; the rest on threads of the driver");
  out.state = own == seen_of(f) ? State::holds : State::differs;
  return out;
}

Check shape(const Findings& f) {
  Check out{State::unknown, "one update per message, no additional data", "no messages"};
  if (messages_of(f) == 0) return out;
  out.found = concat("up to ", f.updates_max, f.updates_max == 1 ? " update, " : " updates, ",
                     f.additional_bytes_max, " bytes of additional data");
  out.state = f.updates_max <= 1 && f.additional_bytes_max == 0 ? State::holds : State::differs;
  return out;
}

Check own_messages(const Findings& f) {
  Check out{State::unknown, "no messages but those of copies", "no messages"};
  if (messages_of(f) == 0) return out;
  const uint64_t extra = f.to_device.extra_messages + f.to_host.extra_messages;
  out.found = extra == 0 ? "none" : concat(grouped(extra), " of ", grouped(messages_of(f)));
  out.state = extra == 0 ? State::holds : State::differs;
  return out;
}

Check rotation(const Findings& f) {
  Check out{State::unknown, "keys stay", "no messages"};
  if (messages_of(f) == 0) return out;
  out.found = concat(f.keys, f.keys == 1 ? " key, " : " keys, ");
  out.found += f.keys_replaced == 0 ? "none replaced"
                                    : concat(f.keys_replaced, " of them replaced an earlier one");
  out.state = f.keys_replaced == 0 ? State::holds : State::differs;
  return out;
}

Check guards(const Findings& f) {
  Check out{State::unknown, "sources can be guarded against writes", "no large copies"};
  const uint64_t tried = f.guardable_bytes + f.unguardable_bytes;
  if (tried == 0) return out;
  out.found = concat(percent_of(as_double(f.guardable_bytes), as_double(tried)), " of ",
                     bytes_text(tried), " tried");
  if (f.unguardable_pinned_bytes > 0) {
    out.found += concat("; ", bytes_text(f.unguardable_pinned_bytes), " are the driver's");
  }
  out.state = f.unguardable_bytes == 0 ? State::holds : State::differs;
  return out;
}

Check unchanged(const Findings& f) {
  Check out{State::unknown, "sources are the same at their next copy", "none came twice"};
  const uint64_t asked = f.sources_changed + f.sources_unchanged;
  if (asked == 0 && f.guardable_bytes == 0 && f.unguardable_bytes > 0) {
    out.found = "not looked at: no source could be guarded";
  }
  if (asked == 0) return out;
  out.found = concat(grouped(f.sources_unchanged), " of ", grouped(asked));
  out.state = f.sources_changed == 0 ? State::holds : State::differs;
  return out;
}

Check predictable(const Findings& f) {
  Check out{State::unknown, "copies to the device can be foretold", "no large copies"};
  const Findings::Way& way = f.to_device;
  if (way.judged == 0) return out;
  out.found =
      concat(percent_of(as_double(way.hit_bytes), as_double(way.judged_bytes)), " of the bytes");
  if (!f.predictor.empty()) out.found += concat(", by ", f.predictor);
  out.state = way.hit_bytes * 2 >= way.judged_bytes ? State::holds : State::differs;
  return out;
}

}  // namespace

std::vector<Check> check(const Findings& f) {
  return {seen(f),         iv_law(f),   message_size(f), source(f),    thread(f),     shape(f),
          own_messages(f), rotation(f), guards(f),       unchanged(f), predictable(f)};
}

std::vector<Outlook> outlook(const Findings& f, const StockCosts& costs) {
  const double blocked = f.to_device.blocked_s + f.to_host.blocked_s;
  const double aead = f.to_device.aead_s + f.to_host.aead_s;
  const double async_blocked = f.to_device.async_blocked_s + f.to_host.async_blocked_s;
  const double async_aead = f.to_device.async_aead_s + f.to_host.async_aead_s;
  const double snapshots = as_double(f.to_device.snapshot_bytes) / costs.memcpy_gb_per_s / 1e9;
  const double asking = as_double(f.to_device.async_copies + f.to_host.async_copies) * kAskingS;
  const double workers = std::max(1u, f.workers);
  // Our engine's share of the driver's time for the same bytes; never taken for slower than it.
  const double driver_gb_per_s = aead > 0 ? as_double(seen_of(f)) / aead / 1e9 : 0;
  const double engine =
      f.fast_gb_per_s > 0 ? std::min(1.0, driver_gb_per_s / f.fast_gb_per_s) : 1.0;
  const double hit_share =
      f.to_device.judged_bytes == 0
          ? 0
          : as_double(f.to_device.hit_bytes) / as_double(std::max<uint64_t>(1, f.to_device.bytes));

  const auto waits = [&](double share, bool async) {
    const double all = blocked - aead * (1 - share);
    return async ? all - (async_blocked - async_aead * (1 - share)) + snapshots + asking : all;
  };
  const double parallel = engine / workers;
  std::vector<Outlook> out;
  out.push_back({"as it is", blocked, aead});
  out.push_back({"engine", waits(engine, false), aead * engine});
  out.push_back({"engine,async", waits(engine, true), aead * engine});
  out.push_back({"engine,async,parallel", waits(parallel, true), aead * parallel});
  const double ahead = f.to_device.aead_s * hit_share * parallel;
  out.push_back({"… and speculate", waits(parallel, true), aead * parallel - ahead});
  return out;
}

std::string verdict(const Findings& f) {
  if (bytes_of(f) == 0) return "No copies between host and device were seen: nothing to win.";
  if (messages_of(f) == 0) {
    return "The driver sealed nothing that Sealane could see. Either confidential mode is off, or "
           "the driver does not seal in libcrypto: engine, parallel and speculate cannot help "
           "here, async can.";
  }
  if (!sees_everything(f)) {
    return "Part of the data is sealed where Sealane cannot see it. What it sees it can seal "
           "faster; try: sealane run --enable engine,async --verify 1000";
  }
  std::string out =
      "Sealane can work here: engine, async and parallel answer whatever the driver asks, by the "
      "key, IV and bytes it names. Next: sealane run --enable engine --verify 1000, then add "
      "async and parallel, one by one.";
  if (f.ivs_broken > 0) {
    out += " The IVs do not follow the law that speculation needs: leave it off.";
  }
  return out;
}

}  // namespace sealane::serve
