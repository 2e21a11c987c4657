// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/speculation.h"

#include "base/figures.h"
#include "base/text.h"
#include "serve/costs.h"

namespace sealane::serve {
namespace {

using Why = SpeculationChoice::Why;

std::string us_text(Duration duration) {
  return time_text(static_cast<double>(duration.count()) / dilation() / 1e9);
}

std::string figures(const SpeculationChoice& choice) {
  return concat("a MiB takes ", us_text(choice.outlook.from_slot), " from a slot",
                choice.digests ? ", its digest compared, " : ", ",
                us_text(choice.outlook.sealed_now), " sealed when it is asked for (",
                choice.threads, " threads)");
}

}  // namespace

// Who asks for it gets it, whatever is to be gained.
SpeculationChoice choose_speculation(const Options& options, unsigned threads) {
  SpeculationChoice choice;
  choice.threads = threads;
  const Policy* const policy = options.speculation();
  if (policy == nullptr) return choice;
  const bool asked = options.speculate == Speculate::on;
  if (threads < 2 && !asked) {
    choice.why = Why::no_worker;
    return choice;
  }
  const Costs costs = measure_costs(threads);
  choice.digests = !options.pinned || !options.page_guards || !can_guard_pages();
  choice.outlook = speculation_outlook(costs, choice.digests);
  choice.why = choice.outlook.pays() ? Why::pays : Why::if_waited;
  if (!choice.outlook.pays_if_waited()) choice.why = Why::no_gain;
  if (asked) choice.why = Why::asked;
  if (choice.why != Why::no_gain) choice.policy = policy;
  return choice;
}

std::string_view to_string(Why why) {
  constexpr std::string_view kNames[] = {"excluded",  "asked",   "pays",
                                         "if_waited", "no_gain", "no_worker"};
  return kNames[static_cast<size_t>(why)];
}

std::string describe(const SpeculationChoice& choice) {
  switch (choice.why) {
    case Why::excluded:
      return "off: not among the parts that are switched on";
    case Why::asked:
      return concat("on, as asked for: ", figures(choice));
    case Why::pays:
      return concat("on: ", figures(choice));
    case Why::if_waited:
      return concat("while the program waits for each copy: ", figures(choice));
    case Why::no_gain:
      return concat("off, too little to gain: ", figures(choice));
    case Why::no_worker:
      return "off: there is no worker for it";
  }
  return "";
}

}  // namespace sealane::serve
