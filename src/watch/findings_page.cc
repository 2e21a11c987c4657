// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "base/figures.h"
#include "base/text.h"
#include "watch/findings.h"

namespace sealane::serve {
namespace {

constexpr size_t kFoundAt = 57;  // where what was found begins

struct StateText {
  std::string_view mark;  // for people
  std::string_view word;  // for programs
};

StateText text_of(Check::State state) {
  switch (state) {
    case Check::State::holds:
      return {"yes", "holds"};
    case Check::State::differs:
      return {"no, copes", "differs"};
    case Check::State::fails:
      return {"NO", "fails"};
    case Check::State::unknown:
      break;
  }
  return {"?", "unknown"};
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
    out += concat("  ", padded(std::string(text_of(one.state).mark), 11), padded(one.what, 44),
                  wrapped(one.found, kFoundAt));
  }

  const std::string model = f.emulated ? concat(" and platform ", costs.from) : "";
  out += concat("\n",
                wrapped(concat("What it would have saved, at most (ESTIMATED from the above", model,
                               ", ", f.workers, f.workers == 1 ? " worker)" : " workers)"),
                        0));
  out += "  with                     callers wait   sealing in the way of data\n";
  for (const Outlook& one : outlook(f, costs)) {
    // The ellipsis is one column wide and three bytes long.
    const size_t width = one.parts.starts_with("…") ? 27 : 25;
    out += concat("  ", padded(one.parts, width), indented(time_text(one.callers_wait_s), 12),
                  indented(time_text(one.sealing_s), 20), "\n");
  }
  out += "  A program that is bound by its kernels gains less.\n";
  const auto remark = [&](const char* about, const std::string& words) {
    out += concat("  ", wrapped(concat(about, words), 2));
  };
  if (!f.speculation.empty()) remark("speculate by default: ", f.speculation);
  if (f.unguardable_bytes > 0) remark("note: no guard: ", f.guard_refusal);
  for (const std::string& note : f.notes) remark("note: ", note);
  return concat(out, "\nVerdict\n", wrapped(verdict(f), 0));
}

void write_findings(JsonWriter& json, const Findings& found, const StockCosts& costs) {
  json.begin_object("observed").begin_array("checks");
  for (const Check& one : check(found)) {
    json.begin_object().field("state", text_of(one.state).word).field("what", one.what);
    json.field("found", one.found).end_object();
  }
  json.end_array().begin_array("outlook");
  for (const Outlook& one : outlook(found, costs)) {
    json.begin_object().field("parts", one.parts).field("callers_wait_s", one.callers_wait_s);
    json.field("sealing_s", one.sealing_s).end_object();
  }
  json.end_array().field("copied_bytes", found.to_device.bytes + found.to_host.bytes);
  json.field("seen_bytes", found.to_device.seen_bytes + found.to_host.seen_bytes);
  json.field("verdict", verdict(found)).end_object();
}

}  // namespace sealane::serve
