#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds for aarch64 on this machine and runs tests there under emulation: the room `seal`, whose engine is
# OpenSSL's on such CPUs. Usage: tools/aarch64.sh [TARGET...]   (seal_test; tests of what was built are run)
# Needs g++-aarch64-linux-gnu and qemu-user (Debian 12): `tools/setup.sh aarch64`. Libraries for the other
# CPU are downloaded into build-aarch64/root and not installed. Exit 77: something is missing.
set -eu
cd "$(dirname "$0")/.."
build=build-aarch64
root=$PWD/$build/root

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null 2>&1 || { echo "aarch64: $tool is not installed: tools/setup.sh aarch64" >&2; exit 77; }
done

# apt with lists of its own, so that this system learns of no second architecture.
packages="libssl3 libssl-dev libfmt9 libfmt-dev libgtest-dev libgmock-dev googletest librapidcheck-dev
  nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libbenchmark-dev libbenchmark1debian libjs-chart.js"
if [ ! -e "$root/complete" ]; then
  apt=$PWD/$build/apt
  mkdir -p "$root" "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
  : > "$apt/status"
  own="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State=$apt/state -o Dir::State::status=$apt/status
    -o Dir::Cache=$apt/cache -o APT::Sandbox::User="
  # shellcheck disable=SC2086
  apt-get $own update -qq || { echo "aarch64: no package lists" >&2; exit 77; }
  # shellcheck disable=SC2086
  (cd "$apt/debs" && apt-get $own download -qq $packages) || { echo "aarch64: no packages" >&2; exit 77; }
  for deb in "$apt"/debs/*.deb; do dpkg -x "$deb" "$root"; done
  : > "$root/complete"
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_UNITY_BUILD=ON -DSEALANE_BUILD_TESTS=ON \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
  -DCMAKE_CXX_FLAGS="-isystem $root/usr/include/aarch64-linux-gnu" \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
  -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;/usr/aarch64-linux-gnu"
[ $# -gt 0 ] || set -- seal_test
cmake --build "$build" --target "$@"
# Left out is what an emulated process cannot show: races, single steps, and advice about memory (wiped in children,
# not dumped), which qemu-user keeps to itself.
cannot='*Racing*:*Unsafe*:Hidden*:SecretMemory.IsLocked*:SecretMemory.IsEmptyInEveryChild:SecretMemory.OfAChild*'
for target; do
  program=$(find "$build" -name "$target" -type f -perm -u+x)
  RC_PARAMS=max_success=10 qemu-aarch64 -L /usr/aarch64-linux-gnu "$program" --gtest_brief=1 --gtest_filter="-$cannot"
done
