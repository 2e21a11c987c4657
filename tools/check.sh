#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The checks a reviewer should not have to make by hand. Usage: check.sh [CHECK]...
# Checks are format, tidy, asan, tsan, fuzz, install, and by hand (they take long) packages, image, torch and
# reproducible.
# Each can be run alone; the first that fails ends the run with one line.
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
tidy_rooms=${TIDY:-"src/base src/seal src/core src/os src/serve src/watch src/comm src/lib src/net src/transport"}

# File by file, as no other build is: what a file should include itself is noticed here.
check_tidy() {
  cmake --preset tidy >/dev/null
  # shellcheck disable=SC2086
  git ls-files $tidy_rooms | grep '\.cc$' | grep -v '_test\.cc$' |
    xargs -P "$jobs" -n 2 clang-tidy -p build-tidy --quiet 2>/dev/null || fail tidy "see above"
}

# The pure rooms, those that parse what others wrote, and those with threads.
sanitizer_tests="base_test seal_test core_test platform_test workload_test report_test transport_test net_test
  ptx_programs_test"

# The transparent runtime's threads, and collectives under attack.
runtime_tests="os_test serve_test comm_test"
runtime_filter='WorkerPool*:*PinnedProxy*:EventPool*:Runtime*:Together*:EarlyCrossing*:GateWords*:*LiveSpeculator*:Message*:Staging*:*Unseen*:WorkerQuota*:*Slot*:*Straying*:*UnknownPlace*:*Tampered*:Pairwise*:CrossWire*'

# CUDA programs on the emulated GPU, which is threads and other people's memory.
emulated_tests="cuda_driver_test cuda_runtime_test"

# run_tests PRESET PROGRAM: all cores at once, each with its share of the tests.
run_tests() {
  running=
  for share in $(seq "$jobs"); do
    GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$((share - 1)) "build-$1/tests/$2" --gtest_brief=1 &
    running="$running $!"
  done
  for one in $running; do wait "$one" || fail "$1" "build-$1/tests/$2"; done
}

run_sanitized() {
  cmake --preset "$1" >/dev/null
  # shellcheck disable=SC2086
  cmake --build "build-$1" -j "$jobs" --target $sanitizer_tests $runtime_tests $emulated_tests
  for program in $sanitizer_tests; do
    echo "== $1: $program"
    run_tests "$1" "$program"
  done
  for program in $runtime_tests; do
    echo "== $1: $program, the runtime and attacks"
    # A runtime and its workers are never deleted, on purpose; what tsan remembers of all their memory would be 16 GB.
    (export GTEST_FILTER="$runtime_filter" ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=memory_limit_mb=4000 &&
      run_tests "$1" "$program")
  done
  export LD_LIBRARY_PATH="$PWD/build-$1/lib/emu" SEALANE_EMU_GPUS=2 SEALANE_EMU_CC
  for SEALANE_EMU_CC in off on; do
    for program in $emulated_tests; do
      echo "== $1: $program, CC $SEALANE_EMU_CC"
      run_tests "$1" "$program"
    done
  done
}
check_asan() (run_sanitized asan) # subshells, for what they export
check_tsan() (run_sanitized tsan)

# The PyTorch backend, in an interpreter that knows nothing of sanitizers. The quarantine is small because a
# test watches how much memory is in use.
check_torch() (
  cmake --preset asan >/dev/null
  cmake --build build-asan -j "$jobs" --target sealane-torch sealane-program
  runtime="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
  package="$PWD/build-asan/python"
  cd tests/torch
  for suite in calls_test.py collectives_test.py ddp_test.py failure_test.py threads_test.py; do
    echo "== asan: $suite"
    env LD_PRELOAD="$runtime" ASAN_OPTIONS=detect_leaks=0,quarantine_size_mb=1 PYTHONPATH="$package" \
      PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 /usr/bin/python3 -W ignore "$suite" || fail torch "$suite"
  done
)

