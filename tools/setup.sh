#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that are missing, after saying which. Does nothing when all are there.
# Usage: setup.sh build|demo|test|check|package|aarch64
#   build  what the programs need     demo  + Open MPI, to compare with
#   test  + what the tests need       check  + what .ci/run needs
#   package  what packages are made and tried with, besides build     aarch64  what tools/aarch64.sh needs
# SEALANE_NO_APT=1: only print the missing packages and stop with exit 2.
set -eu

build="g++ cmake ninja-build libssl-dev libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libjs-chart.js
  liblz4-1 libzstd1" # the last two: opened when device code is packed
case $(uname -m) in
  x86_64) build="$build libipsec-mb-dev" ;;  # elsewhere the OpenSSL engine serves
esac
demo="openmpi-bin libopenmpi-dev"
torch="python3-torch libtorch-dev pybind11-dev libopenblas0-pthread"
test="binutils iproute2 libgtest-dev librapidcheck-dev libbenchmark-dev valgrind $torch
  python3-venv python3-pip python3-setuptools python3-wheel"
check="clang libclang-rt-14-dev clang-format clang-tidy dpkg-dev debootstrap" # the second: libFuzzer and the sanitizers

package="dpkg-dev rpm debootstrap lintian python3 pkg-config buildah" # CPack is part of cmake
aarch64="g++-aarch64-linux-gnu qemu-user cmake ninja-build"

case ${1:-} in
  build) wanted=$build ;;
  demo) wanted="$build $demo" ;;
  test) wanted="$build $test" ;;
  check) wanted="$build $test $check" ;;
  package) wanted="$build $package" ;;
  aarch64) wanted=$aarch64 ;;
  *)
    echo "usage: tools/setup.sh build|demo|test|check|package|aarch64" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "sealane: this is not Debian: use the Dockerfile, or install by hand: $wanted" >&2
  exit 2
fi

missing=
for package in $wanted; do
  state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "sealane: missing packages:$missing"
if [ "${SEALANE_NO_APT:-0}" = 1 ]; then
  echo "sealane: SEALANE_NO_APT is set: install them yourself (apt-get install$missing)" >&2
  exit 2
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "sealane: not root and no sudo: run as root: apt-get install$missing" >&2
    exit 2
  fi
  as_root=sudo
fi
echo "sealane: installing them with apt-get"
$as_root apt-get update -qq || echo "sealane: apt-get update failed; trying with the lists there are" >&2
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; then
  echo "sealane: packages could not be installed: check the network and run 'apt-get install$missing'" >&2
  exit 1
fi
