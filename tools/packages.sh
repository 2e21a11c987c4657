#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the packages of a build that is there. Usage: packages.sh BUILD_DIR [--of-tests] [deb|rpm|tgz]...
# They are in BUILD_DIR/packages, with a list of what is inside (SPDX). --of-tests makes them of a build for tests too:
# to try packaging with the build that is there, never to give away.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
of_tests=
if [ "${1:-}" = --of-tests ]; then
  of_tests=yes
  shift
fi
[ $# -gt 0 ] || set -- deb rpm tgz
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
umask 022
if [ -z "$of_tests" ] && grep -qs '^SEALANE_BUILD_TESTS:BOOL=ON' "$build/CMakeCache.txt"; then
  echo "sealane: $build is a build for tests, in which safety rules can be turned off: 'make packages' makes another" >&2
  exit 1
fi

rm -rf "$build/packages"
for kind in "$@"; do
  echo "== packages: $kind"
  case $kind in
    deb) (cd "$build" && cpack -G DEB >cpack-deb.log) || { tail -20 "$build/cpack-deb.log"; exit 1; } ;;
    rpm)
      command -v rpmbuild >/dev/null || { echo "sealane: no rpmbuild here: no .rpm made"; continue; }
      (cd "$build" && cpack -G RPM >cpack-rpm.log) || { tail -20 "$build/cpack-rpm.log"; exit 1; }
      ;;
    tgz)
      # One tree that can be unpacked anywhere; files in one order, with one owner and one time.
      version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
      tree=sealane-$version-linux-$(uname -m)
      rm -rf "$build/tree"
      for part in program library dev emulator nccl; do
        cmake --install "$build" --prefix "$build/tree/$tree" --component $part --strip >/dev/null
      done
      mkdir -p "$build/packages"
      tar -C "$build/tree" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$tree" | gzip -n >"$build/packages/$tree.tar.gz"
      rm -rf "$build/tree"
      ;;
    *)
      echo "usage: tools/packages.sh BUILD_DIR [--of-tests] [deb|rpm|tgz]..." >&2
      exit 2
      ;;
  esac
done
tools/sbom.py "$build" >"$build/packages/sealane.spdx.json"
ls -l "$build/packages"