check_fuzz() {
  cmake --preset fuzz >/dev/null
  cmake --build build-fuzz -j "$jobs" --target fuzz
  subjects=$(basename -s _fuzz build-fuzz/fuzz/*_fuzz)
  for subject in $subjects; do mkdir -p "build-fuzz/corpus/$subject" "tests/fuzz/corpus/$subject"; done
  echo "== fuzz: $fuzz_seconds s each:" $subjects
  echo "$subjects" | xargs -P "$jobs" -I SUBJECT env build-fuzz/fuzz/SUBJECT_fuzz -verbosity=0 \
    -max_total_time="$fuzz_seconds" -artifact_prefix=build-fuzz/SUBJECT- \
    build-fuzz/corpus/SUBJECT tests/fuzz/corpus/SUBJECT ||
    fail fuzz "the input is in build-fuzz/SUBJECT-*; replay it with: build-fuzz/fuzz/SUBJECT_fuzz FILE"
}

# What people do first, with the build that was tested, so that nothing is compiled again: its .deb files in a bare
# Debian, installed, used, installed over, purged. No file of them may know where it was built, for another place would
# then give other bits. The wheel has a test of its own (torch.package).
check_install() {
  [ -f build/build.ninja ] || cmake --preset release -DSEALANE_BUILD_TESTS=ON >/dev/null
  cmake --build build -j "$jobs" --target sealane-packed >/dev/null || fail install "the build"
  tools/packages.sh build --of-tests deb >/dev/null 2>&1 || fail install "packing"
  unpacked=$(mktemp -d)
  for file in build/packages/*.deb; do dpkg-deb -x "$file" "$unpacked"; done
  knows=$(grep -rlaF "$PWD" "$unpacked" || true)
  rm -rf "$unpacked"
  [ -z "$knows" ] || fail install "these name the directory they were built in: $knows"
  status=0
  tests/package/debian.sh build --without-torch || status=$?
  case $status in
    0) echo "Packages: passed, installed and purged in a bare Debian" ;;
    77) echo "Packages: NOT RUN, see the line above" ;;
    *) fail install "tests/package/debian.sh build --without-torch" ;;
  esac
}

# build_packed DIR [FLAG...]: what packages are made of. A compiler cache that rewrites paths (CCACHE_BASEDIR) would
# leave its own in debugging information, and other bits with it.
build_packed() {
  place=$1
  shift
  env -u CCACHE_BASEDIR cmake --preset release -B "$place" -DSEALANE_BUILD_TESTS=OFF "$@" >/dev/null
  env -u CCACHE_BASEDIR cmake --build "$place" -j "$jobs" --target sealane-packed >"$place/build.log" ||
    { tail -20 "$place/build.log"; fail packages "the build"; }
}

# What `make packages` makes, in a build of its own, so that the one in build/ keeps its tests: clean by lintian but
# for what packaging/lintian-exceptions lists, the same tarball twice, and each used: .deb in a bare Debian, the tarball
# and .rpm elsewhere.
check_packages() {
  place=build-packages
  build_packed $place
  hashes=
  for _ in 1 2; do
    tools/packages.sh $place >$place/packages.log || { tail -20 $place/packages.log; fail packages "packing"; }
    hashes="$hashes$(sha256sum $place/packages/*.tar.gz)
"
  done
  [ "$(printf %s "$hashes" | sort -u | wc -l)" = 1 ] || fail packages "two runs made two tarballs: $hashes"
  if command -v lintian >/dev/null; then
    lintian --fail-on error,warning --suppress-tags-from-file packaging/lintian-exceptions $place/packages/*.deb ||
      fail packages "mend it, or say in packaging/lintian-exceptions why not"
  else
    echo "no lintian here: the packages were NOT looked at"
  fi
  tests/package/elsewhere.sh $place || fail packages "tests/package/elsewhere.sh $place"
  tests/package/debian.sh $place || { [ $? = 77 ] || fail packages "tests/package/debian.sh $place"; }
}

# The OCI image of those packages, made and used.
check_image() {
  tools/image.sh build-packages || { [ $? = 77 ] && return; fail image "tools/image.sh build-packages"; }
  tests/package/image.sh build-packages || fail image "tests/package/image.sh build-packages"
}

# Two builds, one hash: what `make packages` makes, and the same from a copy of the sources at another place, without a
# compiler cache, by a user with other habits. Compared are the tarball, every .deb and the list of what is inside. Both
# builds stay until they agree: one that was stopped goes on where it was, and one that differs can be looked at.
check_reproducible() {
  build_packed build-packages
  tools/packages.sh build-packages deb tgz >/dev/null
  again=$PWD/build-again/sources-in-a-place-with-a-longer-name
  [ -d "$again/.git" ] || git clone --quiet --shared --no-checkout . "$again"
  git -C "$again" update-ref --no-deref HEAD "$(git rev-parse HEAD)"
  find "$again" -mindepth 1 -maxdepth 1 ! -name .git ! -name another-build -exec rm -rf {} +
  git ls-files -z | tar --null --files-from=- --create | tar -C "$again" --extract
  (
    cd "$again"
    umask 077
    export CCACHE_DISABLE=1 TZ=Pacific/Kiritimati LC_ALL=C.UTF-8
    build_packed another-build
    tools/packages.sh another-build deb tgz >/dev/null
  )
  (cd build-packages/packages && sha256sum -- *.tar.gz *.deb *.json) >build-again/hashes
  cat build-again/hashes
  (cd "$again/another-build/packages" && sha256sum --check --quiet ../../../hashes) ||
    fail reproducible "the second build made other files: compare build-packages/packages with $again/another-build/packages"
  rm -rf build-again
}

[ $# -gt 0 ] || set -- format tidy asan tsan fuzz install
for check in "$@"; do
  echo "== check: $check"
  began=$(date +%s)
  "check_$check"
  echo "== check: $check passed in $(($(date +%s) - began)) s"
done
echo "== all checks passed: $*"
