// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/figures.h"
#include "base/text.h"
#include "live/serve/watch/findings.h"

namespace sealane::serve {
namespace {

std::string_view mark(Check::State state) {
  switch (state) {
    case Check::State::holds:
      return "yes     ";
    case Check::State::differs:
      return "no, copes";
    case Check::State::fails:
      return "NO      ";
    case Check::State::unknown:
      return "?       ";
  }
  return "?";
}

std::string way_line(const char* name, const Findings::Way& way) {
  return concat("  ", padded(name, 11), indented(grouped(way.copies), 10),
                indented(bytes_text(way.bytes), 12), indented(time_text(way.blocked_s), 17),
                indented(time_text(way.aead_s), 15), "\n");
}

}  // namespace

std::string findings_page(const Findings& f, const StockCosts& costs) {
  const char* const where = f.paced      ? " (emulated GPU, device time)"
                            : f.emulated ? " (emulated GPU)"
                                         : "";
  std::string out = concat("\nsealane --observe: nothing was changed. MEASURED", where, "\n\n");
  out += concat("  ran ", time_text(f.seconds), "; callers waited ",
                time_text(f.to_device.blocked_s + f.to_host.blocked_s), " in copies, ",
                time_text(f.waits_s), " in synchronising calls\n\n");
  out += "  direction      copies       bytes   callers waited        sealing\n";
  out += way_line("to device", f.to_device);
  out += way_line("to host", f.to_host);

  out += "\nWhat Sealane would like to rely on\n";
  for (const Check& one : check(f)) {
    out += concat("  ", padded(std::string(mark(one.state)), 11), padded(one.what, 44), one.found,
                  "\n");
  }

  out += "\nWhat it would have saved, at most (ESTIMATED from the above";
  if (f.emulated) out += concat(" and platform ", costs.from);
  out += concat(", ", f.workers, f.workers == 1 ? " worker)\n" : " workers)\n");
  out += "  with                     callers wait   sealing in the way of data\n";
  for (const Outlook& one : outlook(f, costs)) {
    // The ellipsis is one column wide and three bytes long.
    const size_t width = one.parts.starts_with("…") ? 27 : 25;
    out += concat("  ", padded(one.parts, width), indented(time_text(one.callers_wait_s), 12),
                  indented(time_text(one.sealing_s), 20), "\n");
  }
  out += "  A program that is bound by its kernels gains less.\n";
  if (!f.speculation.empty()) out += concat("  speculate by default: ", f.speculation, "\n");
  if (f.unguardable_bytes > 0) out += concat("  note: no guard: ", f.guard_refusal, "\n");
  for (const std::string& note : f.notes) out += concat("  note: ", note, "\n");
  return concat(out, "\nVerdict\n", verdict(f), "\n");
}

}  // namespace sealane::serve
