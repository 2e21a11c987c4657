// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sealane trial` runs next, and what follows from how the runs ended. Pure: no processes, no
// files, no clock. Use: next() says what to run, handle() takes how it ended, until next() says
// nothing. The same outcomes give the same steps, so a trial is resumed by handing in again what
// was written down.
//
//   1. doctor           is the machine fit?
//   2. alone, twice     does the program work by itself, and say the same twice?
//   3. observe          the program watched; where does the driver seal?
//   4. verify           the engine's answers compared with libcrypto's
//   5. round 1          the plain program, then part after part, as long as its output stays the
//   same
//   6. rounds 2...      all of them again, for the times
//   control, twice      whenever a part's run was not like the plain one: or is it the program?
//
// Concurrency: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sealane::cli {

enum class StepKind : uint8_t { doctor, alone, observe, verify, plain, part, control };

struct TrialStep {
  StepKind kind = StepKind::doctor;
  size_t part = 0;   // of trial_parts()
  size_t round = 0;  // from 1

  bool operator==(const TrialStep&) const = default;
};

// Parts of the runtime in the order they are tried, each on top of the one before.
struct TrialPart {
  const char* name;
  const char* enable;         // for --enable
  const char* enable_unseen;  // the same where the driver seals out of sight; nullptr: no use then
};
const std::vector<TrialPart>& trial_parts();

enum class Ending : uint8_t { done, failed, crashed, hung };

// How much of what is copied passes libcrypto, where Sealane can answer.
enum class Sight : uint8_t { unknown, nothing, some, all };

struct TrialOutcome {
  Ending ending = Ending::done;
  int code = 0;  // exit code, or the signal of a crash
  double seconds = 0;
  std::string output{};             // a fingerprint of what is compared
  std::string difference{};         // from the first run alone, for people; empty: none
  bool wrong_answer = false;        // the runtime said that it sealed something wrongly
  std::vector<std::string> said{};  // lines of Sealane's
  bool page = false;                // of observe: there was one, so the GPU was used
  bool confidential = true;         // of observe
  Sight sight = Sight::unknown;     // of observe
};

enum class TrialVerdict : uint8_t {
  unfinished,
  fine,              // every part was tried and changed nothing but the time
  limited,           // the same, but the driver seals out of sight: some parts are of no use
  part_breaks,       // broken() says which
  observe_breaks,    // already watching changes what the program does
  not_reproducible,  // the program says something else each time
  program_fails,     // by itself
  program_hangs,     // by itself
  machine_unfit,     // doctor found something that must be mended first
  gpu_unused,        // the program makes no use of a GPU
  not_confidential,  // CC mode is off: there is nothing to speed up
};
const char* to_string(TrialVerdict verdict);

struct TrialLimits {
  size_t rounds = 3;
  double limit_s = 0;  // for each run; 0: by how long the program takes alone
};

// The times of one part against the plain program of the same round; below 1 is faster.
struct TrialTimes {
  size_t rounds = 0;
  double seconds = 0;  // median
  double ratio = 0;    // median
  double least = 0;
  double most = 0;
};

class TrialPlan {
 public:
  explicit TrialPlan(const TrialLimits& limits) : limits_(limits) {}

  std::optional<TrialStep> next() const;     // nothing: it is over
  void handle(const TrialOutcome& outcome);  // of what next() says

  TrialVerdict verdict() const { return verdict_; }
  bool over() const { return verdict_ != TrialVerdict::unfinished; }

  // The run that decided, where the verdict is a bad one.
  const std::optional<TrialStep>& broken() const { return broken_; }
  const TrialOutcome& broken_outcome() const { return broken_outcome_; }

  Sight sight() const { return sight_; }
  bool tries(size_t part) const;  // false: of no use here
  const char* enable_of(size_t part) const;
  bool passed(size_t part) const;  // tried, and the same whenever it ran
  TrialTimes plain_times() const;  // ratios are of rounds to their median
  TrialTimes times_of(size_t part) const;

  // The part to use in production; nothing if none passed.
  std::optional<size_t> recommended() const;

  size_t runs_done() const { return runs_done_; }
  size_t runs_left() const;
  double seconds_left() const;  // as far as one can tell
  double limit_s() const;       // for what next() says

 private:
  struct Timed {
    TrialStep step;
    double seconds;
  };

  void finish(TrialVerdict verdict, const TrialOutcome* outcome = nullptr);
  bool like_the_first(const TrialOutcome& outcome) const;
  void handle_alone(const TrialOutcome& outcome);
  void handle_observe(const TrialOutcome& outcome);
  void handle_part(const TrialOutcome& outcome);
  void handle_control(const TrialOutcome& outcome);
  void go_on();  // to the next step of the rounds
  std::optional<size_t> part_from(size_t part) const;
  double expected_s() const;
  std::optional<double> plain_of(size_t round) const;

  TrialLimits limits_;
  TrialVerdict verdict_ = TrialVerdict::unfinished;
  TrialStep step_;
  std::optional<TrialStep> broken_;
  TrialOutcome broken_outcome_;
  std::string first_output_;
  int first_code_ = 0;
  double alone_s_ = 0;  // the longer of the two
  Sight sight_ = Sight::unknown;
  size_t parts_good_ = 0;
  size_t runs_done_ = 0;
  std::vector<Timed> timed_;
};

// "alone-2", "async-1": for files and people.
std::string name_of(const TrialStep& step);

}  // namespace sealane::cli
