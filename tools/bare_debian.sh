#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# A Debian 12 that has nothing else, in an empty directory, with packages from where this machine gets its own. Needs
# root and debootstrap; ends with 77 where there is none to be had. Usage: bare_debian.sh DIRECTORY
set -eu
root=$1
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "no Debian can be made: that needs root and debootstrap"
  exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mirror=$(sed -n 's/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\) bookworm .*/\2/p; s/^URIs: *\([^ ]*\).*/\1/p' \
  /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1)
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >"$log" 2>&1 || {
  tail -3 "$log"
  echo "no Debian can be made here"
  exit 77
}
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
