#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The checks a reviewer should not have to make by hand. Usage: check.sh [format|tidy|asan|tsan|fuzz]...
# (all by default). Each can be run alone; the first that fails ends the run with one line.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
fuzz_seconds=${FUZZ_SECONDS:-20}

fail() {
  echo "sealane: check '$1' failed: $2" >&2
  exit 1
}

sources() { git ls-files '*.h' '*.cc' '*.c'; }

check_format() {
  sources | xargs clang-format --dry-run --Werror ||
    fail format "run: git ls-files '*.h' '*.cc' '*.c' | xargs clang-format -i"
}

# The rooms that hold keys, parse what an attacker wrote or live in somebody else's process. The rest is
# left to two compilers' warnings and the sanitizers; TIDY=src looks at everything.
tidy_rooms=${TIDY:-"src/base src/seal src/core src/live src/lib src/transport"}

check_tidy() {
  cmake --preset fuzz >/dev/null
  # shellcheck disable=SC2086
  git ls-files $tidy_rooms | grep '\.cc$' | grep -v '_test\.cc$' |
    xargs -P "$jobs" -n 2 clang-tidy -p build-fuzz --quiet 2>/dev/null || fail tidy "see above"
}

# The pure rooms, and those that parse what others wrote.
sanitizer_tests="base_test seal_test core_test platform_test workload_test report_test"

# CUDA programs on the emulated GPU, which is threads and other people's memory.
emulated_tests="cuda_driver_test cuda_runtime_test"

run_emulated() {
  for cc in off on; do
    echo "== $1: $2, CC $cc"
    LD_LIBRARY_PATH="build-$1/lib/emu" SEALANE_EMU_CC=$cc SEALANE_EMU_GPUS=2 \
      "build-$1/tests/$2" --gtest_brief=1 || fail "$1" "build-$1/tests/$2 with CC $cc"
  done
}

run_sanitized() {
  cmake --preset "$1" >/dev/null
  # shellcheck disable=SC2086
  cmake --build "build-$1" -j "$jobs" --target $sanitizer_tests $emulated_tests
  for program in $sanitizer_tests; do
    echo "== $1: $program"
    "build-$1/tests/$program" --gtest_brief=1 || fail "$1" "build-$1/tests/$program"
  done
  for program in $emulated_tests; do run_emulated "$1" "$program"; done
}
check_asan() { run_sanitized asan; }
check_tsan() { run_sanitized tsan; }

check_fuzz() {
  cmake --preset fuzz >/dev/null
  cmake --build build-fuzz -j "$jobs" --target fuzz
  for program in build-fuzz/fuzz/*_fuzz; do
    subject=$(basename "$program" _fuzz)
    echo "== fuzz: $subject for $fuzz_seconds s"
    mkdir -p "build-fuzz/corpus/$subject" "tests/fuzz/corpus/$subject"
    "$program" -max_total_time="$fuzz_seconds" -verbosity=0 -print_final_stats=0 \
      -artifact_prefix="build-fuzz/" "build-fuzz/corpus/$subject" "tests/fuzz/corpus/$subject" ||
      fail fuzz "the input is in build-fuzz/; replay it with: $program FILE"
  done
}

[ $# -gt 0 ] || set -- format tidy asan tsan fuzz
for check in "$@"; do
  echo "== check: $check"
  "check_$check"
done
echo "== all checks passed: $*"
