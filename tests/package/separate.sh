#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# `make packages` leaves the build of the tests alone: every directory it names is its own.
set -eu
cd "$(dirname "$0")/../.."
told=$(make --no-print-directory -n packages)
echo "$told" | grep -q -- '-B build-packages .*-DSEALANE_BUILD_TESTS=OFF'
echo "$told" | grep -q 'packages.sh build-packages'
if echo "$told" | grep -E -- '(--build|-B|packages\.sh) build( |$)'; then
  echo "make packages would change build/"
  exit 1
fi
